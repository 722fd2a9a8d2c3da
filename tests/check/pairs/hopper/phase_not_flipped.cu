/* One buffer is filled again and again; the faulty consumer always waits for the same parity of its mbarrier.
gpu: h100

x, y = integers((3, 32)), zeros((3, 32))
module.reverse[1, 32](x, y, 3)
same(y, 2 * x[:, ::-1])
*/
#include "instructions.cuh"
#ifdef FAULT
#define PARITY(r) 0
#else
#define PARITY(r) ((r) % 2)
#endif
extern "C" __global__ void reverse(const int *x, int *y, int rows) {
  __shared__ __align__(16) int buffer[32];
  __shared__ unsigned long long full;
  const int t = threadIdx.x;
  if (t == 0) MBARRIER_INIT(&full, 1);
  __syncthreads();
#pragma unroll 1
  for (int r = 0; r < rows; ++r) {
    if (t == 0) {
      MBARRIER_EXPECT(&full, 128);
      BULK_LOAD(buffer, x + 32 * r, 128, &full);
    }
    MBARRIER_WAIT(&full, PARITY(r));  // fault: deadlock
    y[32 * r + t] = 2 * buffer[31 - t];
    __syncthreads();
  }
}
