/* The last block has fewer elements than threads, and sums what nobody stored.

x, sums = integers(100), zeros(2)
module.reduce[2, 64](x, sums, 100)
same(sums, [x[:64].sum(), x[64:].sum()])
*/
extern "C" __global__ void reduce(const int *x, int *sums, int n) {
  __shared__ int s[64];
  const int t = threadIdx.x, i = blockIdx.x * 64 + t;
#ifdef FAULT
  if (i < n) s[t] = x[i];
#else
  s[t] = i < n ? x[i] : 0;
#endif
  __syncthreads();
  for (int d = 32; d > 0; d /= 2) {
    if (t < d) s[t] += s[t + d];  // fault: uninitialised-shared
    __syncthreads();
  }
  if (t == 0 && s[0] != 1 << 30) sums[blockIdx.x] = s[0];  // also: uninitialised-shared
}
