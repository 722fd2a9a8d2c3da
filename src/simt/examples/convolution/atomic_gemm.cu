// Convolution as sums of matrix products whose unfolded image is never stored: blocks that compute parts of
// the same sum add them by atomics, in whatever order they end.
#include "gemm.cuh"
#include "unfold.cuh"

// Grid of all: tiles of columns, tiles of rows, splits of the sum, of `length` terms each.
template <int R, int S, int STRIDE, int ROWS>
__global__ void __launch_bounds__(GEMM_THREADS)
    atomic_gemm_forward(const float* x, const float* w, float* y, Shape z, int length) {
  int pixels = z.p * z.q, first = blockIdx.z * length;
  auto store = [&](int k, int pixel, float sum) {
    atomicAdd(&y[(pixel / pixels * z.k + k) * pixels + pixel % pixels], sum);
  };
  multiply_tile<ROWS>(Filters<R, S>{w, z}, UnfoldedByTap<R, S, STRIDE>{x, z}, store, blockIdx.y * ROWS, z.k,
                      blockIdx.x * COLUMNS, z.n * pixels, first, min(first + length, z.c * R * S));
}
template <int R, int S, int STRIDE, int ROWS>
__global__ void __launch_bounds__(GEMM_THREADS)
    atomic_gemm_backward_data(const float* dy, const float* w, float* dx, Shape z, int length) {
  int pixels = z.h * z.w, first = blockIdx.z * length;
  auto store = [&](int c, int pixel, float sum) {
    atomicAdd(&dx[(pixel / pixels * z.c + c) * pixels + pixel % pixels], sum);
  };
  multiply_tile<ROWS>(FiltersOfChannel<R, S>{w, z}, Gradients<R, S, STRIDE>{dy, z}, store, blockIdx.y * ROWS,
                      z.c, blockIdx.x * COLUMNS, z.n * pixels, first, min(first + length, z.k * R * S));
}
template <int R, int S, int STRIDE, int ROWS>
__global__ void __launch_bounds__(GEMM_THREADS)
    atomic_gemm_backward_filter(const float* x, const float* dy, float* dw, Shape z, int length) {
  int taps = z.c * R * S, first = blockIdx.z * length;
  auto store = [&](int k, int tap, float sum) { atomicAdd(&dw[k * taps + tap], sum); };
  multiply_tile<ROWS>(GradientsOfFilter{dy, z}, UnfoldedByPixel<R, S, STRIDE>{x, z}, store, blockIdx.y * ROWS,
                      z.k, blockIdx.x * COLUMNS, taps, first, min(first + length, z.n * z.p * z.q));
}
