/* Bulk copies by one warp, work by another, with two buffers and their mbarriers. The faulty consumer says that a
buffer is empty before it has read it.
gpu: h100

x, y = integers((6, 32)), zeros((6, 32))
module.reverse[1, 64](x, y, 6)
same(y, 2 * x[:, ::-1])
*/
#include "instructions.cuh"
extern "C" __global__ void reverse(const int *x, int *y, int rows) {
  __shared__ __align__(16) int buffer[2][32];
  __shared__ unsigned long long full[2], empty[2];
  const int t = threadIdx.x;
  if (t == 0)
    for (int i = 0; i < 2; ++i) {
      MBARRIER_INIT(&full[i], 1);
      MBARRIER_INIT(&empty[i], 32);
    }
  __syncthreads();
  if (t == 32)
#pragma unroll 1
    for (int r = 0; r < rows; ++r) {
      if (r >= 2) MBARRIER_WAIT(&empty[r % 2], (r / 2 - 1) % 2);
      MBARRIER_EXPECT(&full[r % 2], 128);
      BULK_LOAD(buffer[r % 2], x + 32 * r, 128, &full[r % 2]);  // fault: race-async
    }
  if (t < 32)
#pragma unroll 1
    for (int r = 0; r < rows; ++r) {
      MBARRIER_WAIT(&full[r % 2], r / 2 % 2);
#ifdef FAULT
      MBARRIER_ARRIVE(&empty[r % 2]);
#endif
      y[32 * r + t] = 2 * buffer[r % 2][31 - t];  // other: race-async
#ifndef FAULT
      MBARRIER_ARRIVE(&empty[r % 2]);
#endif
    }
}
