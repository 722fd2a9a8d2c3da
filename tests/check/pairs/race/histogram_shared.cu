/* A histogram in shared memory whose bins are counted without atomics.

x, bins = integers(256, 0, 8), zeros(8)
module.count[1, 256](x, bins)
same(bins, np.bincount(x, minlength=8))
*/
extern "C" __global__ void count(const int *x, int *bins) {
  __shared__ int h[8];
  if (threadIdx.x < 8) h[threadIdx.x] = 0;
  __syncthreads();
#ifdef FAULT
  h[x[threadIdx.x]]++;  // fault: race-shared
#else
  atomicAdd(&h[x[threadIdx.x]], 1);
#endif
  __syncthreads();
  if (threadIdx.x < 8) bins[threadIdx.x] = h[threadIdx.x];
}
