/* Memory of malloc in a kernel is used as if it held zeros.

x, y = integers(32, 0, 4), zeros(4)
module.count[1, 1](x, y)
same(y, np.bincount(x, minlength=4))
*/
extern "C" __global__ void count(const int *x, int *y) {
  int *bins = (int *)malloc(4 * sizeof(int));
#ifndef FAULT
  for (int i = 0; i < 4; ++i) ((volatile int *)bins)[i] = 0;
#endif
#pragma unroll 1
  for (int i = 0; i < 32; ++i) ((volatile int *)bins)[x[i]] += 1;
#pragma unroll 1
  for (int i = 0; i < 4; ++i)
    if (((volatile int *)bins)[i] > 0)  // fault: uninitialised-global
      y[i] = ((volatile int *)bins)[i];  // also: uninitialised-global
  free(bins);
}
