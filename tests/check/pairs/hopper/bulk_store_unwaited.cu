/* A block ends before the copy has read its shared memory; the twin waits until it has.
gpu: h100

x, y = integers(64), zeros(64)
module.reverse[1, 64](x, y)
same(y, x[::-1])
*/
#include "instructions.cuh"
extern "C" __global__ void reverse(const int *x, int *y) {
  __shared__ __align__(16) int buffer[64];
  const int t = threadIdx.x;
  buffer[63 - t] = x[t];
  FENCE_ASYNC();
  __syncthreads();
  if (t == 0) {
    BULK_STORE(y, buffer, 256);  // fault: async-unwaited
    BULK_COMMIT();
#ifndef FAULT
    BULK_WAIT_READ(0);
#endif
  }
}
