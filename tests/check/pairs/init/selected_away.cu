/* Values beyond the end are loaded, but a selection takes zero in their place; the faulty one has the wrong limit.

x, y = integers(40), zeros(64)
module.copy[1, 64](x, y, 40)
same(y, np.maximum(np.pad(x, (0, 24)), 0))
*/
#ifdef FAULT
#define LIMIT (n + 1)
#else
#define LIMIT n
#endif
extern "C" __global__ void copy(const int *x, int *y, int n) {
  __shared__ int s[64];
  const int t = threadIdx.x;
  if (t < n) s[t] = x[t];
  __syncthreads();
  const int raw = ((volatile int *)s)[t];  // other: uninitialised-shared
  int v;
  asm volatile("{ .reg .pred p; setp.lt.s32 p, %1, %2; selp.s32 %0, %3, 0, p; }" : "=r"(v) : "r"(t), "r"(LIMIT), "r"(raw));  // other: uninitialised-shared
  if (v < 0) v = 0;  // fault: uninitialised-shared
  y[t] = v;          // other: uninitialised-shared
}
