/* All lanes of a warp store the mean that they have combined, each in its own order, as Triton's reductions by Welford
do. Without the first exchange there are two means, and which of them stays is chance.

x, y = (integers((4, 32)) / 7).astype(np.float32), zeros(4, np.float32)
module.means[1, 128](x, y)
same((y - x.mean(1)).round(3), zeros(4))
*/
extern "C" __global__ void means(const float *x, float *y) {
  __shared__ float sums[4];
  const int warp = threadIdx.x / 32;
  float mean = x[threadIdx.x];
#ifdef FAULT
  const int first = 8;
#else
  const int first = 16;
#endif
#pragma unroll
  for (int k = first; k > 0; k /= 2) mean += 0.5f * (__shfl_xor_sync(~0u, mean, k) - mean);
  sums[warp] = mean;  // fault: race-shared
  __syncthreads();
  if (threadIdx.x < 4) y[threadIdx.x] = sums[threadIdx.x];
}
