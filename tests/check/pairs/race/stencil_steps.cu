/* Steps of a stencil with halo in one array: sums are stored before the neighbours have read.

x, y = integers(66), zeros(66)
module.steps[1, 64](x, y, 3)
want = x.copy()
for _ in range(3):
    want[1:-1] = want[:-2] + want[1:-1] + want[2:]
same(y, want)
*/
extern "C" __global__ void steps(const int *x, int *y, int count) {
  __shared__ int s[66];
  const int t = threadIdx.x + 1;
  s[t] = x[t];
  if (t == 1) s[0] = x[0], s[65] = x[65];
  __syncthreads();
  for (int k = 0; k < count; ++k) {
    const int sum = s[t - 1] + s[t] + s[t + 1];  // other: race-shared
#ifndef FAULT
    __syncthreads();
#endif
    s[t] = sum;  // fault: race-shared
    __syncthreads();
  }
  y[t] = s[t];
  if (t == 1) y[0] = s[0], y[65] = s[65];
}
