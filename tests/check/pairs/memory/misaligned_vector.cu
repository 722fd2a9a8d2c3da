/* Vectors of four are loaded from an address that is no multiple of their size.

x, y = gpu.array(integers(129)), zeros(32)
module.sums[1, 32](x, y)
same(y, x.numpy()[1:].reshape(32, 4).sum(1))
*/
extern "C" __global__ void sums(const int *x, int *y) {
  const int t = threadIdx.x;
#ifdef FAULT
  const int4 v = ((const int4 *)(x + 1))[t];  // fault: misaligned
#else
  const int4 v = make_int4(x[4 * t + 1], x[4 * t + 2], x[4 * t + 3], x[4 * t + 4]);
#endif
  y[t] = v.x + v.y + v.z + v.w;
}
