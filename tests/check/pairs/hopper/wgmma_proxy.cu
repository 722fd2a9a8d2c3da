/* The right matrix is stored to shared memory by threads, and used without a fence between the proxies.
gpu: h100

a, b, y = halves((64, 16)), halves((8, 16)), zeros((64, 8), np.float32)
module.product[1, 128](a, b, y)
same(y, a.astype(np.float32) @ b.T.astype(np.float32))
*/
#ifdef FAULT
#define TILE_FENCE()
#endif
#include "wgmma.cuh"
extern "C" __global__ void product(const unsigned *a, const unsigned *b, float2 *y) {
  TILE(b);  // other: race-async
  LEFT(a);
  __syncthreads();
  WGMMA_FENCE();  // other: race-async
  WGMMA(d, left, descriptor);  // fault: race-async
  WGMMA_COMMIT();
  WGMMA_WAIT(d);
  y[ROW * 4 + COLUMN] = make_float2(d[0], d[1]);
  y[(ROW + 8) * 4 + COLUMN] = make_float2(d[2], d[3]);
}
