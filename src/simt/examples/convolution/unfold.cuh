// The matrices of a convolution as a matrix product, looked up where they are: filters, the unfolded image,
// and gradients. Depth is the index that is summed over.
#include "shape.cuh"

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
