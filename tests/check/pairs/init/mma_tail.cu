/* A tile of a product is not full: rows that are missing spoil only themselves, but missing columns spoil all.

a, b, y = halves((8, 8)), halves((8, 8)), zeros((8, 8), np.float32)
module.product[1, 32](a, b, y)
same(y, a.astype(np.float32) @ b.T.astype(np.float32))
*/
extern "C" __global__ void product(const unsigned *a, const unsigned *b, float2 *y) {
  __shared__ unsigned left[16][8], right[8][8];  // 16 x 16 and 8 x 16 halves
  const int t = threadIdx.x, row = t / 4, column = t % 4;
  left[row][column] = a[t];
  right[row][column] = b[t];
#ifndef FAULT
  left[row][column + 4] = 0;
#endif
  right[row][column + 4] = 0;
  __syncwarp();
  float d[4] = {0, 0, 0, 0};
  const unsigned l[4] = {left[row][column], left[row + 8][column],  // other: uninitialised-shared
                         left[row][column + 4],  // other: uninitialised-shared
                         left[row + 8][column + 4]};
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(l[0]), "r"(l[1]), "r"(l[2]), "r"(l[3]), "r"(right[row][column]), "r"(right[row][column + 4]));  // other: uninitialised-shared
  if (d[0] > 1e30f || d[1] > 1e30f) __trap();  // fault: uninitialised-shared
  y[row * 4 + column] = make_float2(d[0], d[1]);  // also: uninitialised-shared
}
