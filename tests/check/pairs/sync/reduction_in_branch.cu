/* A sum of a warp names all lanes in a branch that half of them take; the others wait at the end of the warp's work.

x, y = integers(32), zeros(32)
module.sums[1, 32](x, y)
same(y, np.where(np.arange(32) < 16, x[:16].sum(), x))
*/
extern "C" __global__ void sums(const int *x, int *y) {
  const int t = threadIdx.x;
  int v = x[t];
#ifdef FAULT
#define MASK 0xffffffff
#else
#define MASK 0x0000ffff
#endif
  if (t < 16) v = __reduce_add_sync(MASK, v);  // fault: mask|deadlock
  __syncwarp();                                // other: mask // also: mask|deadlock
  y[t] = v;
}
