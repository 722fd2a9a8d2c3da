/* A kernel fills the first elements of an array; the next one adds up all of it.

x, kept, n, out = integers(64), gpu.empty(64, np.int32), gpu.zeros(1, np.int32), zeros(1)
module.keep[1, 64](x, kept, n)
module.largest[1, 1](kept, n, out)
same(out, [x.max()])
*/
extern "C" __global__ void keep(const int *x, int *kept, int *n) {
  if (x[threadIdx.x] > 0) kept[atomicAdd(n, 1)] = x[threadIdx.x];
}
extern "C" __global__ void largest(const int *kept, const int *n, int *out) {
  int best = 0;
#ifdef FAULT
  const int end = 64;
#else
  const int end = *n;
#endif
#pragma unroll 1
  for (int i = 0; i < end; ++i)
    if (kept[i] > best) best = kept[i];  // fault: uninitialised-global
  *out = best;                            // also: uninitialised-global
}
