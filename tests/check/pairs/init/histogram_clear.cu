/* Bins in shared memory are counted up without having been cleared.

x, bins = integers(128, 0, 8), zeros(8)
module.count[1, 128](x, bins)
same(bins, np.bincount(x, minlength=8))
*/
extern "C" __global__ void count(const int *x, int *bins) {
  __shared__ int h[8];
#ifndef FAULT
  if (threadIdx.x < 8) h[threadIdx.x] = 0;
#endif
  __syncthreads();
  atomicAdd(&h[x[threadIdx.x]], 1);  // fault: uninitialised-shared
  __syncthreads();
  if (threadIdx.x < 8) bins[threadIdx.x] = h[threadIdx.x];  // also: uninitialised-shared
}
