/* A block lends its shared memory to its neighbour, which stores there and reads back, and ends before that is done.
gpu: h100

x, y = integers(64), zeros(64)
module.borrow[2, 64, 0, None, 2](x, y)
same(y, x[::-1])
*/
#include "instructions.cuh"
extern "C" __global__ void borrow(const int *x, int *y) {
  __shared__ int s[64];
  const int t = threadIdx.x;
  unsigned rank, to, from;
  CLUSTER_RANK(rank);
  s[t] = 0;
  CLUSTER_SYNC();
  if (rank == 1) {
    int v;
    CLUSTER_PLACE(to, &s[t], 0);
    CLUSTER_PLACE(from, &s[63 - t], 0);
    CLUSTER_STORE(to, x[t]);  // fault: cluster-exit
    __syncthreads();
    CLUSTER_LOAD(v, from);  // also: cluster-exit
    y[t] = v;
  }
#ifdef FAULT
  return;
#endif
  CLUSTER_SYNC();
}
