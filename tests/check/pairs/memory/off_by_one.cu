/* The last thread writes behind the end of an array.

x, y = integers(100), gpu.zeros(100, np.int32)
module.copy[1, 128](x, y, 100)
same(y, x)
*/
#ifdef FAULT
#define IN(i, n) (i) <= (n)
#else
#define IN(i, n) (i) < (n)
#endif
extern "C" __global__ void copy(const int *x, int *y, int n) {
  const int i = threadIdx.x;
  if (IN(i, n)) y[i] = i < n ? x[i] : 0;  // fault: out-of-bounds
}
