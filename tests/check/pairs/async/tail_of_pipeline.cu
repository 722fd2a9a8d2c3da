/* The next tile is copied while this one is used. The faulty loop commits a group only if there is a next tile, and
still lets one pend for the last one.

x, y = integers((4, 64)), zeros((4, 64))
module.double_all[1, 64](x, y, 4)
same(y, 2 * x[:, ::-1])
*/
#include "instructions.cuh"
extern "C" __global__ void double_all(const int *x, int *y, int tiles) {
  __shared__ int tile[2][64];
  const int t = threadIdx.x;
  COPY_ASYNC(&tile[0][t], x + t, 4, 4);
  COPY_COMMIT();
#pragma unroll 1
  for (int k = 0; k < tiles; ++k) {
    if (k + 1 < tiles) {
      COPY_ASYNC(&tile[(k + 1) % 2][t], x + (k + 1) * 64 + t, 4, 4);  // other: race-async // also: async-unwaited
#ifdef FAULT
      COPY_COMMIT();
#endif
    }
#ifndef FAULT
    COPY_COMMIT();
#endif
    COPY_WAIT(1);
    __syncthreads();
    y[k * 64 + t] = 2 * tile[k % 2][63 - t];  // fault: race-async
    __syncthreads();
  }
}
