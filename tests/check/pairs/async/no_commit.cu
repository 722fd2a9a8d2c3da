/* Copies that are not committed belong to no group, so that no group's end waits for them.

x, y = integers(64), zeros(64)
module.reverse[1, 64](x, y)
same(y, x[::-1])
*/
#include "instructions.cuh"
extern "C" __global__ void reverse(const int *x, int *y) {
  __shared__ int buffer[64];
  const int t = threadIdx.x;
  COPY_ASYNC(&buffer[t], &x[t], 4, 4);  // other: race-async|async-unwaited
#ifndef FAULT
  COPY_COMMIT();
#endif
  COPY_WAIT(0);
  __syncthreads();
  y[t] = buffer[63 - t];  // fault: race-async
}
