/* The wait for a copy comes after its data has been used.

x, y = integers(64), zeros(64)
module.reverse[1, 64](x, y)
same(y, x[::-1])
*/
#include "instructions.cuh"
extern "C" __global__ void reverse(const int *x, int *y) {
  __shared__ int buffer[64];
  const int t = threadIdx.x;
  COPY_ASYNC(&buffer[t], &x[t], 4, 4);  // other: race-async
  COPY_COMMIT();
#ifndef FAULT
  COPY_WAIT(0);
#endif
  __syncthreads();
  y[t] = buffer[63 - t];  // fault: race-async
#ifdef FAULT
  COPY_WAIT(0);
#endif
}
