/* A loop with a barrier, in which some threads do one step more than others.

x, y = integers(100), zeros(100)
module.rotate[1, 32](x, y, 100)
want = np.concatenate([np.roll(x[i : i + 32], -1) for i in range(0, 96, 32)] + [np.roll(np.pad(x[96:], (0, 28)), -1)])
same(y, want[:100])
*/
extern "C" __global__ void rotate(const int *x, int *y, int n) {
  __shared__ int s[32];
  const int t = threadIdx.x;
#ifdef FAULT
  for (int i = t; i < n; i += 32) {
#else
  for (int i = t; i - t < n; i += 32) {
#endif
    s[t] = i < n ? x[i] : 0;
    __syncthreads();  // fault: barrier-divergent
    if (i < n) y[i] = s[(t + 1) % 32];
    __syncthreads();  // fault: barrier-divergent
  }
}  // other: barrier-divergent
