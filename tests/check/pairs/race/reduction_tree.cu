/* A tree reduction in shared memory without a barrier between its levels.

x, sums = integers(512), zeros(4)
module.reduce[4, 128](x, sums)
same(sums, x.reshape(4, 128).sum(1))
*/
extern "C" __global__ void reduce(const int *x, int *sums) {
  __shared__ int s[128];
  const int t = threadIdx.x;
  s[t] = x[blockIdx.x * 128 + t];  // other: race-shared
  __syncthreads();
  for (int d = 64; d > 0; d /= 2) {
    if (t < d) s[t] += s[t + d];  // fault: race-shared
#ifndef FAULT
    __syncthreads();
#endif
  }
  if (t == 0) sums[blockIdx.x] = s[0];
}
