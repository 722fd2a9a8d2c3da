// Convolution as a matrix product whose unfolded image is never stored; where its rows are in the image is
// computed once, into a table, instead of for every element.
#include "gemm.cuh"
#include "unfold.cuh"

// Of a row of the unfolded image: where its first element is in an image, and its place in the filter.
struct Place {
  int offset, r, s;
};

// Grid: blocks of 256 rows of the unfolded image; `pixels` and `width` of the image.
template <int R, int S>
__global__ void indexed_gemm_places(Place* places, int rows, int pixels, int width) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int r = i / S % R, s = i % S;
  if (i < rows) places[i] = Place{i / (R * S) * pixels + r * width + s, r, s};
}

// x under (channel, r, s) for a pixel of y.
template <int STRIDE>
__device__ inline float placed(const float* x, const Shape& z, const Place& tap, int pixel) {
  Pixel at(pixel, z.p, z.q);
  int row = at.row * STRIDE - z.pad_h, column = at.column * STRIDE - z.pad_w;
  bool inside = (unsigned)(row + tap.r) < (unsigned)z.h && (unsigned)(column + tap.s) < (unsigned)z.w;
  return inside ? x[at.n * z.c * z.h * z.w + tap.offset + row * z.w + column] : 0;
}
template <int STRIDE>
struct PlacedByTap {
  static constexpr bool ALONG_DEPTH = false;
  const float* x;
  const Place* places;
  Shape z;
  __device__ float operator()(int d, int pixel) const { return placed<STRIDE>(x, z, places[d], pixel); }
};
template <int STRIDE>
struct PlacedByPixel {
  static constexpr bool ALONG_DEPTH = true;
  const float* x;
  const Place* places;
  Shape z;
  __device__ float operator()(int d, int tap) const { return placed<STRIDE>(x, z, places[tap], d); }
};
// dy that meets filter element (filter, r, s) at a pixel of x.
template <int STRIDE>
struct PlacedGradients {
  static constexpr bool ALONG_DEPTH = false;
  const float* dy;
  const Place* places;
  Shape z;
  __device__ float operator()(int d, int pixel) const {
    Pixel at(pixel, z.h, z.w);
    Place tap = places[d];
    int down = at.row + z.pad_h - tap.r, right = at.column + z.pad_w - tap.s;
    if (down % STRIDE || right % STRIDE) return 0;
    int first = tap.offset - tap.r * z.q - tap.s;  // of the filter's gradients
    return element(dy + at.n * z.k * z.p * z.q + first, down / STRIDE, right / STRIDE, z.p, z.q);
  }
};

// Grid: tiles of pixels, tiles of output channels.
template <int R, int S, int STRIDE, int ROWS>
__global__ void __launch_bounds__(GEMM_THREADS)
    indexed_gemm_forward(const float* x, const float* w, float* y, Shape z, const Place* places) {
  int pixels = z.p * z.q;
  auto store = [&](int k, int pixel, float sum) {
    y[(pixel / pixels * z.k + k) * pixels + pixel % pixels] = sum;
  };
  multiply_tile<ROWS>(Filters<R, S>{w, z}, PlacedByTap<STRIDE>{x, places, z}, store, blockIdx.y * ROWS, z.k,
                      blockIdx.x * COLUMNS, z.n * pixels, 0, z.c * R * S);
}
template <int R, int S, int STRIDE, int ROWS>
__global__ void __launch_bounds__(GEMM_THREADS)
    indexed_gemm_backward_data(const float* dy, const float* w, float* dx, Shape z, const Place* places) {
  int pixels = z.h * z.w;
  auto store = [&](int c, int pixel, float sum) {
    dx[(pixel / pixels * z.c + c) * pixels + pixel % pixels] = sum;
  };
  multiply_tile<ROWS>(FiltersOfChannel<R, S>{w, z}, PlacedGradients<STRIDE>{dy, places, z}, store,
                      blockIdx.y * ROWS, z.c, blockIdx.x * COLUMNS, z.n * pixels, 0, z.k * R * S);
}
// Grid: tiles of filter elements, tiles of filters, splits of the sum over pixels, `length` pixels each,
// which are added by atomics.
template <int R, int S, int STRIDE, int ROWS>
__global__ void __launch_bounds__(GEMM_THREADS)
    indexed_gemm_backward_filter(const float* x, const float* dy, float* dw, Shape z, const Place* places,
                                 int length) {
  int taps = z.c * R * S, first = blockIdx.z * length;
  auto store = [&](int k, int tap, float sum) { atomicAdd(&dw[k * taps + tap], sum); };
  multiply_tile<ROWS>(GradientsOfFilter{dy, z}, PlacedByPixel<STRIDE>{x, places, z}, store, blockIdx.y * ROWS,
                      z.k, blockIdx.x * COLUMNS, taps, first, min(first + length, z.n * z.p * z.q));
}
