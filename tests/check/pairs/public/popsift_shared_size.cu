/* A kernel with arrays in dynamic shared memory is launched without any.
Of https://github.com/alicevision/popsift/pull/109, in words of our own.

x, y = integers(64), zeros(64)
module.sort[1, 64, 0 if fault else 2 * 4 * 64](x, y)
same(y, x[::-1])
*/
extern "C" __global__ void sort(const int *x, int *y) {
  extern __shared__ int keys[];
  int *values = keys + 64;
  const int t = threadIdx.x;
  keys[t] = 63 - t;   // fault: out-of-bounds
  values[t] = x[t];  // other: out-of-bounds
  __syncthreads();
  y[t] = values[keys[t]];  // other: out-of-bounds
}
