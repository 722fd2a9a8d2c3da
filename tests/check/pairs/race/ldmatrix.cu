/* A warp loads a tile with ldmatrix that another warp has stored.

x, y = integers(32), zeros(32)
module.load[1, 64](x, y)
same(y, x)
*/
#include "instructions.cuh"
extern "C" __global__ void load(const int *x, int *y) {
  __shared__ __align__(16) int tile[32];
  const int t = threadIdx.x, lane = t % 32;
  if (t < 32) tile[t] = 0;
  __syncthreads();
  if (t < 32) tile[t] = x[t];  // other: race-shared
#ifndef FAULT
  __syncthreads();
#endif
  if (t >= 32) {
    int v;
    LDMATRIX(v, &tile[lane % 8 * 4]);  // fault: race-shared
    y[lane] = v;
  }
}
