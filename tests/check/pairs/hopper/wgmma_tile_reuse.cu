/* The right matrix is overwritten in shared memory before the product has been waited for.
gpu: h100

a, b, y = halves((64, 16)), halves((8, 16)), zeros((64, 8), np.float32)
module.product[1, 128](a, b, y)
same(y, a.astype(np.float32) @ b.T.astype(np.float32))
*/
#include "wgmma.cuh"
extern "C" __global__ void product(const unsigned *a, const unsigned *b, float2 *y) {
  TILE(b);
  LEFT(a);
  __syncthreads();
  WGMMA_FENCE();  // other: race-async
  WGMMA(d, left, descriptor);  // other: race-async
  WGMMA_COMMIT();
#ifndef FAULT
  WGMMA_WAIT(d);
  __syncthreads();
#endif
  ((volatile unsigned *)tile)[threadIdx.x % 64] = 0;  // fault: race-async // also: race-weak
#ifdef FAULT
  WGMMA_WAIT(d);
#endif
  y[ROW * 4 + COLUMN] = make_float2(d[0], d[1]);
  y[(ROW + 8) * 4 + COLUMN] = make_float2(d[2], d[3]);
}
