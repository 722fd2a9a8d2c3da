/* Halves of a warp wait for themselves alone, but the partner is in the other half. Of the twin, it is not.

x, y = integers(32), zeros(32)
module.exchange[1, 32](x, y)
same(y, x[np.arange(32) ^ 8])
*/
#ifdef FAULT
#define PARTNER 16
#else
#define PARTNER 8
#endif
extern "C" __global__ void exchange(const int *x, int *y) {
  __shared__ int s[32];
  const int t = threadIdx.x;
  s[t] = 0;
  __syncthreads();
  s[t] = x[t];  // other: race-shared
  __syncwarp(t < 16 ? 0x0000ffffu : 0xffff0000u);
  y[t] = s[t ^ PARTNER];  // fault: race-shared
}
