/* Memory of a kernel's malloc is read after free.

x, y = integers(32), zeros(32)
module.copy[1, 32](x, y)
same(y, x)
*/
extern "C" __global__ void copy(const int *x, int *y) {
  volatile int *own = (volatile int *)malloc(16);
  own[0] = x[threadIdx.x];
#ifdef FAULT
  free((void *)own);            // other: use-after-free
  y[threadIdx.x] = own[0];  // fault: use-after-free
#else
  y[threadIdx.x] = own[0];
  free((void *)own);
#endif
}
