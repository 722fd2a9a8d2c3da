"""Matrix multiplication three ways: naive, tiled through shared memory, on tensor cores."""

import numpy as np

import simt
from simt.result import difference

SOURCE = """
#include <mma.h>
#include <cuda_fp16.h>
extern "C" __global__ void naive(const __half* a, const __half* b, float* c, int n) {
  int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  float sum = 0;
  for (int k = 0; k < n; k++) sum += __half2float(a[y * n + k]) * __half2float(b[k * n + x]);
  c[y * n + x] = sum;
}
extern "C" __global__ void tiled(const __half* a, const __half* b, float* c, int n) {
  __shared__ float s[16][16], t[16][16];
  int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  float sum = 0;
  for (int k = 0; k < n; k += 16) {
    s[threadIdx.y][threadIdx.x] = __half2float(a[y * n + k + threadIdx.x]);
    t[threadIdx.y][threadIdx.x] = __half2float(b[(k + threadIdx.y) * n + x]);
    __syncthreads();
    for (int j = 0; j < 16; j++) sum += s[threadIdx.y][j] * t[j][threadIdx.x];
    __syncthreads();
  }
  c[y * n + x] = sum;
}
// A warp computes a 16 x 16 tile.
extern "C" __global__ void tensor(const __half* a, const __half* b, float* c, int n) {
  using namespace nvcuda::wmma;
  fragment<matrix_a, 16, 16, 16, __half, row_major> fa;
  fragment<matrix_b, 16, 16, 16, __half, row_major> fb;
  fragment<accumulator, 16, 16, 16, float> sum;
  fill_fragment(sum, 0.0f);
  int x = (blockIdx.x * 4 + threadIdx.x / 32) * 16, y = blockIdx.y * 16;
  for (int k = 0; k < n; k += 16) {
    load_matrix_sync(fa, a + y * n + k, n);
    load_matrix_sync(fb, b + k * n + x, n);
    mma_sync(sum, fa, fb, sum);
  }
  store_matrix_sync(c + y * n + x, sum, n, mem_row_major);
}
"""


def main(gpu: simt.GPU) -> None:
    n = 256
    module = gpu.compile(SOURCE)
    host = np.random.default_rng(0).random((2, n, n)).astype(np.float16)
    a, b = gpu.array(host[0]), gpu.array(host[1])
    expected = host[0].astype(np.float64) @ host[1].astype(np.float64)
    launches = []
    for name, grid, block in (
        ("naive", (n // 16, n // 16), (16, 16)),
        ("tiled", (n // 16, n // 16), (16, 16)),
        ("tensor", (n // 64, n // 16), 128),
    ):
        c = gpu.zeros((n, n))  # of its own: what another kernel wrote would pass for its result
        launches.append(module[name][grid, block](a, b, c, n))
        print(f"{name}: largest error {abs(c.numpy() - expected).max():.1e}")
    naive, tiled, tensor = launches
    if naive and tiled and tensor:
        print(difference(naive, tiled))
        print(difference(tiled, tensor))
