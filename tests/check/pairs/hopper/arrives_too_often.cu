/* Two arrivals at a barrier that waits for one.
gpu: h100

x, y = integers(32), zeros(32)
module.reverse[1, 32](x, y)
same(y, x[::-1])
*/
#include "instructions.cuh"
#ifdef FAULT
#define TIMES 2
#else
#define TIMES 1
#endif
extern "C" __global__ void reverse(const int *x, int *y) {
  __shared__ int s[32];
  __shared__ unsigned long long full;
  const int t = threadIdx.x;
  if (t == 0) MBARRIER_INIT(&full, 1);
  __syncwarp();
  s[t] = x[t];
  __syncwarp();
  if (t == 0) MBARRIER_ARRIVE_MANY(&full, TIMES);  // fault: mbarrier
  MBARRIER_WAIT(&full, 0);
  y[t] = s[31 - t];
}
