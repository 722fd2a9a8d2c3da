// Convolution as a matrix product whose right matrix, the unfolded image, is never stored: its elements are
// looked up in the image as tiles are loaded.
#include "gemm.cuh"
#include "splits.cuh"
#include "unfold.cuh"

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
