/* Rows are copied to two buffers in turn. After the last row there is nothing to copy, so that the wait for all but
one group does not wait for it; the twin commits empty groups.

x, y = integers((4, 32)), zeros((4, 32))
module.reverse[1, 32](x, y, 4)
same(y, x[:, ::-1])
*/
#include "instructions.cuh"
extern "C" __global__ void reverse(const int *x, int *y, int rows) {
  __shared__ int buffer[2][32];
  const int t = threadIdx.x;
  COPY_ASYNC(&buffer[0][t], &x[t], 4, 4);  // other: race-async
  COPY_COMMIT();
#pragma unroll 1
  for (int r = 0; r < rows; ++r) {
    if (r + 1 < rows) {
      COPY_ASYNC(&buffer[(r + 1) % 2][t], &x[(r + 1) * 32 + t], 4, 4);  // other: race-async
#ifdef FAULT
      COPY_COMMIT();
#endif
    }
#ifndef FAULT
    COPY_COMMIT();
#endif
    COPY_WAIT(1);
    __syncwarp();
    y[r * 32 + t] = buffer[r % 2][31 - t];  // fault: race-async
    __syncwarp();
  }
  COPY_WAIT(0);
}
