/* Blocks store to their neighbour's shared memory, which reads it between arrival and wait.
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
  CLUSTER_RANK(rank);
  CLUSTER_PLACE(place, &s[t], rank ^ 1);
  s[t] = 0;
  CLUSTER_SYNC();
  CLUSTER_STORE(place, x[i]);  // other: race-cluster
  CLUSTER_ARRIVE();
#ifdef FAULT
  y[i] = ((volatile int *)s)[t];  // fault: race-cluster
#endif
  CLUSTER_WAIT();
#ifndef FAULT
  y[i] = ((volatile int *)s)[t];
#endif
}
