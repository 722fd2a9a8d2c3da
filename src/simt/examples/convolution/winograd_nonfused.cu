// Winograd convolution in several kernels: data and filters are transformed to 36 points, a matrix product is
// made at each point, and the products are transformed back. Tiles are of 6 x 6: F(4x4, 3x3), F(2x2, 5x5),
// ...
#include "gemm.cuh"
#include "shape.cuh"
#include "winograd.cuh"

constexpr int T = 6, POINTS = T * T;

// Images that are cut into tiles: `step` outputs apart, the first at (top, left).
struct Tiling {
  int n, channels, height, width, down, across, step, top, left;
};
struct Place {
  int channel, n, row, column;  // in pixels
  __device__ Place(int i, const Tiling& z) {
    int tiles = z.down * z.across;
    channel = i / (z.n * tiles), n = i / tiles % z.n;
    row = i % tiles / z.across * z.step + z.top, column = i % tiles % z.across * z.step + z.left;
  }
};
__device__ inline void scatter(const float (&tile)[T][T], float* points, int i, int count) {
#pragma unroll
  for (int point = 0; point < POINTS; point++) points[point * count + i] = tile[point / T][point % T];
}

// v[point][channel][image and tile]. A thread for each tile, as in the next two.
extern "C" __global__ void winograd_data(const float* x, float* v, Tiling z) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, count = z.channels * z.n * z.down * z.across;
  if (i >= count) return;
  Place at(i, z);
  float tile[T][T];
  window(x + (at.n * z.channels + at.channel) * z.height * z.width, at.row, at.column, z.height, z.width,
         tile);
  data_2d(tile);
  scatter(tile, v, i, count);
}
// u[point][output][input]. output, input: strides of both kinds of channel in w, in filters.
template <int R>
__global__ void winograd_filters(const float* w, float* u, int outputs, int inputs, int output, int input,
                                 int turned) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= outputs * inputs) return;
  float g[R][R], tile[T][T];
  filter(w + (i / inputs * output + i % inputs * input) * R * R, turned, g);
  taps_2d(g, tile);
  scatter(tile, u, i, outputs * inputs);
}
// u[point][filter][image and tile]: tiles of dy as taps. STEP: their side.
template <int STEP>
__global__ void winograd_gradients(const float* dy, float* u, Tiling z) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, count = z.channels * z.n * z.down * z.across;
  if (i >= count) return;
  Place at(i, z);
  float g[STEP][STEP], tile[T][T];
  window(dy + (at.n * z.channels + at.channel) * z.height * z.width, at.row, at.column, z.height, z.width, g);
  taps_2d(g, tile);
  scatter(tile, u, i, count);
}

struct RowsOf {
  static constexpr bool ALONG_DEPTH = true;
  const float* at;
  int depth;
  __device__ float operator()(int row, int d) const { return at[row * depth + d]; }
};
struct ColumnsOf {
  static constexpr bool ALONG_DEPTH = false;
  const float* at;
  int columns;
  __device__ float operator()(int d, int column) const { return at[d * columns + column]; }
};
struct ColumnsTransposed {
  static constexpr bool ALONG_DEPTH = true;
  const float* at;
  int depth;
  __device__ float operator()(int d, int column) const { return at[column * depth + d]; }
};
// m = u * v at each point. Grid: tiles of columns, tiles of rows, points.
template <int ROWS>
__global__ void __launch_bounds__(GEMM_THREADS)
    winograd_multiply(const float* u, const float* v, float* m, int rows, int columns, int depth) {
  int point = blockIdx.z;
  auto store = [&](int row, int column, float sum) { m[(point * rows + row) * columns + column] = sum; };
  multiply_tile<ROWS>(RowsOf{u + point * rows * depth, depth},
                      ColumnsOf{v + point * depth * columns, columns}, store, blockIdx.y * ROWS, rows,
                      blockIdx.x * COLUMNS, columns, 0, depth);
}
// The same with the transpose of v.
template <int ROWS>
__global__ void __launch_bounds__(GEMM_THREADS)
    winograd_multiply_transposed(const float* u, const float* v, float* m, int rows, int columns, int depth) {
  int point = blockIdx.z;
  auto store = [&](int row, int column, float sum) { m[(point * rows + row) * columns + column] = sum; };
  multiply_tile<ROWS>(RowsOf{u + point * rows * depth, depth},
                      ColumnsTransposed{v + point * columns * depth, depth}, store, blockIdx.y * ROWS, rows,
                      blockIdx.x * COLUMNS, columns, 0, depth);
}

__device__ inline void gather(const float* points, int i, int count, float (&tile)[T][T]) {
#pragma unroll
  for (int point = 0; point < POINTS; point++) tile[point / T][point % T] = points[point * count + i];
}
// Images from m[point][channel][image and tile]. STEP: the side of a tile's outputs.
template <int STEP>
__global__ void winograd_outputs(const float* m, float* y, Tiling z) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, count = z.channels * z.n * z.down * z.across;
  if (i >= count) return;
  Place at(i, z);
  float tile[T][T], values[STEP][STEP];
  gather(m, i, count, tile);
  outputs_2d(tile, values);
  y += ((at.n * z.channels + at.channel) * z.height + at.row) * z.width + at.column;
#pragma unroll
  for (int r = 0; r < STEP; r++)
#pragma unroll
    for (int s = 0; s < STEP; s++)
      if (at.row + r < z.height && at.column + s < z.width) y[r * z.width + s] = values[r][s];
}
// Filters from m[point][filter and channel].
template <int R>
__global__ void winograd_filter_gradients(const float* m, float* dw, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  float tile[T][T], values[R][R];
  gather(m, i, count, tile);
  outputs_2d(tile, values);
#pragma unroll
  for (int r = 0; r < R; r++)
#pragma unroll
    for (int s = 0; s < R; s++) dw[i * R * R + r * R + s] = values[r][s];
}
