// Winograd convolution in one kernel, F(2x2, 3x3): tiles are transformed into shared memory, multiplied there
// at each of the 16 points, and transformed back.
#include "shape.cuh"
#include "splits.cuh"
#include "winograd.cuh"

constexpr int POINTS = 16, ROWS = 32, COLUMNS = 16, STEP = 8, THREADS = 256;

// Sums left(row, d) * right(d, column) at every point over the depths from `first` to `last`, in steps of
// STEP, for the ROWS rows and COLUMNS columns of a block; store(row, column, 4 x 4 values) receives them.
// prepare(d) is called before each step; left and right give transformed tiles of 4 x 4. ALONG_DEPTH: those
// of right at neighbouring depths are neighbours in memory.
template <bool ALONG_DEPTH, class Prepare, class Left, class Right, class Store>
__device__ void multiply_points(const Prepare& prepare, const Left& left, const Right& right,
                                const Store& store, int first, int last) {
  __shared__ union {
    struct {
      float u[POINTS][STEP][ROWS + 4], v[POINTS][STEP][COLUMNS + 4];
    };
    float m[POINTS][ROWS][COLUMNS];
  } shared;
  int t = threadIdx.x, point = t / 16, own_row = t % 16 / 4 * 8, own_column = t % 4 * 4;
  float sums[8][4] = {}, tile[4][4];
  for (int d0 = first; d0 < last; d0 += STEP) {
    prepare(d0);
    int row = t / STEP, depth = t % STEP;
    left(row, d0 + depth, last, tile);
#pragma unroll
    for (int i = 0; i < POINTS; i++) shared.u[i][depth][row] = tile[i / 4][i % 4];
    if (t < COLUMNS * STEP) {
      int column = ALONG_DEPTH ? t / STEP : t % COLUMNS;
      depth = ALONG_DEPTH ? t % STEP : t / COLUMNS;
      right(d0 + depth, last, column, tile);
#pragma unroll
      for (int i = 0; i < POINTS; i++) shared.v[i][depth][column] = tile[i / 4][i % 4];
    }
    __syncthreads();
#pragma unroll
    for (int d = 0; d < STEP; d++) {
      const float4* rows = (const float4*)&shared.u[point][d][own_row];
      float4 f = rows[0], g = rows[1], h = *(const float4*)&shared.v[point][d][own_column];
      float a[8] = {f.x, f.y, f.z, f.w, g.x, g.y, g.z, g.w}, b[4] = {h.x, h.y, h.z, h.w};
#pragma unroll
      for (int i = 0; i < 8; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) sums[i][j] += a[i] * b[j];
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 8; i++)
#pragma unroll
    for (int j = 0; j < 4; j++) shared.m[point][own_row + i][own_column + j] = sums[i][j];
  __syncthreads();
  for (int row = t / COLUMNS; row < ROWS; row += THREADS / COLUMNS) {
#pragma unroll
    for (int i = 0; i < POINTS; i++) tile[i / 4][i % 4] = shared.m[i][row][t % COLUMNS];
    store(row, t % COLUMNS, tile);
  }
}

__device__ inline void clear(float (&tile)[4][4]) {
#pragma unroll
  for (int i = 0; i < POINTS; i++) tile[i / 4][i % 4] = 0;
}

// Convolves images of `channels` channels with 3 x 3 filters. Backward data is the same with filters that are
// turned and whose channels are exchanged. Grid: groups of 16 tiles of 2 x 2 outputs, groups of 32 outputs.
// output, input: strides of both kinds of channel in w, in filters.
struct Images {
  int n, channels, height, width, outputs, out_height, out_width, pad_h, pad_w, output, input, turned;
};
extern "C" __global__ void __launch_bounds__(THREADS)
    winograd_convolve(const float* x, const float* w, float* y, Images z) {
  int first_output = blockIdx.y * ROWS, first_tile = blockIdx.x * COLUMNS;
  int across = (z.out_width + 1) / 2, tiles = (z.out_height + 1) / 2 * across;
  // Filters are copied in the order in which they are in memory.
  __shared__ float filters[ROWS][STEP * 9 + 8];
  auto prepare = [&](int channel0) {
    for (int i = threadIdx.x; i < ROWS * STEP * 9; i += THREADS) {
      int row = z.turned ? i / 9 % ROWS : i / (9 * STEP), d = z.turned ? i / (9 * ROWS) : i / 9 % STEP;
      int output = first_output + row, channel = channel0 + d;
      bool inside = output < z.outputs && channel < z.channels;
      filters[row][d * 9 + i % 9] = inside ? w[(output * z.output + channel * z.input) * 9 + i % 9] : 0;
    }
    __syncthreads();
  };
  auto left = [&](int row, int channel, int last, float (&tile)[4][4]) {
    float g[3][3];
    filter(filters[row] + channel % STEP * 9, z.turned, g);
    taps_2d(g, tile);
  };
  auto right = [&](int channel, int last, int column, float (&tile)[4][4]) {
    int at = first_tile + column, n = at / tiles;
    if (n >= z.n || channel >= last) return clear(tile);
    window(x + (n * z.channels + channel) * z.height * z.width, at % tiles / across * 2 - z.pad_h,
           at % tiles % across * 2 - z.pad_w, z.height, z.width, tile);
    data_2d(tile);
  };
  auto store = [&](int row, int column, const float (&tile)[4][4]) {
    int at = first_tile + column, n = at / tiles, output = first_output + row;
    if (n >= z.n || output >= z.outputs) return;
    float values[2][2];
    outputs_2d(tile, values);
    int top = at % tiles / across * 2, from_left = at % tiles % across * 2;
    float* to = y + ((n * z.outputs + output) * z.out_height + top) * z.out_width + from_left;
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
      for (int j = 0; j < 2; j++)
        if (top + i < z.out_height && from_left + j < z.out_width) to[i * z.out_width + j] = values[i][j];
  };
  multiply_points<false>(prepare, left, right, store, 0, z.channels);
}

// F(3x3, 2x2): tiles of 2 x 2 of dy are the taps, and the 3 x 3 elements of dw the outputs; the sum over
// tiles is one over depths. Grid: groups of 16 channels, groups of 32 filters, splits of `length` tiles.
extern "C" __global__ void __launch_bounds__(THREADS)
    winograd_backward_filter(const float* x, const float* dy, float* partial, Shape z, int length) {
  int first_filter = blockIdx.y * ROWS, first_channel = blockIdx.x * COLUMNS, first = blockIdx.z * length;
  int across = (z.q + 1) / 2, tiles = (z.p + 1) / 2 * across;
  auto left = [&](int row, int at, int last, float (&tile)[4][4]) {
    int k = first_filter + row, n = at / tiles;
    if (k >= z.k || at >= last) return clear(tile);
    float g[2][2];
    window(dy + (n * z.k + k) * z.p * z.q, at % tiles / across * 2, at % tiles % across * 2, z.p, z.q, g);
    taps_2d(g, tile);
  };
  auto right = [&](int at, int last, int column, float (&tile)[4][4]) {
    int c = first_channel + column, n = at / tiles;
    if (c >= z.c || at >= last) return clear(tile);
    window(x + (n * z.c + c) * z.h * z.w, at % tiles / across * 2 - z.pad_h,
           at % tiles % across * 2 - z.pad_w, z.h, z.w, tile);
    data_2d(tile);
  };
  auto store = [&](int row, int column, const float (&tile)[4][4]) {
    int k = first_filter + row, c = first_channel + column;
    if (k >= z.k || c >= z.c) return;
    float values[3][3];
    outputs_2d(tile, values);
    float* to = partial + ((blockIdx.z * z.k + k) * z.c + c) * 9;
#pragma unroll
    for (int i = 0; i < 9; i++) to[i] = values[i / 3][i % 3];
  };
  multiply_points<true>([](int) {}, left, right, store, first, min(first + length, z.n * tiles));
}
