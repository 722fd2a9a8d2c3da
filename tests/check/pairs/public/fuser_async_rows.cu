/* A row is copied by some threads, which meet the others at a barrier before they have waited for the copy.
Of https://github.com/NVIDIA/Fuser/pull/3438, in words of our own.

x, y = integers((2, 32)), zeros((2, 32))
module.scale[1, (32, 2)](x, y)
same(y, x * x[0])
*/
#include "instructions.cuh"
extern "C" __global__ void scale(const int *x, int *y) {
  __shared__ int row[32], tile[2][32];
  const int i = threadIdx.x, j = threadIdx.y;
  if (j == 0) COPY_ASYNC(&row[i], &x[i], 4, 4);  // other: race-async|race-shared
  COPY_COMMIT();
#ifndef FAULT
  COPY_WAIT(0);
#endif
  __syncthreads();
  COPY_ASYNC(&tile[j][i], &x[j * 32 + i], 4, 4);
  COPY_COMMIT();
  COPY_WAIT(0);
  y[j * 32 + i] = tile[j][i] * row[i];  // fault: race-async|race-shared
}
