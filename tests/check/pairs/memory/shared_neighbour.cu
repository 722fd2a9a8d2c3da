/* An index beyond a shared array reaches the array beside it.

x, y = integers(64), zeros(64)
module.shift[1, 64](x, y)
same(y, np.append(x[1:], 0) + 7)
*/
#ifdef FAULT
#define LAST 64
#else
#define LAST 63
#endif
extern "C" __global__ void shift(const int *x, int *y) {
  __shared__ int first[64], second[64];
  volatile int *a = first, *b = second;
  const int t = threadIdx.x;
  a[t] = x[t], b[t] = 7;
  __syncthreads();
  y[t] = (t < LAST ? a[t + 1] : 0) + b[t];  // fault: out-of-bounds
}
