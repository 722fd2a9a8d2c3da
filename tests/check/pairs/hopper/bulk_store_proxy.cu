/* What threads have stored to shared memory is copied out without a fence between the proxies.
gpu: h100

x, y = integers(64), zeros(64)
module.reverse[1, 64](x, y)
same(y, x[::-1])
*/
#include "instructions.cuh"
extern "C" __global__ void reverse(const int *x, int *y) {
  __shared__ __align__(16) int buffer[64];
  const int t = threadIdx.x;
  buffer[63 - t] = x[t];  // other: race-async
#ifndef FAULT
  FENCE_ASYNC();
#endif
  __syncthreads();
  if (t == 0) {
    BULK_STORE(y, buffer, 256);  // fault: race-async
    BULK_COMMIT();
    BULK_WAIT(0);
  }
}
