/* Both branches have a barrier, but not the same one.

x, y = integers(64), zeros(64)
module.reverse[1, 64](x, y)
same(y, np.where(np.arange(64) % 2, 2, 3) [::-1] * x[::-1])
*/
extern "C" __global__ void reverse(const int *x, int *y) {
  __shared__ int s[64];
  const int t = threadIdx.x;
  if (t % 2) {
    s[t] = 2 * x[t];
#ifdef FAULT
    __syncthreads();  // fault: barrier-different|barrier-divergent
#endif
  } else {
    s[t] = 3 * x[t];
#ifdef FAULT
    __syncthreads();  // other: barrier-different|barrier-divergent
#endif
  }
#ifndef FAULT
  __syncthreads();
#endif
  y[t] = s[63 - t];
}
