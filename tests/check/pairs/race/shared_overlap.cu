/* Two arrays in dynamic shared memory; the second begins at the last element of the first.

x, y = integers(64), zeros(64)
module.two[1, 64, 4 * 128](x, y)
same(y, x[::-1] + 2 * x)
*/
#ifdef FAULT
#define BEGIN 63
#else
#define BEGIN 64
#endif
extern "C" __global__ void two(const int *x, int *y) {
  extern __shared__ int a[];
  int *b = a + BEGIN;
  const int t = threadIdx.x;
  a[t] = x[t];      // other: race-shared
  b[t] = 2 * x[t];  // fault: race-shared
  __syncthreads();
  y[t] = a[63 - t] + b[t];
}
