/* A buffer is filled again while the copy out of it may still read.
gpu: h100

x, y = integers((2, 64)), zeros((2, 64))
module.reverse[1, 64](x, y)
same(y, x[:, ::-1])
*/
#include "instructions.cuh"
extern "C" __global__ void reverse(const int *x, int *y) {
  __shared__ __align__(16) int buffer[64];
  const int t = threadIdx.x;
#pragma unroll 1
  for (int r = 0; r < 2; ++r) {
    buffer[63 - t] = x[64 * r + t];  // fault: race-async
    FENCE_ASYNC();
    __syncthreads();
    if (t == 0) {
      BULK_STORE(y + 64 * r, buffer, 256);  // other: race-async
      BULK_COMMIT();
#ifndef FAULT
      BULK_WAIT_READ(0);
#endif
    }
    __syncthreads();
  }
  if (t == 0) BULK_WAIT(0);
}
