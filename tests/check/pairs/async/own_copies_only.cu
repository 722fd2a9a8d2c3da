/* Each thread waits for its own copies, but then reads another thread's without a barrier.

x, y = integers(64), zeros(64)
module.reverse[1, 64](x, y)
same(y, x[::-1])
*/
#include "instructions.cuh"
extern "C" __global__ void reverse(const int *x, int *y) {
  __shared__ int buffer[64];
  const int t = threadIdx.x;
  buffer[t] = 0;
  __syncthreads();
  COPY_ASYNC(&buffer[t], &x[t], 4, 4);  // other: race-async|race-shared
  COPY_COMMIT();
  COPY_WAIT(0);
#ifndef FAULT
  __syncthreads();
#endif
  y[t] = buffer[63 - t];  // fault: race-async|race-shared
}
