/* A thread's own array is filled at some places, and read at others.

x, y = integers(64, 0, 8), zeros(64)
module.look_up[1, 64](x, y)
same(y, np.where(x % 2 == 0, 3 * x, -1))
*/
extern "C" __global__ void look_up(const int *x, int *y) {
  int table[8];
#ifndef FAULT
#pragma unroll 1
  for (int i = 0; i < 8; ++i) ((volatile int *)table)[i] = -1;
#endif
#pragma unroll 1
  for (int i = 0; i < 8; i += 2) ((volatile int *)table)[i] = 3 * i;
  const int v = ((volatile int *)table)[x[threadIdx.x]];  // other: uninitialised-local
  if (v > -2) y[threadIdx.x] = v;                         // fault: uninitialised-local
}
