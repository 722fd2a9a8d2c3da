/* Data that the kernel itself has written is loaded as read-only (ld.global.nc), which need not see it.

x, y = integers(64), zeros(64)
want = np.roll(2 * x, -1)
module.shift[1, 64](x, y)
same(y, want)
*/
extern "C" __global__ void shift(int *x, int *y) {
  const int t = threadIdx.x;
  x[t] *= 2;  // other: read-only-write|race-global
  __syncthreads();
#ifdef FAULT
  y[t] = __ldg(x + (t + 1) % 64);  // fault: read-only-write|race-global
#else
  y[t] = x[(t + 1) % 64];
#endif
}
