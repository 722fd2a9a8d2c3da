/* A kernel frees memory of its heap twice.

x, y = integers(32), zeros(32)
module.copy[1, 32](x, y)
same(y, x)
*/
extern "C" __global__ void copy(const int *x, int *y) {
  volatile int *own = (volatile int *)malloc(16);
  own[0] = x[threadIdx.x];
  y[threadIdx.x] = own[0];
  free((void *)own);  // other: double-free
#ifdef FAULT
  free((void *)own);  // fault: double-free
#endif
}
