/* Two warps meet at a barrier; one says that three take part.

x, y = integers(32), zeros(32)
module.hand_over[1, 96](x, y)
same(y, x[::-1])
*/
#include "instructions.cuh"
#ifdef FAULT
#define COUNT 96
#else
#define COUNT 64
#endif
extern "C" __global__ void hand_over(const int *x, int *y) {
  __shared__ int box[32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (warp == 0) {
    box[lane] = x[lane];
    BAR_SYNC(1, 64);  // other: barrier-count
  } else if (warp == 1) {
    BAR_SYNC(1, COUNT);  // fault: barrier-count
    y[lane] = box[31 - lane];
  }
}
