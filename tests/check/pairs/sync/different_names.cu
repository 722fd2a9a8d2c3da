/* Producer and consumer wait at barriers of different numbers, for ever.

x, y = integers(32), zeros(32)
module.hand_over[1, 64](x, y)
same(y, x[::-1])
*/
#include "instructions.cuh"
#ifdef FAULT
#define NAME 2
#else
#define NAME 1
#endif
extern "C" __global__ void hand_over(const int *x, int *y) {
  __shared__ int box[32];
  const int lane = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    box[lane] = x[lane];
    BAR_SYNC(1, 64);  // fault: deadlock|barrier-different
  } else {
    BAR_SYNC(NAME, 64);  // other: deadlock|barrier-different
    y[lane] = box[31 - lane];
  }
}
