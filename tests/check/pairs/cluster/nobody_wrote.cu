/* A block reads shared memory of its neighbour that only the first block has filled.
gpu: h100

x, y = integers(64), zeros(128)
module.exchange[2, 64, 0, None, 2](x, y)
same(y, np.tile(x, 2))
*/
#include "instructions.cuh"
#ifdef FAULT
#define FROM (rank ^ 1)
#else
#define FROM 0
#endif
extern "C" __global__ void exchange(const int *x, int *y) {
  __shared__ int s[64];
  const int t = threadIdx.x;
  unsigned rank, place;
  int v;
  CLUSTER_RANK(rank);
  if (rank == 0) s[t] = x[t];
  CLUSTER_SYNC();
  CLUSTER_PLACE(place, &s[t], FROM);
  CLUSTER_LOAD(v, place);               // other: uninitialised-cluster
  if (v != 1 << 30) y[blockIdx.x * 64 + t] = v;  // fault: uninitialised-cluster
  CLUSTER_SYNC();
}
