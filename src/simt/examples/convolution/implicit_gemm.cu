// Convolution as a matrix product whose right matrix, the unfolded image, is never stored: its elements are
// looked up in the image as tiles are loaded.
#include "gemm.cuh"
#include "shape.cuh"
#include "splits.cuh"

// A pixel's image, row and column.
struct Pixel {
  int n, row, column;
  __device__ Pixel(int i, int height, int width)
      : n(i / (height * width)), row(i / width % height), column(i % width) {}
};

// Filters by (channel, r, s).
template <int R, int S>
struct Filters {
  static constexpr bool ALONG_DEPTH = true;
  const float* w;
  Shape z;
  __device__ float operator()(int k, int d) const { return w[k * z.c * R * S + d]; }
};
// The same for one channel by (filter, r, s).
template <int R, int S>
struct FiltersOfChannel {
  static constexpr bool ALONG_DEPTH = true;
  const float* w;
  Shape z;
  __device__ float operator()(int c, int d) const { return w[(d / (R * S) * z.c + c) * R * S + d % (R * S)]; }
};
// x under (channel, r, s) for a pixel of y; which of the two is the depth depends on the direction.
template <int R, int S, int STRIDE>
__device__ inline float unfolded(const float* x, const Shape& z, int tap, int pixel) {
  Pixel at(pixel, z.p, z.q);
  int c = tap / (R * S), r = tap / S % R, s = tap % S;
  return element(x + (at.n * z.c + c) * z.h * z.w, at.row * STRIDE - z.pad_h + r,
                 at.column * STRIDE - z.pad_w + s, z.h, z.w);
}
template <int R, int S, int STRIDE>
struct UnfoldedByTap {
  static constexpr bool ALONG_DEPTH = false;
  const float* x;
  Shape z;
  __device__ float operator()(int d, int pixel) const { return unfolded<R, S, STRIDE>(x, z, d, pixel); }
};
template <int R, int S, int STRIDE>
struct UnfoldedByPixel {
  static constexpr bool ALONG_DEPTH = true;
  const float* x;
  Shape z;
  __device__ float operator()(int d, int tap) const { return unfolded<R, S, STRIDE>(x, z, tap, d); }
};
// dy that meets filter element (filter, r, s) at a pixel of x.
template <int R, int S, int STRIDE>
struct Gradients {
  static constexpr bool ALONG_DEPTH = false;
  const float* dy;
  Shape z;
  __device__ float operator()(int d, int pixel) const {
    Pixel at(pixel, z.h, z.w);
    int k = d / (R * S), down = at.row + z.pad_h - d / S % R, right = at.column + z.pad_w - d % S;
    if (down % STRIDE || right % STRIDE) return 0;
    return element(dy + (at.n * z.k + k) * z.p * z.q, down / STRIDE, right / STRIDE, z.p, z.q);
  }
};
// dy of a filter by pixel.
struct GradientsOfFilter {
  static constexpr bool ALONG_DEPTH = true;
  const float* dy;
  Shape z;
  __device__ float operator()(int k, int d) const {
    int pixels = z.p * z.q;
    return dy[(d / pixels * z.k + k) * pixels + d % pixels];
  }
};

// Grid: tiles of pixels, tiles of output channels.
template <int R, int S, int STRIDE, int ROWS>
__global__ void __launch_bounds__(GEMM_THREADS)
    implicit_gemm_forward(const float* x, const float* w, float* y, Shape z) {
  int pixels = z.p * z.q;
  auto store = [&](int k, int pixel, float sum) {
    y[(pixel / pixels * z.k + k) * pixels + pixel % pixels] = sum;
  };
  multiply_tile<ROWS>(Filters<R, S>{w, z}, UnfoldedByTap<R, S, STRIDE>{x, z}, store, blockIdx.y * ROWS, z.k,
                      blockIdx.x * COLUMNS, z.n * pixels, 0, z.c * R * S);
}
template <int R, int S, int STRIDE, int ROWS>
__global__ void __launch_bounds__(GEMM_THREADS)
    implicit_gemm_backward_data(const float* dy, const float* w, float* dx, Shape z) {
  int pixels = z.h * z.w;
  auto store = [&](int c, int pixel, float sum) {
    dx[(pixel / pixels * z.c + c) * pixels + pixel % pixels] = sum;
  };
  multiply_tile<ROWS>(FiltersOfChannel<R, S>{w, z}, Gradients<R, S, STRIDE>{dy, z}, store, blockIdx.y * ROWS,
                      z.c, blockIdx.x * COLUMNS, z.n * pixels, 0, z.k * R * S);
}
// Grid: tiles of filter elements, tiles of filters, splits of the sum over pixels, `length` pixels each.
template <int R, int S, int STRIDE, int ROWS>
__global__ void __launch_bounds__(GEMM_THREADS)
    implicit_gemm_backward_filter(const float* x, const float* dy, float* partial, Shape z, int length) {
  int taps = z.c * R * S, first = blockIdx.z * length;
  auto store = [&](int k, int tap, float sum) { partial[(blockIdx.z * z.k + k) * taps + tap] = sum; };
  multiply_tile<ROWS>(GradientsOfFilter{dy, z}, UnfoldedByPixel<R, S, STRIDE>{x, z}, store, blockIdx.y * ROWS,
                      z.k, blockIdx.x * COLUMNS, taps, first, min(first + length, z.n * z.p * z.q));
}
