/* CUDA's functions for asynchronous copies: one group too many may be left on its way.
slow: cuda_pipeline.h compiles for seconds

x, sums = integers((5, 32)), zeros(5)
module.sum[1, 32](x, sums, 5)
same(sums, x.sum(1))
*/
#include <cuda_pipeline.h>
#ifdef FAULT
#define LEFT 3
#else
#define LEFT 2
#endif
extern "C" __global__ void sum(const int *x, int *sums, int rows) {
  __shared__ int buffer[4][32];
  const int t = threadIdx.x;
#pragma unroll 1
  for (int r = 0; r < 2; ++r) {
    __pipeline_memcpy_async(&buffer[r][t], &x[r * 32 + t], 4);  // other: race-async
    __pipeline_commit();
  }
#pragma unroll 1
  for (int r = 0; r < rows; ++r) {
    if (r + 2 < rows)
      __pipeline_memcpy_async(&buffer[(r + 2) % 4][t], &x[(r + 2) * 32 + t], 4);  // other: race-async
    __pipeline_commit();
    __pipeline_wait_prior(LEFT);
    __syncwarp();
    const int v = buffer[r % 4][31 - t];  // fault: race-async
    const int all = __reduce_add_sync(~0u, v);
    if (t == 0) sums[r] = all;
    __syncwarp();
  }
  __pipeline_wait_prior(0);
}
