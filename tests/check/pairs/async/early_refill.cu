/* The next copy into a buffer begins while other threads still read it.

x, y = integers((3, 64)), zeros((3, 64))
module.reverse[1, 64](x, y, 3)
same(y, x[:, ::-1])
*/
#include "instructions.cuh"
extern "C" __global__ void reverse(const int *x, int *y, int rows) {
  __shared__ int buffer[64];
  const int t = threadIdx.x;
#pragma unroll 1
  for (int r = 0; r < rows; ++r) {
    COPY_ASYNC(&buffer[t], &x[r * 64 + t], 4, 4);  // fault: race-async|race-shared
    COPY_COMMIT();
    COPY_WAIT(0);
    __syncthreads();
    y[r * 64 + t] = buffer[63 - t];  // other: race-async|race-shared
#ifndef FAULT
    __syncthreads();
#endif
  }
}
