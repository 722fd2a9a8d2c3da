/* Two products in two groups; the faulty kernel waits until one is left, and then uses both sums.
gpu: h100

a, b, y = halves((64, 16)), halves((8, 16)), zeros((64, 8), np.float32)
module.product[1, 128](a, b, y)
same(y, 2 * (a.astype(np.float32) @ b.T.astype(np.float32)))
*/
#include "wgmma.cuh"
#ifdef FAULT
#define LEFT_OPEN 1
#else
#define LEFT_OPEN 0
#endif
extern "C" __global__ void product(const unsigned *a, const unsigned *b, float2 *y) {
  TILE(b);
  LEFT(a);
  float e[4] = {0, 0, 0, 0};
  __syncthreads();
  WGMMA_FENCE();
  WGMMA(d, left, descriptor);
  WGMMA_COMMIT();
  WGMMA(e, left, descriptor);  // other: race-async
  WGMMA_COMMIT();
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT_OPEN) : "memory");
  y[ROW * 4 + COLUMN] = make_float2(d[0] + e[0], d[1] + e[1]);        // fault: race-async
  y[(ROW + 8) * 4 + COLUMN] = make_float2(d[2] + e[2], d[3] + e[3]);  // also: race-async
}
