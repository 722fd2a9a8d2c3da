/* A barrier waits for more threads than arrive.
gpu: h100
slow: the faulty one runs until a time limit

x, y = integers(32), zeros(32)
module.reverse[1, 32](x, y)
same(y, x[::-1])
*/
#include "instructions.cuh"
#ifdef FAULT
#define COUNT 64
#else
#define COUNT 32
#endif
extern "C" __global__ void reverse(const int *x, int *y) {
  __shared__ int s[32];
  __shared__ unsigned long long full;
  const int t = threadIdx.x;
  if (t == 0) MBARRIER_INIT(&full, COUNT);  // other: mbarrier|deadlock
  __syncwarp();
  s[t] = x[t];
  MBARRIER_ARRIVE(&full);
  MBARRIER_WAIT(&full, 0);  // fault: mbarrier|deadlock
  y[t] = s[31 - t];
}
