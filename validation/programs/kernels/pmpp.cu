// Launches the kernels of R100001/Programming-Massively-Parallel-Processors (Performance-Tests-NvBench) as its
// benchmarks do, which need NVBench and Thrust: on arrays of zeros, in one stream. --include names its folders.
//
//     pmpp KERNEL LAUNCHES SIZE...

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

__constant__ float M[121];

#include "array_add_kernels.cuh"
#include "convolution_kernels.cuh"
#include "histogram_kernels.cuh"
#include "img_to_gray_kernels.cuh"
#include "mat_mat_mul_kernels.cuh"
#include "mat_vec_mul_kernels.cuh"

template <typename T>
static T* zeros(size_t count) {
  T* at = nullptr;
  if (cudaMalloc(&at, count * sizeof(T)) != cudaSuccess || cudaMemset(at, 0, count * sizeof(T)) != cudaSuccess)
    exit(1);
  return at;
}

static unsigned parts(unsigned count, unsigned of) { return (count + of - 1) / of; }

int main(int count, char** arguments) {
  if (count < 4) return 2;
  const char* kernel = arguments[1];
  unsigned size[4] = {};
  for (int i = 0; i < 4 && i + 3 < count; ++i) size[i] = atoi(arguments[i + 3]);
  const auto is = [&](const char* name) { return !strcmp(kernel, name); };
  const auto repeat = [&](auto launch) {
    for (int i = 0; i < atoi(arguments[2]); ++i) launch();
  };
  const unsigned n = size[0];
  if (is("add_rows") || is("add_columns")) {
    float *a = zeros<float>(n * n), *b = zeros<float>(n * n), *c = zeros<float>(n * n);
    const dim3 grid(parts(n, 16), parts(n, 16)), block(16, 16);
    repeat([&] {
      if (is("add_rows"))
        array_add_not_coalesced<float><<<grid, block>>>(a, b, c, n, n);
      else
        array_add_coalesced<float><<<grid, block>>>(a, b, c, n, n);
    });
  } else if (!strncmp(kernel, "conv1d", 6)) {
    const unsigned mask = size[1], threads = size[2], ctas = parts(n, threads);
    float *in = zeros<float>(n), *weights = zeros<float>(mask), *out = zeros<float>(n);
    repeat([&] {
      if (is("conv1d_basic"))
        convolution_1D_basic_kernel<<<ctas, threads>>>(in, weights, out, mask, n);
      else if (is("conv1d_constant"))
        convolution_1D_constant_memory_kernel<<<ctas, threads>>>(in, out, mask, n);
      else if (is("conv1d_tiled"))
        convolution_1D_tiled_kernel<<<ctas, threads, (threads + mask - 1) * 4>>>(in, out, mask, n);
      else
        convolution_1D_tiled_caching_kernel<<<ctas, threads, threads * 4>>>(in, out, mask, n);
    });
  } else if (!strncmp(kernel, "conv2d", 6)) {
    const unsigned channels = size[1], mask = size[2], side = size[3], tile = side - mask + 1;
    float *in = zeros<float>(n * n * channels), *weights = zeros<float>(mask * mask);
    float* out = zeros<float>(n * n * channels);
    const dim3 grid(parts(n, side), parts(n, side)), tiles(parts(n, tile), parts(n, tile)), block(side, side);
    repeat([&] {
      if (is("conv2d_basic"))
        convolution_2D_basic_kernel<<<grid, block>>>(in, weights, out, mask, mask, n, n, channels);
      else if (is("conv2d_constant"))
        convolution_2D_constant_memory_kernel<<<grid, block>>>(in, out, mask, mask, n, n, channels);
      else
        convolution_2D_tiled_kernel<<<tiles, block, side * side * 4>>>(in, out, mask, mask, n, n, channels);
    });
  } else if (is("histogram") || is("histogram_shared")) {
    const unsigned bins = size[1], threads = size[2], ctas = parts(n, threads);
    unsigned *in = zeros<unsigned>(n), *out = zeros<unsigned>(bins);
    repeat([&] {
      if (is("histogram"))
        simple_histogram<<<ctas, threads>>>(in, out, n, bins);
      else
        histogram_shared<<<ctas, threads, bins * 4>>>(in, out, n, bins);
    });
  } else if (is("grayscale")) {
    const unsigned side = size[1];
    uint8_t *in = zeros<uint8_t>(3 * n * n), *out = zeros<uint8_t>(n * n);
    repeat([&] {
      const dim3 grid(parts(n, side), parts(n, side)), block(side, side);
      color_to_grayscale_conversion<<<grid, block>>>(in, out, n, n);
    });
  } else if (!strncmp(kernel, "matmul", 6)) {
    const unsigned side = size[1], bytes = side * side * 4;
    unsigned *a = zeros<unsigned>(n * n), *b = zeros<unsigned>(n * n), *c = zeros<unsigned>(n * n);
    const dim3 grid(parts(n, side), parts(n, side)), wide(parts(n, side / 2), parts(n, side)), block(side, side);
    repeat([&] {
      if (is("matmul"))
        mat_mat_mul<<<grid, block>>>(a, b, c, n, n, n, n);
      else if (is("matmul_tiled"))
        mat_mat_mul_tiles<<<grid, block, 2 * bytes>>>(a, b, c, n, n, n, n);
      else
        mat_mat_mul_rec_tiles<<<wide, block, 3 * bytes>>>(a, b, c, n, n, n, n);
    });
  } else if (is("matvec") || is("matvec_tiled")) {
    const unsigned threads = size[1], ctas = parts(n, threads);
    unsigned *out = zeros<unsigned>(n), *matrix = zeros<unsigned>(n * n), *vector = zeros<unsigned>(n);
    repeat([&] {
      if (is("matvec"))
        mat_vec_mul<<<ctas, threads>>>(out, matrix, vector, n, n);
      else
        mat_vec_mul_tiles<<<ctas, threads, threads * 4>>>(out, matrix, vector, n, n);
    });
  } else {
    return 2;
  }
  return cudaDeviceSynchronize() != cudaSuccess || cudaGetLastError() != cudaSuccess;
}
