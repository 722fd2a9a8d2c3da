/* Threads beyond the end leave before the others meet at a barrier.

x, y = integers(50), zeros(50)
module.reverse[1, 64](x, y, 50)
same(y, x[::-1])
*/
extern "C" __global__ void reverse(const int *x, int *y, int n) {
  __shared__ int s[64];
  const int t = threadIdx.x;
#ifdef FAULT
  if (t >= n) return;  // other: barrier-divergent
  s[t] = x[t];
#else
  if (t < n) s[t] = x[t];
#endif
  __syncthreads();  // fault: barrier-divergent
  if (t < n) y[t] = s[n - 1 - t];
}
