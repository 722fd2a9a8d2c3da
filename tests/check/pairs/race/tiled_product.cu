/* A product of matrices by tiles: the next tile is stored while others still read the one before.

n = 16
a, b, c = integers((n, n)), integers((n, n)), zeros((n, n))
module.product[(2, 2), (8, 8)](a, b, c, n)
same(c, a @ b)
*/
extern "C" __global__ void product(const int *a, const int *b, int *c, int n) {
  __shared__ int left[8][8], right[8][9];
  const int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 8 + y, column = blockIdx.x * 8 + x;
  int sum = 0;
  for (int k = 0; k < n; k += 8) {
    left[y][x] = a[row * n + k + x];       // other: race-shared
    right[y][x] = b[(k + y) * n + column];  // other: race-shared
    __syncthreads();
    for (int i = 0; i < 8; ++i)
      sum += left[y][i] * right[i][x];  // fault: race-shared
#ifndef FAULT
    __syncthreads();
#endif
  }
  c[row * n + column] = sum;
}
