/* A block ends while its neighbour may still read its shared memory.
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
  s[t] = x[i];
  CLUSTER_SYNC();
  CLUSTER_LOAD(v, place);  // fault: cluster-exit
  y[i] = v;
#ifndef FAULT
  CLUSTER_SYNC();
#endif
}  // other: cluster-exit
