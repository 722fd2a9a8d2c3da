/* The count of a barrier is no multiple of a warp's threads.

x, y = integers(64), zeros(64)
module.reverse[1, 64](x, y)
same(y, x[::-1])
*/
#include "instructions.cuh"
#ifdef FAULT
#define COUNT 60
#else
#define COUNT 64
#endif
extern "C" __global__ void reverse(const int *x, int *y) {
  __shared__ int s[64];
  const int t = threadIdx.x;
  s[t] = x[t];
  BAR_SYNC(1, COUNT);  // fault: barrier-count
  y[t] = s[63 - t];
}
