/* A barrier of the whole warp in one branch only. Lanes of the twin that have ended need not come.

x, y = integers(32), zeros(32)
module.reverse[1, 32](x, y)
same(y, np.concatenate([x[15::-1], np.zeros(16, np.int32)]))
*/
extern "C" __global__ void reverse(const int *x, int *y) {
  __shared__ int s[32];
  const int t = threadIdx.x;
  s[t] = x[t];
#ifdef FAULT
  if (t < 16) {
    __syncwarp();  // fault: mask
    y[t] = s[15 - t];
  } else {
    __shfl_xor_sync(0xffff0000u, t, 1);
    s[t] = __shfl_xor_sync(~0u, t, 1);  // other: mask
  }
#else
  if (t >= 16) return;
  __syncwarp();
  y[t] = s[15 - t];
#endif
}
