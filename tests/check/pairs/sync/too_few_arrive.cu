/* A barrier for three warps, at which two arrive.

x, y = integers(32), zeros(32)
module.hand_over[1, 64](x, y)
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
  const int lane = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    box[lane] = x[lane];
    BAR_ARRIVE(1, COUNT);  // other: barrier-count|deadlock
  } else {
    BAR_SYNC(1, COUNT);  // fault: barrier-count|deadlock
    y[lane] = box[31 - lane];
  }
}
