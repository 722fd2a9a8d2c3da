/* Blocks add to a sum one after the other, by a semaphore that is released without a fence of all threads.
Of https://github.com/NVIDIA/Fuser/pull/2391, in words of our own.

x, sums = integers(3 * 64), zeros(64)
module.add[3, 64](x, gpu.zeros(1, np.int32), sums)
same(sums, x.reshape(3, 64).sum(0))
*/
extern "C" __global__ void add(const int *x, volatile int *turn, int *sums) {
  const int t = threadIdx.x;
  if (t == 0)
    while (*turn != blockIdx.x) {
    }
#ifndef FAULT
  __threadfence();
#endif
  __syncthreads();
  sums[t] += x[blockIdx.x * 64 + t];  // fault: race-global
#ifndef FAULT
  __threadfence();
#endif
  __syncthreads();
  if (t == 0) *turn = blockIdx.x + 1;
}
