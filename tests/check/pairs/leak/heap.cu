/* A kernel's threads leave early, without freeing what they allocated.

x, y = integers(32), zeros(32)
module.copy[1, 32](x, y)
same(y, np.maximum(x, 0))
*/
extern "C" __global__ void copy(const int *x, int *y) {
  volatile int *own = (volatile int *)malloc(16);  // fault: leak-heap
  own[0] = x[threadIdx.x];
  if (own[0] < 0) {
#ifndef FAULT
    free((void *)own);
#endif
    return;
  }
  y[threadIdx.x] = own[0];
  free((void *)own);
}
