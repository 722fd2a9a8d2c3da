/* A barrier expects half of the bytes that its copies bring.
gpu: h100

x, y = integers(64), zeros(64)
module.reverse[1, 64](x, y)
same(y, x[::-1])
*/
#include "instructions.cuh"
#ifdef FAULT
#define BYTES 128
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
    MBARRIER_EXPECT(&full, BYTES);      // other: mbarrier
    BULK_LOAD(buffer, x, 128, &full);
    BULK_LOAD(buffer + 32, x + 32, 128, &full);  // fault: mbarrier|race-async
  }
  MBARRIER_WAIT(&full, 0);
  y[t] = buffer[63 - t];  // other: race-async
}
