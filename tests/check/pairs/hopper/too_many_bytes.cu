/* A barrier expects more bytes than its copy brings, so that its phase never ends.
gpu: h100
slow: the faulty one runs until a time limit

x, y = integers(64), zeros(64)
module.reverse[1, 64](x, y)
same(y, x[::-1])
*/
#include "instructions.cuh"
#ifdef FAULT
#define BYTES 512
#else
#define BYTES 256
#endif
extern "C" __global__ void reverse(const int *x, int *y) {
  __shared__ __align__(16) int buffer[64];
  __shared__ unsigned long long full;
  const int t = threadIdx.x;
  if (t == 0) MBARRIER_INIT(&full, 1);
  __syncthreads();
  if (t == 0) {
    MBARRIER_EXPECT(&full, BYTES);  // other: mbarrier|deadlock
    BULK_LOAD(buffer, x, 256, &full);
  }
  MBARRIER_WAIT(&full, 0);  // fault: mbarrier|deadlock
  y[t] = buffer[63 - t];
}
