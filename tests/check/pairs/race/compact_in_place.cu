/* Blocks move what they have read to the place of earlier blocks, which tell by relaxed flags that they have read
theirs; the faulty one does not wait for them.
one_order: whether a block has read before another one writes

x, y = integers(4 * 64), zeros(4 * 64)
y[:] = x
module.shift[4, 64](y, gpu.zeros(4, np.int32))
same(y, np.concatenate([x[1:], x[-1:]]))
*/
extern "C" __global__ void shift(int *x, volatile int *flags) {
  const int t = threadIdx.x, b = blockIdx.x, i = 64 * b + t;
  const int v = x[i];  // other: race-global
  __syncthreads();
  if (t == 0) {
    flags[b] = 1;
#ifndef FAULT
    while (b > 0 && !flags[b - 1]) {}
#endif
  }
  __syncthreads();
  if (i > 0) x[i - 1] = v;  // fault: race-global
}
