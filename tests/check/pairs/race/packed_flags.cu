/* Two threads set halves of one byte. In the twin, each has a byte of its own in a common word.

x, y = integers(64), zeros(64)
module.flags[1, 64](x, y)
same(y, x[::-1] & 1)
*/
extern "C" __global__ void flags(const int *x, int *y) {
  __shared__ unsigned char s[64];
  const int t = threadIdx.x;
  s[t] = 0;
  __syncthreads();
#ifdef FAULT
  s[t / 2] |= (x[t] & 1) << t % 2;  // fault: race-shared
#else
  s[t] |= x[t] & 1;
#endif
  __syncthreads();
#ifdef FAULT
  y[t] = s[(63 - t) / 2] >> (63 - t) % 2 & 1;
#else
  y[t] = s[63 - t];
#endif
}
