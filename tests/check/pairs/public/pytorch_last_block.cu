/* Blocks store partial sums behind fences; the last one reads them without completing the acquire pattern.
Of https://github.com/pytorch/pytorch/pull/128455, in words of our own.
weak: programs that read behind the ticket without a fence are common

x, y = integers(4 * 64), zeros(64)
module.columns[4, 64](x, gpu.zeros(4 * 64, np.int32), gpu.zeros(1, np.uint32), y)
same(y, x.reshape(4, 64).sum(0))
*/
extern "C" __global__ void columns(const int *x, int *parts, unsigned *done, int *y) {
  __shared__ bool last;
  const int t = threadIdx.x, i = blockIdx.x * 64 + t;
  parts[i] = x[i];  // other: race-global
  __threadfence();
  __syncthreads();
  if (t == 0) last = atomicAdd(done, 1) == gridDim.x - 1;
  __syncthreads();
  if (!last) return;
#ifndef FAULT
  __threadfence();
#endif
  int sum = 0;
  for (int b = 0; b < gridDim.x; ++b) sum += parts[b * 64 + t];  // fault: race-global
  y[t] = sum;
}
