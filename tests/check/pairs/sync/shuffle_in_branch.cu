/* A shuffle in a branch names all lanes, half of which are elsewhere; the twin's mask is that of the branch.

x, y = integers(32), zeros(32)
module.sums[1, 32](x, y)
same(y, np.where(np.arange(32) < 16, x + x[np.arange(32) ^ 1], x))
*/
#ifdef FAULT
#define MASK 0xffffffffu
#else
#define MASK 0x0000ffffu
#endif
extern "C" __global__ void sums(const int *x, int *y) {
  const int t = threadIdx.x;
  int v = x[t];
  if (t < 16)
    v += __shfl_xor_sync(MASK, v, 1);  // fault: mask
  else
    __syncwarp(0xffff0000u);  // other: mask
  y[t] = v;
}
