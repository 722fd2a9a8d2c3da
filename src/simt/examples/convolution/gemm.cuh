// A tile of a matrix product, computed by a block of 256 threads: 64 columns, and 32 or 64 rows.
constexpr int COLUMNS = 64, DEPTH = 16, GEMM_THREADS = 256;

// Thread t brings element i of a SIDE x DEPTH tile: with neighbours along the depth or along the side,
// whichever are neighbours in memory.
template <bool ALONG_DEPTH, int SIDE>
__device__ inline int side_of(int t, int i) {
  return ALONG_DEPTH ? t / DEPTH + i * (GEMM_THREADS / DEPTH) : t % SIDE;
}
template <bool ALONG_DEPTH, int SIDE>
__device__ inline int depth_of(int t, int i) {
  return ALONG_DEPTH ? t % DEPTH : t / SIDE + i * (GEMM_THREADS / SIDE);
}

// Neighbouring values, loaded at once.
template <int N>
struct __align__(4 * N) Few {
  float at[N];
};

// store(row, column, sum over d from `first` to `last` of left(row, d) * right(d, column)) for the rows and
// columns of the tile at row0, column0. Left::ALONG_DEPTH: neighbouring depths are neighbours in memory.
template <int ROWS, class Left, class Right, class Store>
__device__ void multiply_tile(const Left& left, const Right& right, const Store& store, int row0, int rows,
                              int column0, int columns, int first, int last) {
  constexpr int HEIGHT = ROWS / 16, WIDTH = COLUMNS / 16;  // results of a thread
  __shared__ __align__(16) float a[DEPTH][ROWS + 4], b[DEPTH][COLUMNS + 4];
  int t = threadIdx.x, own_row = t / 16 * HEIGHT, own_column = t % 16 * WIDTH;
  float sums[HEIGHT][WIDTH] = {}, next_a[HEIGHT], next_b[WIDTH];
  auto side_a = [&](int i) { return side_of<Left::ALONG_DEPTH, ROWS>(t, i); };
  auto side_b = [&](int i) { return side_of<Right::ALONG_DEPTH, COLUMNS>(t, i); };
  auto depth_a = [&](int i) { return depth_of<Left::ALONG_DEPTH, ROWS>(t, i); };
  auto depth_b = [&](int i) { return depth_of<Right::ALONG_DEPTH, COLUMNS>(t, i); };
  auto fetch = [&](int d0) {
#pragma unroll
    for (int i = 0; i < HEIGHT; i++) {
      int row = row0 + side_a(i), d = d0 + depth_a(i);
      next_a[i] = row < rows && d < last ? left(row, d) : 0;
    }
#pragma unroll
    for (int i = 0; i < WIDTH; i++) {
      int column = column0 + side_b(i), d = d0 + depth_b(i);
      next_b[i] = column < columns && d < last ? right(d, column) : 0;
    }
  };
  fetch(first);
  for (int d0 = first; d0 < last; d0 += DEPTH) {
#pragma unroll
    for (int i = 0; i < HEIGHT; i++) a[depth_a(i)][side_a(i)] = next_a[i];
#pragma unroll
    for (int i = 0; i < WIDTH; i++) b[depth_b(i)][side_b(i)] = next_b[i];
    __syncthreads();
    if (d0 + DEPTH < last) fetch(d0 + DEPTH);  // arrives while this tile is multiplied
#pragma unroll
    for (int d = 0; d < DEPTH; d++) {
      auto u = *(const Few<HEIGHT>*)&a[d][own_row];
      auto v = *(const Few<WIDTH>*)&b[d][own_column];
#pragma unroll
      for (int i = 0; i < HEIGHT; i++)
#pragma unroll
        for (int j = 0; j < WIDTH; j++) sums[i][j] += u.at[i] * v.at[j];
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < HEIGHT; i++)
#pragma unroll
    for (int j = 0; j < WIDTH; j++)
      if (row0 + own_row + i < rows && column0 + own_column + j < columns)
        store(row0 + own_row + i, column0 + own_column + j, sums[i][j]);
}
