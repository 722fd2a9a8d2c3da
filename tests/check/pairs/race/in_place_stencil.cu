/* A stencil in place: each thread overwrites what neighbours, also of other blocks, read.

x, y = integers(130), zeros(130)
module.smooth[2, 64](x, x if fault else y)
same(y[1:-1], x[:-2] + x[2:])
*/
extern "C" __global__ void smooth(const int *x, int *y) {
  const int i = blockIdx.x * 64 + threadIdx.x + 1;
  y[i] = x[i - 1] + x[i + 1];  // fault: race-global
}
