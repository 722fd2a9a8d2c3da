/* One tile holds the input and then the result of a task; the wait for the copy out of it comes at the wrong step.
Of https://github.com/uccl-project/mKernel/pull/18, in words of our own.
gpu: h100

x, y = integers((3, 64)), zeros((3, 64))
module.tasks[1, 64](x, y, 3)
same(y, 3 * x[:, ::-1])
*/
#include "instructions.cuh"
extern "C" __global__ void tasks(const int *x, int *y, int count) {
  __shared__ __align__(16) int tile[64];
  __shared__ unsigned long long full;
  const int t = threadIdx.x;
  if (t == 0) MBARRIER_INIT(&full, 1);
  __syncthreads();
#pragma unroll 1
  for (int k = 0; k < count; ++k) {
    if (t == 0) {
#ifndef FAULT
      BULK_WAIT_READ(0);
#endif
      MBARRIER_EXPECT(&full, 256);
      BULK_LOAD(tile, x + 64 * k, 256, &full);  // fault: race-async
#ifdef FAULT
      BULK_WAIT_READ(0);
#endif
    }
    MBARRIER_WAIT(&full, k % 2);
    const int v = 3 * tile[63 - t];
    __syncthreads();
    tile[t] = v;
    FENCE_ASYNC();
    __syncthreads();
    if (t == 0) {
      BULK_STORE(y + 64 * k, tile, 256);  // other: race-async
      BULK_COMMIT();
    }
  }
  if (t == 0) BULK_WAIT(0);
}
