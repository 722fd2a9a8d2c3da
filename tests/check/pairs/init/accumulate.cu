/* Sums are added to an array of the device that nobody has cleared.

x, y = integers(64), (gpu.empty if fault else gpu.zeros)(64, np.int32)
module.add[1, 64](x, y)
same(y, np.maximum(x, 0))
*/
extern "C" __global__ void add(const int *x, int *y) {
  const int v = y[threadIdx.x] + x[threadIdx.x];  // other: uninitialised-global
  y[threadIdx.x] = v > 0 ? v : 0;                 // fault: uninitialised-global
}
