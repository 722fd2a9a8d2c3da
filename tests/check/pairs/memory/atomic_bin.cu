/* A bin's number is not checked before counting.

x = integers(64, 0, 9)
x[3] = 8
bins = gpu.zeros(8, np.int32)
module.count[1, 64](x, bins)
same(bins, np.bincount(x, minlength=9)[:8])
*/
extern "C" __global__ void count(const int *x, int *bins) {
  const int bin = x[threadIdx.x];
#ifndef FAULT
  if (bin < 8)
#endif
    atomicAdd(bins + bin, 1);  // fault: out-of-bounds
}
