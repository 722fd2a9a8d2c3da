/* Bins are cleared by some threads while others already count.
Of https://github.com/alicevision/popsift/pull/82, in words of our own.

x, bins = integers(128, 0, 36), zeros(36)
module.orientations[1, 128](x, bins)
same(bins, np.bincount(x, minlength=36))
*/
extern "C" __global__ void orientations(const int *x, int *bins) {
  __shared__ int h[36];
  if (threadIdx.x >= 92) h[threadIdx.x - 92] = 0;  // other: race-shared
#ifndef FAULT
  __syncthreads();
#endif
  atomicAdd(&h[x[threadIdx.x]], 1);  // fault: race-shared // also: uninitialised-shared
  __syncthreads();
  if (threadIdx.x < 36) bins[threadIdx.x] = h[threadIdx.x];  // also: uninitialised-shared
}
