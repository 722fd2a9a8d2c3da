/* An mbarrier of two warps is initialised for one: its phase ends without the other's stores.
gpu: h100

x, y = integers(64), zeros(64)
module.reverse[1, 64](x, y)
same(y, x[::-1])
*/
#include "instructions.cuh"
#ifdef FAULT
#define THREADS 32
#else
#define THREADS 64
#endif
extern "C" __global__ void reverse(const int *x, int *y) {
  __shared__ int s[64];
  __shared__ unsigned long long full;
  const int t = threadIdx.x;
  if (t == 0) MBARRIER_INIT(&full, THREADS);
  __syncthreads();
  s[t] = x[t];                       // also: race-shared
  MBARRIER_ARRIVE_MANY(&full, 1);    // fault: mbarrier
  if (t < 32) MBARRIER_WAIT(&full, 0);  // also: deadlock
  if (t < 32) y[t] = s[63 - t];      // also: race-shared|uninitialised-shared
  else y[t] = x[63 - t];             // also: uninitialised-shared
}
