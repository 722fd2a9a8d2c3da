/* A vote within the warps is taken for a barrier; __syncthreads_count() of the twin is one.

x, y = integers(64), zeros(64)
module.reverse[1, 64](x, y)
same(y, x[::-1] + (x > 0).sum())
*/
extern "C" __global__ void reverse(const int *x, int *y) {
  __shared__ int s[64];
  const int t = threadIdx.x;
  s[t] = 0;
  __syncthreads();
  s[t] = x[t];  // other: race-shared
#ifdef FAULT
  const int n = __popc(__ballot_sync(~0u, x[t] > 0));
#else
  const int n = __syncthreads_count(x[t] > 0);
#endif
  y[t] = s[63 - t] + n;  // fault: race-shared
}
