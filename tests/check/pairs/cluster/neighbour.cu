/* A block reads its neighbour's shared memory after a barrier of its own block only.
gpu: h100

x, y = integers(128), zeros(128)
module.exchange[2, 64, 0, None, 2](x, y)
same(y, x.reshape(2, 64)[::-1].ravel())
*/
#include "instructions.cuh"
extern "C" __global__ void exchange(const int *x, int *y) {
  __shared__ int s[64];
  const int t = threadIdx.x, i = blockIdx.x * 64 + t;
  unsigned rank, place;
  int v;
  CLUSTER_RANK(rank);
  CLUSTER_PLACE(place, &s[t], rank ^ 1);
  s[t] = 0;
  CLUSTER_SYNC();
  s[t] = x[i];  // other: race-cluster
#ifdef FAULT
  __syncthreads();
#else
  CLUSTER_SYNC();
#endif
  CLUSTER_LOAD(v, place);  // fault: race-cluster
  y[i] = v;
  CLUSTER_SYNC();
}
