/* The mask of a shuffle does not name the lanes that execute it.

x, y = integers(32), zeros(32)
module.swap[1, 32](x, y)
same(y, x[np.arange(32) ^ 1])
*/
extern "C" __global__ void swap(const int *x, int *y) {
  const int t = threadIdx.x;
#ifdef FAULT
  const unsigned mask = t < 16 ? 0xffff0000u : 0x0000ffffu;
#else
  const unsigned mask = t < 16 ? 0x0000ffffu : 0xffff0000u;
#endif
  y[t] = __shfl_xor_sync(mask, x[t], 1);  // fault: mask
}
