/* A warp fills a box for another one, which says that it is empty before it has read it.

x, y = integers(128), zeros(128)
module.hand_over[1, 64](x, y, 4)
same(y, x.reshape(4, 32)[:, ::-1].ravel())
*/
#include "instructions.cuh"
extern "C" __global__ void hand_over(const int *x, int *y, int rounds) {
  __shared__ int box[32];
  const int lane = threadIdx.x % 32;
  if (threadIdx.x < 32)
    for (int r = 0; r < rounds; ++r) {
      box[lane] = x[r * 32 + lane];  // fault: race-shared
      BAR_ARRIVE(1, 64);
      BAR_SYNC(2, 64);
    }
  else
    for (int r = 0; r < rounds; ++r) {
      BAR_SYNC(1, 64);
#ifdef FAULT
      BAR_ARRIVE(2, 64);
#endif
      y[r * 32 + lane] = box[31 - lane];  // other: race-shared
#ifndef FAULT
      BAR_ARRIVE(2, 64);
#endif
    }
}
