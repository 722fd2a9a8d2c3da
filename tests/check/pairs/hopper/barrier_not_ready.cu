/* Threads arrive at a barrier that another thread may not have initialised yet.
gpu: h100

x, y = integers(64), zeros(64)
module.reverse[1, 64](x, y)
same(y, x[::-1])
*/
#include "instructions.cuh"
extern "C" __global__ void reverse(const int *x, int *y) {
  __shared__ int s[64];
  __shared__ unsigned long long full;
  const int t = threadIdx.x;
  if (t == 0) MBARRIER_INIT(&full, 64);  // other: race-shared|mbarrier
  s[t] = x[t];
#ifndef FAULT
  __syncthreads();
#endif
  MBARRIER_ARRIVE(&full);    // fault: race-shared|mbarrier
  MBARRIER_WAIT(&full, 0);  // also: race-shared
  y[t] = s[63 - t];
}
