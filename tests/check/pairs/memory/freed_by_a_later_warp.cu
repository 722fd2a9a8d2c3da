/* One thread allocates memory for the block. In the faulty kernel another one frees it while others may still use it.

x, y = integers(64), zeros(64)
module.borrow[1, 64](x, y)
same(y, 2 * x)
*/
extern "C" __global__ void borrow(const int *x, int *y) {
  __shared__ int *volatile own;
  const int t = threadIdx.x;
  if (t == 0) own = (int *)malloc(256);
  __syncthreads();
  volatile int *mine = own;
  mine[t] = x[t];      // other: use-after-free
  y[t] = 2 * mine[t];  // other: use-after-free
#ifndef FAULT
  __syncthreads();
#endif
  if (t == 63) free((void *)mine);  // fault: use-after-free
}
