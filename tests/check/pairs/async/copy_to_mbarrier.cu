/* Copies arrive at an mbarrier, whose phase nobody waits for before the data is used.

x, y = integers(64), zeros(64)
module.reverse[1, 64](x, y)
same(y, x[::-1])
*/
#include "instructions.cuh"
extern "C" __global__ void reverse(const int *x, int *y) {
  __shared__ int buffer[64];
  __shared__ unsigned long long full;
  const int t = threadIdx.x;
  if (t == 0) MBARRIER_INIT(&full, 64);
  __syncthreads();
  COPY_ASYNC(&buffer[t], &x[t], 4, 4);  // other: race-async
  COPY_ARRIVE(&full);
#ifdef FAULT
  __syncthreads();
#else
  MBARRIER_POLL(&full, 0);
#endif
  y[t] = buffer[63 - t];  // fault: race-async
#ifdef FAULT
  MBARRIER_POLL(&full, 0);
#endif
}
