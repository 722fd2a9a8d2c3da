/* Four warps fill boxes for a fifth. The faulty first one arrives twice, so that the last one is not waited for.

x, y = integers(128), zeros(32)
module.collect[1, 160](x, y)
same(y, x.reshape(4, 32).sum(0))
*/
#include "instructions.cuh"
extern "C" __global__ void collect(const int *x, int *y) {
  __shared__ int box[4][32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (warp < 4) {
    box[warp][lane] = x[threadIdx.x];
#ifdef FAULT
    if (warp == 0) BAR_ARRIVE(1, 160);  // other: barrier-different
#endif
    BAR_ARRIVE(1, 160);  // fault: barrier-different
  } else {
    BAR_SYNC(1, 160);  // also: barrier-different|deadlock
    y[lane] = box[0][lane] + box[1][lane] + box[2][lane] + box[3][lane];
  }
}
