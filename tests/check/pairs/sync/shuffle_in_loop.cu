/* Lanes leave a loop at different times, though each step's shuffle names all of them.

x, y = integers(32, 1, 9), zeros(32)
module.steps[1, 32](x, y)
want = x.copy()
for k in range(8):
    want = np.where(k < x, want + want[np.arange(32) ^ 1], want)
same(y, want)
*/
extern "C" __global__ void steps(const int *x, int *y) {
  const int t = threadIdx.x;
  int v = x[t];
#ifdef FAULT
#pragma unroll 1
  for (int k = 0; k < x[t]; ++k) v += __shfl_xor_sync(~0u, v, 1);  // fault: mask
  __syncwarp();                                                    // other: mask
#else
#pragma unroll 1
  for (int k = 0; k < 8; ++k) {
    const int other = __shfl_xor_sync(~0u, v, 1);
    if (k < x[t]) v += other;
  }
#endif
  y[t] = v;
}
