/* Two sums of a block, one after the other, through the same shared memory.
Of https://github.com/pytorch/pytorch/pull/5276, in words of our own.

x, w, y = integers(64), integers(64, 1, 9), zeros(2)
module.means[1, 64](x, w, y)
same(y, [(x * w).sum(), w.sum()])
*/
__device__ int block_sum(int *space, int v) {
  const int t = threadIdx.x;
  space[t] = v;  // fault: race-shared
  __syncthreads();
  int sum = 0;
  if (t == 0)
    for (int i = 0; i < 64; ++i) sum += space[i];  // other: race-shared
  return sum;
}
extern "C" __global__ void means(const int *x, const int *w, int *y) {
  __shared__ int space[64];
  const int t = threadIdx.x;
  const int weighted = block_sum(space, x[t] * w[t]);
#ifndef FAULT
  __syncthreads();
#endif
  const int weights = block_sum(space, w[t]);
  if (t == 0) y[0] = weighted, y[1] = weights;
}
