// Direct convolution: each thread keeps sums in registers; images come in tiles through shared memory.
#include "shape.cuh"

constexpr int WIDTH = 16, HEIGHT = 8;  // pixels of a block, one per thread
constexpr int CHANNELS = 8;            // output channels of a thread

// Copies a window of an image to shared memory, with zeros outside of the image.
template <int ROWS, int COLUMNS>
__device__ void load_window(float (&tile)[ROWS][COLUMNS], const float* image, int top, int left, int height,
                            int width) {
  for (int i = threadIdx.y * WIDTH + threadIdx.x; i < ROWS * COLUMNS; i += WIDTH * HEIGHT)
    tile[i / COLUMNS][i % COLUMNS] = element(image, top + i / COLUMNS, left + i % COLUMNS, height, width);
}

// Copies filters to shared memory: those of CHANNELS output channels for one channel that is summed over.
// output, input: strides of both kinds of channel in w, in filters.
template <int TAPS>
__device__ void load_filters(float (&filters)[TAPS][CHANNELS], const float* w, int first, int outputs,
                             int output, int channel, int input) {
  for (int i = threadIdx.y * WIDTH + threadIdx.x; i < TAPS * CHANNELS; i += WIDTH * HEIGHT) {
    int own = first + i / TAPS, tap = i % TAPS;
    filters[tap][i / TAPS] = own < outputs ? w[(own * output + channel * input) * TAPS + tap] : 0;
  }
}

__device__ inline void add(float (&sums)[CHANNELS], const float (&filters)[CHANNELS], float value) {
  const float4 *four = (const float4*)filters, a = four[0], b = four[1];
  sums[0] += a.x * value, sums[1] += a.y * value, sums[2] += a.z * value, sums[3] += a.w * value;
  sums[4] += b.x * value, sums[5] += b.y * value, sums[6] += b.z * value, sums[7] += b.w * value;
}

// Grid: tiles of y, groups of 8 filters, images.
template <int R, int S, int STRIDE>
__global__ void __launch_bounds__(WIDTH* HEIGHT)
    direct_forward(const float* x, const float* w, float* y, Shape z) {
  __shared__ float tile[(HEIGHT - 1) * STRIDE + R][(WIDTH - 1) * STRIDE + S];
  __shared__ __align__(16) float filters[R * S][CHANNELS];
  int across = (z.q + WIDTH - 1) / WIDTH, first = blockIdx.y * CHANNELS;
  int row0 = blockIdx.x / across * HEIGHT, column0 = blockIdx.x % across * WIDTH;
  float sums[CHANNELS] = {};
  for (int c = 0; c < z.c; c++) {
    load_window(tile, x + (blockIdx.z * z.c + c) * z.h * z.w, row0 * STRIDE - z.pad_h,
                column0 * STRIDE - z.pad_w, z.h, z.w);
    load_filters(filters, w, first, z.k, z.c, c, 1);
    __syncthreads();
#pragma unroll
    for (int r = 0; r < R; r++)
#pragma unroll
      for (int s = 0; s < S; s++)
        add(sums, filters[r * S + s], tile[threadIdx.y * STRIDE + r][threadIdx.x * STRIDE + s]);
    __syncthreads();
  }
  int row = row0 + threadIdx.y, column = column0 + threadIdx.x;
  if (row >= z.p || column >= z.q) return;
#pragma unroll
  for (int i = 0; i < CHANNELS; i++)
    if (first + i < z.k) y[((blockIdx.z * z.k + first + i) * z.p + row) * z.q + column] = sums[i];
}

__device__ inline int floor_divide(int a, int b) {
  return a >= 0 ? a / b : -((b - 1 - a) / b);
}

// Grid: tiles of dx, groups of 8 channels, images. dx[h] is the sum of dy[(h + pad - r) / stride] * w[r] over
// the r for which the stride divides h + pad - r.
template <int R, int S, int STRIDE>
__global__ void __launch_bounds__(WIDTH* HEIGHT)
    direct_backward_data(const float* dy, const float* w, float* dx, Shape z) {
  __shared__ float tile[(HEIGHT + R - 2) / STRIDE + 2][(WIDTH + S - 2) / STRIDE + 2];
  __shared__ __align__(16) float filters[R * S][CHANNELS];
  int across = (z.w + WIDTH - 1) / WIDTH, first = blockIdx.y * CHANNELS;
  int row0 = blockIdx.x / across * HEIGHT, column0 = blockIdx.x % across * WIDTH;
  int row = row0 + threadIdx.y, column = column0 + threadIdx.x;
  int top = floor_divide(row0 + z.pad_h - (R - 1), STRIDE),
      left = floor_divide(column0 + z.pad_w - (S - 1), STRIDE);
  float sums[CHANNELS] = {};
  for (int k = 0; k < z.k; k++) {
    load_window(tile, dy + (blockIdx.z * z.k + k) * z.p * z.q, top, left, z.p, z.q);
    load_filters(filters, w, first, z.c, 1, k, z.c);
    __syncthreads();
#pragma unroll
    for (int r = 0; r < R; r++)
#pragma unroll
      for (int s = 0; s < S; s++) {
        int down = row + z.pad_h - r, right = column + z.pad_w - s;
        if (down % STRIDE == 0 && right % STRIDE == 0)
          add(sums, filters[r * S + s], tile[down / STRIDE - top][right / STRIDE - left]);
      }
    __syncthreads();
  }
  if (row >= z.h || column >= z.w) return;
#pragma unroll
  for (int i = 0; i < CHANNELS; i++)
    if (first + i < z.c) dx[((blockIdx.z * z.c + first + i) * z.h + row) * z.w + column] = sums[i];
}

__device__ constexpr int filters_of_a_block(int taps) {
  return taps <= 9 ? 4 : taps <= 25 ? 2 : 1;
}

// Grid: channels, groups of filters. A thread sums over its pixel of every tile of every image; then the
// threads' sums are added.
template <int R, int S, int STRIDE>
__global__ void __launch_bounds__(WIDTH* HEIGHT)
    direct_backward_filter(const float* x, const float* dy, float* dw, Shape z) {
  constexpr int FILTERS = filters_of_a_block(R * S), WARPS = WIDTH * HEIGHT / 32;
  __shared__ float tile[(HEIGHT - 1) * STRIDE + R][(WIDTH - 1) * STRIDE + S];
  __shared__ float totals[WARPS][FILTERS * R * S];
  int c = blockIdx.x, first = blockIdx.y * FILTERS, t = threadIdx.y * WIDTH + threadIdx.x;
  float sums[FILTERS][R * S] = {};
  for (int n = 0; n < z.n; n++)
    for (int row0 = 0; row0 < z.p; row0 += HEIGHT)
      for (int column0 = 0; column0 < z.q; column0 += WIDTH) {
        load_window(tile, x + (n * z.c + c) * z.h * z.w, row0 * STRIDE - z.pad_h, column0 * STRIDE - z.pad_w,
                    z.h, z.w);
        int row = row0 + threadIdx.y, column = column0 + threadIdx.x;
        float gradient[FILTERS];
#pragma unroll
        for (int i = 0; i < FILTERS; i++)
          gradient[i] =
              first + i < z.k ? element(dy + (n * z.k + first + i) * z.p * z.q, row, column, z.p, z.q) : 0;
        __syncthreads();
#pragma unroll
        for (int r = 0; r < R; r++)
#pragma unroll
          for (int s = 0; s < S; s++) {
            float value = tile[threadIdx.y * STRIDE + r][threadIdx.x * STRIDE + s];
#pragma unroll
            for (int i = 0; i < FILTERS; i++) sums[i][r * S + s] += gradient[i] * value;
          }
        __syncthreads();
      }
#pragma unroll
  for (int i = 0; i < FILTERS * R * S; i++) {
    float sum = sums[i / (R * S)][i % (R * S)];
    for (int away = 16; away > 0; away /= 2) sum += __shfl_down_sync(~0u, sum, away);
    if (t % 32 == 0) totals[t / 32][i] = sum;
  }
  __syncthreads();
  for (int i = t; i < FILTERS * R * S; i += WIDTH * HEIGHT) {
    float sum = 0;
    for (int warp = 0; warp < WARPS; warp++) sum += totals[warp][i];
    if (first + i / (R * S) < z.k) dw[((first + i / (R * S)) * z.c + c) * R * S + i % (R * S)] = sum;
  }
}
