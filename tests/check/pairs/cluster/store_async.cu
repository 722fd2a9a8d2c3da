/* Stores to the neighbour complete at its mbarrier, for which it does not wait.
gpu: h100

x, y = integers(64), zeros(64)
module.exchange[2, 32, 0, None, 2](x, y)
same(y, x.reshape(2, 32)[::-1].ravel())
*/
#include "instructions.cuh"
extern "C" __global__ void exchange(const int *x, int *y) {
  __shared__ int s[32];
  __shared__ unsigned long long full;
  const int t = threadIdx.x, i = blockIdx.x * 32 + t;
  unsigned rank, place, barrier;
  CLUSTER_RANK(rank);
  CLUSTER_PLACE(place, &s[t], rank ^ 1);
  CLUSTER_PLACE(barrier, &full, rank ^ 1);
  s[t] = 0;
  if (t == 0) {
    MBARRIER_INIT(&full, 1);
    MBARRIER_EXPECT(&full, 128);
  }
  CLUSTER_SYNC();
  CLUSTER_STORE_ASYNC(place, x[i], barrier);  // other: race-async|race-cluster
#ifndef FAULT
  MBARRIER_WAIT(&full, 0);
#endif
  y[i] = ((volatile int *)s)[t];  // fault: race-async|race-cluster
#ifdef FAULT
  MBARRIER_WAIT(&full, 0);
#endif
  CLUSTER_SYNC();
}
