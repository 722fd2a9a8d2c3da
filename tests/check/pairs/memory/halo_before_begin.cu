/* The first thread reads an element before the array.

x, y = gpu.array(integers(64)), zeros(64)
module.difference[1, 64](x, y)
same(y, np.diff(x.numpy(), prepend=0))
*/
extern "C" __global__ void difference(const int *x, int *y) {
  const int i = threadIdx.x;
#ifdef FAULT
  y[i] = x[i] - x[i - 1];  // fault: out-of-bounds
#else
  y[i] = x[i] - (i ? x[i - 1] : 0);
#endif
}
