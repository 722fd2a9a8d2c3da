/* Accumulators are set and then used by a product without wgmma.fence between.
gpu: h100
ptx: ptxas waits where the program does not

a, b, y = halves((64, 16)), halves((8, 16)), zeros((64, 8), np.float32)
module.product[1, 128](a, b, y)
same(y, a.astype(np.float32) @ b.T.astype(np.float32) + 1)
*/
#include "wgmma.cuh"
extern "C" __global__ void product(const unsigned *a, const unsigned *b, float2 *y) {
  TILE(b);
  LEFT(a);
  __syncthreads();
#ifdef FAULT
  WGMMA_FENCE();
#endif
  for (int i = 0; i < 4; ++i)
    asm volatile("add.f32 %0, %0, 0f3f800000;" : "+f"(d[i]));  // other: race-async
#ifndef FAULT
  WGMMA_FENCE();
#endif
  WGMMA(d, left, descriptor);  // fault: race-async
  WGMMA_COMMIT();
  WGMMA_WAIT(d);
  y[ROW * 4 + COLUMN] = make_float2(d[0], d[1]);
  y[(ROW + 8) * 4 + COLUMN] = make_float2(d[2], d[3]);
}
