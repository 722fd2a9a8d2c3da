/* A histogram over several blocks, without atomics.

x, bins = integers(128, 0, 8), zeros(8)
module.count[2, 64](x, bins)
same(bins, np.bincount(x, minlength=8))
*/
extern "C" __global__ void count(const int *x, int *bins) {
  int *bin = bins + x[blockIdx.x * 64 + threadIdx.x];
#ifdef FAULT
  *bin += 1;  // fault: race-global
#else
  atomicAdd(bin, 1);
#endif
}
