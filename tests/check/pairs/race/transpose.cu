/* A block transposes two tiles, one after the other, through the same shared memory.

x, y = integers((16, 32)), zeros((32, 16))
module.transpose[1, (16, 16)](x, y)
same(y, x.T)
*/
extern "C" __global__ void transpose(const int *x, int *y) {
  __shared__ int tile[16][17];
  const int i = threadIdx.x, j = threadIdx.y;
#pragma unroll 1
  for (int k = 0; k < 32; k += 16) {
    tile[j][i] = x[j * 32 + k + i];  // fault: race-shared
    __syncthreads();
    y[(k + j) * 16 + i] = tile[i][j];  // other: race-shared
#ifndef FAULT
    __syncthreads();
#endif
  }
}
