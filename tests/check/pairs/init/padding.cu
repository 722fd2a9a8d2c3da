/* Rows of three numbers and one of padding are loaded as vectors; the faulty kernel uses the padding.

x, y = integers((32, 3)), zeros(32)
module.lengths[1, 32](x, y)
same(y, (x * x).sum(1))
*/
#include "instructions.cuh"
extern "C" __global__ void lengths(const int *x, int *y) {
  __shared__ int4 rows[32];
  const int t = threadIdx.x;
  rows[t].x = x[3 * t], rows[t].y = x[3 * t + 1], rows[t].z = x[3 * t + 2];
  __syncthreads();
  int4 v;
  LOAD_SHARED4(v, &rows[31 - t]);  // other: uninitialised-shared
  int sum = v.x * v.x + v.y * v.y + v.z * v.z;
#ifdef FAULT
  if (v.w == 77) return;  // fault: uninitialised-shared
#endif
  y[31 - t] = sum;
}
