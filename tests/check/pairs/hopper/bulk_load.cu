/* A barrier of the block does not wait for a bulk copy; that of the copy, in shared memory, does.
gpu: h100

x, y = integers(64), zeros(64)
module.reverse[1, 64](x, y)
same(y, x[::-1])
*/
#include "instructions.cuh"
extern "C" __global__ void reverse(const int *x, int *y) {
  __shared__ __align__(16) int buffer[64];
  __shared__ unsigned long long full;
  const int t = threadIdx.x;
  if (t == 0) MBARRIER_INIT(&full, 1);
  __syncthreads();
  if (t == 0) {
    MBARRIER_EXPECT(&full, 256);
    BULK_LOAD(buffer, x, 256, &full);  // other: race-async
  }
#ifdef FAULT
  __syncthreads();
#else
  MBARRIER_WAIT(&full, 0);
#endif
  y[t] = buffer[63 - t];  // fault: race-async
#ifdef FAULT
  MBARRIER_WAIT(&full, 0);
#endif
}
