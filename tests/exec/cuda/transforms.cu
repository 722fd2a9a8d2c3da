// A Fourier transform in shared memory, half and bfloat16 arithmetic, inline PTX, sparse rows, printf.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <complex>
#include <vector>

#include "check.h"

template <int LOG>
__global__ void fft(float2* data, float sign) {
  constexpr int n = 1 << LOG;
  extern __shared__ float2 line[];
  float2* mine = data + blockIdx.x * n;
  for (int i = threadIdx.x; i < n; i += blockDim.x) line[__brev(i) >> (32 - LOG)] = mine[i];
  __syncthreads();
  for (int half = 1; half < n; half *= 2) {
    for (int k = threadIdx.x; k < n / 2; k += blockDim.x) {
      const int j = k % half, i = (k / half) * 2 * half + j;
      float s, c;
      sincospif(sign * float(j) / half, &s, &c);
      const float2 a = line[i], b = line[i + half];
      const float2 t = make_float2(b.x * c - b.y * s, b.x * s + b.y * c);
      line[i] = make_float2(a.x + t.x, a.y + t.y);
      line[i + half] = make_float2(a.x - t.x, a.y - t.y);
    }
    __syncthreads();
  }
  for (int i = threadIdx.x; i < n; i += blockDim.x) mine[i] = line[i];
}

__global__ void narrow(const float* in, float* halves, float* brains, int n) {
  const int i = 2 * (blockIdx.x * blockDim.x + threadIdx.x);
  if (i + 1 >= n) return;
  const __half2 h = __floats2half2_rn(in[i], in[i + 1]);
  const __half2 r = __hfma2(h, h, __float2half2_rn(1));
  halves[i] = __low2float(r), halves[i + 1] = __high2float(r);
  const __nv_bfloat162 b = __floats2bfloat162_rn(in[i], in[i + 1]);
  const __nv_bfloat162 q = __hadd2(b, b);
  brains[i] = __low2float(q), brains[i + 1] = __high2float(q);
}

__device__ unsigned lane() {
  unsigned l;
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(l));
  return l;
}

__global__ void rows(const int* begins, const int* columns, const double* values, const double* x, double* y,
                     int n) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  if (row >= n) return;
  double sum = 0;
  for (int k = begins[row] + lane(); k < begins[row + 1]; k += 32)
    sum = fma(values[k], __ldg(x + columns[k]), sum);
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(~0u, sum, step);
  unsigned funnel;
  asm("shf.l.wrap.b32 %0, %1, %2, 8;" : "=r"(funnel) : "r"(0x11223344u), "r"(0x55667788u));
  if (lane() == 0) {
    y[row] = sum;
    if (row == 0) printf("row %d: %g, %x\n", row, sum, funnel);
  }
}

int main() {
  constexpr int log = 8, n = 1 << log;
  std::vector<std::complex<float>> host(2 * n), back(2 * n);
  for (int i = 0; i < 2 * n; ++i) host[i] = {std::sin(0.3f * i), float(i % 5)};
  float2* data;
  CUDA(cudaMalloc(&data, 2 * n * sizeof(float2)));
  CUDA(cudaMemcpy(data, host.data(), 2 * n * sizeof(float2), cudaMemcpyHostToDevice));
  int threads = 0, grid = 0;
  CUDA(cudaOccupancyMaxPotentialBlockSize(&grid, &threads, fft<log>, n * sizeof(float2)));
  CHECK(threads >= 32 && grid > 0);
  fft<log><<<2, 64, n * sizeof(float2)>>>(data, -1);
  CUDA(cudaMemcpy(back.data(), data, 2 * n * sizeof(float2), cudaMemcpyDeviceToHost));
  for (int k = 0; k < n; k += 37) {
    std::complex<double> sum = 0;
    for (int i = 0; i < n; ++i)
      sum += std::complex<double>(host[n + i]) * std::polar(1.0, -2 * 3.14159265358979 * k * i / n);
    CHECK(std::abs(sum - std::complex<double>(back[n + k])) < 1e-2);
  }
  fft<log><<<2, 64, n * sizeof(float2)>>>(data, 1);
  CUDA(cudaMemcpy(back.data(), data, 2 * n * sizeof(float2), cudaMemcpyDeviceToHost));
  for (int i = 0; i < 2 * n; ++i) CHECK(std::abs(back[i] / float(n) - host[i]) < 1e-3f);

  float *in, *halves, *brains;
  CUDA(cudaMallocManaged(&in, 400));
  CUDA(cudaMallocManaged(&halves, 400));
  CUDA(cudaMallocManaged(&brains, 400));
  for (int i = 0; i < 100; ++i) in[i] = 0.25f * i;
  narrow<<<1, 64>>>(in, halves, brains, 100);
  CUDA(cudaDeviceSynchronize());
  for (int i = 0; i < 100; ++i) {
    CHECK(halves[i] == __half2float(__float2half(in[i] * in[i] + 1)));
    CHECK(brains[i] == 2 * in[i]);
  }

  const int rows_ = 40;
  std::vector<int> begins(1), columns;
  std::vector<double> values, x(rows_), y(rows_), got(rows_);
  for (int r = 0; r < rows_; ++r) x[r] = 1.0 / (r + 1);
  for (int r = 0; r < rows_; ++r) {
    for (int c = r % 3; c < rows_; c += 1 + r % 4) {
      columns.push_back(c), values.push_back(r + 0.5 * c);
      y[r] += values.back() * x[c];
    }
    begins.push_back(int(columns.size()));
  }
  int *d_begins, *d_columns;
  double *d_values, *d_x, *d_y;
  CUDA(cudaMalloc(&d_begins, begins.size() * 4));
  CUDA(cudaMalloc(&d_columns, columns.size() * 4));
  CUDA(cudaMalloc(&d_values, values.size() * 8));
  CUDA(cudaMalloc(&d_x, rows_ * 8));
  CUDA(cudaMalloc(&d_y, rows_ * 8));
  CUDA(cudaMemcpy(d_begins, begins.data(), begins.size() * 4, cudaMemcpyDefault));
  CUDA(cudaMemcpy(d_columns, columns.data(), columns.size() * 4, cudaMemcpyDefault));
  CUDA(cudaMemcpy(d_values, values.data(), values.size() * 8, cudaMemcpyDefault));
  CUDA(cudaMemcpy(d_x, x.data(), rows_ * 8, cudaMemcpyDefault));
  rows<<<(rows_ * 32 + 127) / 128, 128>>>(d_begins, d_columns, d_values, d_x, d_y, rows_);
  CUDA(cudaMemcpy(got.data(), d_y, rows_ * 8, cudaMemcpyDefault));
  for (int r = 0; r < rows_; ++r) CHECK(std::fabs(got[r] - y[r]) < 1e-9 * (1 + y[r]));
  std::puts("ok");
}
