/* Parts of a warp synchronise by masks that are computed from the wrong end of the thread's number.
Of https://github.com/kokkos/kokkos/issues/1958, in words of our own.

x, y = integers(32), zeros(32)
module.parts[1, 32](x, y, 8)
same(y, np.repeat(x.reshape(4, 8).sum(1), 8))
*/
#ifdef FAULT
#define PART (threadIdx.x % (32 / width))
#else
#define PART (threadIdx.x / width)
#endif
extern "C" __global__ void parts(const int *x, int *y, int width) {
  const unsigned mask = ((1u << width) - 1) << PART * width;
  int v = x[threadIdx.x];
  for (int d = width / 2; d > 0; d /= 2) v += __shfl_xor_sync(mask, v, d, width);  // fault: mask
  y[threadIdx.x] = v;  // also: mask
}
