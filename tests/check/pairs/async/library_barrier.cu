/* Two warps hand a box to and fro with cuda::barrier; the reader says too early that the box is empty.
slow: cuda/barrier compiles for seconds

x, y = integers((4, 32)), zeros((4, 32))
module.hand_over[1, 64](x, y, 4)
same(y, 3 * x[:, ::-1])
*/
#include <cuda/barrier>
extern "C" __global__ void hand_over(const int *x, int *y, int rounds) {
  using Barrier = cuda::barrier<cuda::thread_scope_block>;
  __shared__ __align__(8) char place[2 * sizeof(Barrier)];
  __shared__ int box[32];
  Barrier *full = (Barrier *)place, *empty = full + 1;
  const int lane = threadIdx.x % 32;
  if (threadIdx.x == 0) init(full, 64), init(empty, 64);
  __syncthreads();
  for (int r = 0; r < rounds; ++r) {
    if (threadIdx.x < 32) {
      box[lane] = 3 * x[r * 32 + lane];  // fault: race-shared
      (void)full->arrive();
      empty->arrive_and_wait();
    } else {
      full->arrive_and_wait();
#ifdef FAULT
      (void)empty->arrive();
#endif
      y[r * 32 + lane] = box[31 - lane];  // other: race-shared
#ifndef FAULT
      (void)empty->arrive();
#endif
    }
  }
}
