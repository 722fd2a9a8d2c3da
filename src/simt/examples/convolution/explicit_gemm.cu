// Convolution as a matrix product with an unfolded image that is stored: (channel, r, s) by pixel of y.
#include "gemm.cuh"
#include "splits.cuh"
#include "unfold.cuh"

// A stored matrix whose rows are the depth, or whose columns are.
struct DepthByColumn {
  static constexpr bool ALONG_DEPTH = false;
  const float* m;
  int columns;
  __device__ float operator()(int d, int column) const { return m[d * columns + column]; }
};
struct DepthOfRow {
  static constexpr bool ALONG_DEPTH = true;
  const float* m;
  int columns;
  __device__ float operator()(int d, int row) const { return m[row * columns + d]; }
};
// Filters, (filter) by (channel, r, s), with the filter as the depth.
struct FiltersByFilter {
  static constexpr bool ALONG_DEPTH = false;
  const float* w;
  int taps;
  __device__ float operator()(int tap, int k) const { return w[k * taps + tap]; }
};
// dy of a pixel by filter.
struct GradientsByFilter {
  static constexpr bool ALONG_DEPTH = false;
  const float* dy;
  Shape z;
  __device__ float operator()(int k, int pixel) const {
    int pixels = z.p * z.q;
    return dy[(pixel / pixels * z.k + k) * pixels + pixel % pixels];
  }
};

// Grid: blocks of 256 pixels of y, rows of the unfolded image.
template <int R, int S, int STRIDE>
__global__ void explicit_gemm_unfold(const float* x, float* m, Shape z) {
  int pixel = blockIdx.x * blockDim.x + threadIdx.x, pixels = z.n * z.p * z.q, tap = blockIdx.y;
  if (pixel < pixels) m[tap * pixels + pixel] = unfolded<R, S, STRIDE>(x, z, tap, pixel);
}
// Grid: blocks of 256 elements of x, each of which is the sum of its places in the unfolded image.
template <int R, int S, int STRIDE>
__global__ void explicit_gemm_fold(const float* m, float* dx, Shape z) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, pixels = z.n * z.p * z.q;
  if (i >= z.n * z.c * z.h * z.w) return;
  Pixel at(i, z.h, z.w);  // its n counts channels of images
  int n = at.n / z.c, c = at.n % z.c;
  float sum = 0;
  for (int r = 0; r < R; r++)
    for (int s = 0; s < S; s++) {
      int down = at.row + z.pad_h - r, right = at.column + z.pad_w - s;
      if (down % STRIDE || right % STRIDE) continue;
      int p = down / STRIDE, q = right / STRIDE;
      if ((unsigned)p < (unsigned)z.p && (unsigned)q < (unsigned)z.q && down >= 0 && right >= 0)
        sum += m[((c * R + r) * S + s) * pixels + (n * z.p + p) * z.q + q];
    }
  dx[i] = sum;
}

// Grid: tiles of pixels, tiles of filters.
template <int R, int S, int ROWS>
__global__ void __launch_bounds__(GEMM_THREADS)
    explicit_gemm_forward(const float* m, const float* w, float* y, Shape z) {
  int pixels = z.p * z.q;
  auto store = [&](int k, int pixel, float sum) {
    y[(pixel / pixels * z.k + k) * pixels + pixel % pixels] = sum;
  };
  multiply_tile<ROWS>(Filters<R, S>{w, z}, DepthByColumn{m, z.n * pixels}, store, blockIdx.y * ROWS, z.k,
                      blockIdx.x * COLUMNS, z.n * pixels, 0, z.c * R * S);
}
// Grid: tiles of pixels, tiles of rows of the unfolded image.
template <int R, int S, int ROWS>
__global__ void __launch_bounds__(GEMM_THREADS)
    explicit_gemm_backward_data(const float* dy, const float* w, float* m, Shape z) {
  int pixels = z.n * z.p * z.q, taps = z.c * R * S;
  auto store = [&](int tap, int pixel, float sum) { m[tap * pixels + pixel] = sum; };
  multiply_tile<ROWS>(FiltersByFilter{w, taps}, GradientsByFilter{dy, z}, store, blockIdx.y * ROWS, taps,
                      blockIdx.x * COLUMNS, pixels, 0, z.k);
}
// Grid: tiles of filter elements, tiles of filters, splits of the sum over pixels, `length` pixels each.
template <int R, int S, int ROWS>
__global__ void __launch_bounds__(GEMM_THREADS)
    explicit_gemm_backward_filter(const float* m, const float* dy, float* partial, Shape z, int length) {
  int taps = z.c * R * S, first = blockIdx.z * length, pixels = z.n * z.p * z.q;
  auto store = [&](int k, int tap, float sum) { partial[(blockIdx.z * z.k + k) * taps + tap] = sum; };
  multiply_tile<ROWS>(GradientsOfFilter{dy, z}, DepthOfRow{m, pixels}, store, blockIdx.y * ROWS, z.k,
                      blockIdx.x * COLUMNS, taps, first, min(first + length, pixels));
}
