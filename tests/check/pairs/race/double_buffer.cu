/* Two buffers and one barrier a step; the faulty kernel writes to the buffer that the others read.

x, y = integers(64), zeros(64)
module.steps[1, 64](x, y, 4)
want = x.copy()
for _ in range(4):
    want = want + np.roll(want, -1)
same(y, want)
*/
#ifdef FAULT
#define NEXT(k) (k) % 2
#else
#define NEXT(k) ((k) + 1) % 2
#endif
extern "C" __global__ void steps(const int *x, int *y, int count) {
  __shared__ int s[2][64];
  const int t = threadIdx.x;
  s[0][t] = s[1][t] = x[t];
  __syncthreads();
  for (int k = 0; k < count; ++k) {
    const int sum = s[k % 2][t] + s[k % 2][(t + 1) % 64];  // other: race-shared
    s[NEXT(k)][t] = sum;                                   // fault: race-shared
    __syncthreads();
  }
  y[t] = s[count % 2][t];
}
