/* Two pairs of warps hand over a box each. In the faulty kernel they use the same named barrier, so that a warp may
meet one of the other pair.

x, y = integers(64), zeros(64)
module.hand_over[1, 128](x, y)
same(y, x.reshape(2, 32)[:, ::-1].ravel())
*/
#include "instructions.cuh"
#ifdef FAULT
#define NAME(pair) 1
#else
#define NAME(pair) (1 + (pair))
#endif
extern "C" __global__ void hand_over(const int *x, int *y) {
  __shared__ int box[2][32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, pair = warp / 2;
  if (warp % 2 == 0) {
    box[pair][lane] = x[pair * 32 + lane];
    BAR_SYNC(NAME(pair), 64);  // other: barrier-different
  } else {
    BAR_SYNC(NAME(pair), 64);  // fault: barrier-different
    y[pair * 32 + lane] = box[pair][31 - lane];
  }
}
