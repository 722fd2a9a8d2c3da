"""Dense linear algebra without tensor cores: products, factorisations, inverses."""

from __future__ import annotations

import numpy as np
import pytest

from simt.gpu import Module
from support.products import product_bound

SOURCE = r"""
#include <cuda_fp16.h>

extern "C" __global__ void gemm_naive(const float *a, const float *b, float *c, int m, int n, int k) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= n || y >= m) return;
  float sum = 0;
  for (int i = 0; i < k; ++i) sum += a[y * k + i] * b[i * n + x];
  c[y * n + x] = sum;
}

template <typename T, int TILE>
__global__ void gemm_tiled(const T *a, const T *b, T *c, int m, int n, int k) {
  __shared__ T left[TILE][TILE], right[TILE][TILE];
  const int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
  T sum = 0;
  for (int first = 0; first < k; first += TILE) {
    const int i = first + threadIdx.x, j = first + threadIdx.y;
    left[threadIdx.y][threadIdx.x] = y < m && i < k ? a[y * k + i] : T(0);
    right[threadIdx.y][threadIdx.x] = x < n && j < k ? b[j * n + x] : T(0);
    __syncthreads();
#pragma unroll
    for (int s = 0; s < TILE; ++s) sum += left[threadIdx.y][s] * right[s][threadIdx.x];
    __syncthreads();
  }
  if (x < n && y < m) c[y * n + x] = sum;
}

// Each of 64 threads makes 8 by 8 elements of a tile of 64 by 64; all sizes multiples of the tile.
extern "C" __global__ void __launch_bounds__(64)
gemm_registers(const float *a, const float *b, float *c, int n, int k) {
  __shared__ float left[8][64], right[8][64];
  const int t = threadIdx.x, row = t / 8 * 8, column = t % 8 * 8;
  a += blockIdx.y * 64 * k;
  b += blockIdx.x * 64;
  float sum[8][8] = {};
  for (int first = 0; first < k; first += 8) {
    const float4 *source = (const float4 *)(a + t * k + first);
    const float4 u = source[0], v = source[1];
    left[0][t] = u.x, left[1][t] = u.y, left[2][t] = u.z, left[3][t] = u.w;
    left[4][t] = v.x, left[5][t] = v.y, left[6][t] = v.z, left[7][t] = v.w;
    for (int s = 0; s < 2; ++s) {
      const int e = (t + 64 * s) * 4;
      *(float4 *)&right[e / 64][e % 64] = *(const float4 *)&b[(first + e / 64) * n + e % 64];
    }
    __syncthreads();
#pragma unroll
    for (int s = 0; s < 8; ++s) {
      float x[8], y[8];
      *(float4 *)x = *(float4 *)&left[s][row];
      *(float4 *)(x + 4) = *(float4 *)&left[s][row + 4];
      *(float4 *)y = *(float4 *)&right[s][column];
      *(float4 *)(y + 4) = *(float4 *)&right[s][column + 4];
#pragma unroll
      for (int i = 0; i < 8; ++i)
#pragma unroll
        for (int j = 0; j < 8; ++j) sum[i][j] += x[i] * y[j];
    }
    __syncthreads();
  }
  c += (blockIdx.y * 64 + row) * n + blockIdx.x * 64 + column;
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 8; j += 4)
      *(float4 *)&c[i * n + j] = make_float4(sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]);
}

// Two columns a thread in packed half precision, the sum in half precision too.
extern "C" __global__ void gemm_half2(const half *a, const half2 *b, half2 *c, int pairs, int k) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
  if (x >= pairs) return;
  half2 sum = __float2half2_rn(0);
  for (int i = 0; i < k; ++i) sum = __hfma2(__half2half2(a[y * k + i]), b[i * pairs + x], sum);
  c[y * pairs + x] = sum;
}

// A matrix and a vector each block, a warp for each row.
extern "C" __global__ void gemv_batched(const float *a, const float *x, float *y, int m, int n) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, b = blockIdx.x;
  for (int row = warp; row < m; row += blockDim.x / 32) {
    float sum = 0;
    for (int i = lane; i < n; i += 32) sum = fmaf(a[(b * m + row) * n + i], x[b * n + i], sum);
    for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (lane == 0) y[b * m + row] = sum;
  }
}

// LU with partial pivoting, in place, a block per matrix; the rows' order goes to `order`.
extern "C" __global__ void lu(double *matrices, int *order, int n) {
  extern __shared__ double a[];
  __shared__ int pivot;
  double *matrix = matrices + blockIdx.x * n * n;
  order += blockIdx.x * n;
  const int t = threadIdx.x;
  for (int i = t; i < n * n; i += blockDim.x) a[i] = matrix[i];
  for (int i = t; i < n; i += blockDim.x) order[i] = i;
  __syncthreads();
  for (int k = 0; k < n; ++k) {
    if (t == 0) {
      pivot = k;
      for (int i = k + 1; i < n; ++i)
        if (fabs(a[i * n + k]) > fabs(a[pivot * n + k])) pivot = i;
      const int o = order[k];
      order[k] = order[pivot], order[pivot] = o;
    }
    __syncthreads();
    if (pivot != k) {
      for (int j = t; j < n; j += blockDim.x) {
        const double v = a[k * n + j];
        a[k * n + j] = a[pivot * n + j], a[pivot * n + j] = v;
      }
    }
    __syncthreads();
    for (int i = k + 1 + t; i < n; i += blockDim.x) a[i * n + k] /= a[k * n + k];
    __syncthreads();
    const int rest = n - k - 1;
    for (int e = t; e < rest * rest; e += blockDim.x) {
      const int i = k + 1 + e / rest, j = k + 1 + e % rest;
      a[i * n + j] -= a[i * n + k] * a[k * n + j];
    }
    __syncthreads();
  }
  for (int i = t; i < n * n; i += blockDim.x) matrix[i] = a[i];
}

// Gauss and Jordan without pivots: a thread per row of a matrix whose diagonal dominates.
extern "C" __global__ void invert(const float *matrix, float *inverse, int n) {
  extern __shared__ float rows[];
  const int t = threadIdx.x, width = 2 * n;
  for (int j = 0; j < n; ++j) rows[t * width + j] = matrix[t * n + j], rows[t * width + n + j] = t == j;
  for (int k = 0; k < n; ++k) {
    __syncthreads();
    const float scale = 1 / rows[k * width + k];
    __syncthreads();
    if (t == k)
      for (int j = 0; j < width; ++j) rows[t * width + j] *= scale;
    __syncthreads();
    if (t != k) {
      const float factor = rows[t * width + k];
      for (int j = 0; j < width; ++j) rows[t * width + j] -= factor * rows[k * width + j];
    }
  }
  for (int j = 0; j < n; ++j) inverse[t * n + j] = rows[t * width + n + j];
}

// Cholesky's factor of a matrix in one warp, a row a lane.
extern "C" __global__ void cholesky(double *a, int n) {
  const int t = threadIdx.x;
  for (int k = 0; k < n; ++k) {
    double v = t < n ? a[t * n + k] : 0;
    for (int j = 0; j < k; ++j)
      if (t >= k && t < n) v -= a[t * n + j] * a[k * n + j];
    const double diagonal = sqrt(__shfl_sync(~0u, v, k));
    __syncwarp();
    if (t >= k && t < n) a[t * n + k] = t == k ? diagonal : v / diagonal;
    if (t < k) a[t * n + k] = 0;
    __syncwarp();
  }
}
"""
TEMPLATES = [f"gemm_tiled<{t}, {tile}>" for t in ("float", "double", "int") for tile in (8, 16)]


@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (33, 17, 5), (48, 64, 40)])
@pytest.mark.parametrize("block", [(16, 16), (32, 2)])
def test_naive_product(
    module: Module, rng: np.random.Generator, m: int, n: int, k: int, block: tuple[int, int]
) -> None:
    a, b = rng.standard_normal((m, k)).astype(np.float32), rng.standard_normal((k, n)).astype(np.float32)
    c = np.zeros((m, n), np.float32)
    module.gemm_naive[(-(-n // block[0]), -(-m // block[1])), block](a, b, c, m, n, k)
    exact, bound = product_bound(a, b, np.float32)
    assert (np.abs(c - exact) <= bound).all()


@pytest.mark.parametrize(("m", "n", "k"), [(16, 16, 16), (50, 33, 21)])
@pytest.mark.parametrize(
    ("type_name", "dtype"), [("float", np.float32), ("double", np.float64), ("int", np.int32)]
)
@pytest.mark.parametrize("tile", [8, 16])
def test_tiled_product(
    module: Module, rng: np.random.Generator, m: int, n: int, k: int, type_name: str, dtype: type, tile: int
) -> None:
    a, b = (rng.integers(-99, 99, shape).astype(dtype) for shape in ((m, k), (k, n)))  # sums are exact
    c = np.zeros((m, n), dtype)
    kernel = module[f"gemm_tiled<{type_name}, {tile}>"]
    kernel[(-(-n // tile), -(-m // tile)), (tile, tile)](a, b, c, m, n, k)
    assert (c == a @ b).all()


@pytest.mark.parametrize(("m", "n", "k"), [(64, 64, 8), (64, 128, 32)])
def test_product_with_a_tile_in_registers(
    module: Module, rng: np.random.Generator, m: int, n: int, k: int
) -> None:
    a, b = rng.standard_normal((m, k)).astype(np.float32), rng.standard_normal((k, n)).astype(np.float32)
    c = np.zeros((m, n), np.float32)
    module.gemm_registers[(n // 64, m // 64), 64](a, b, c, n, k)
    exact, bound = product_bound(a, b, np.float32)
    assert (np.abs(c - exact) <= bound).all()


@pytest.mark.parametrize(("m", "n", "k"), [(3, 2, 4), (20, 70, 33)])
def test_product_in_half_precision(module: Module, rng: np.random.Generator, m: int, n: int, k: int) -> None:
    a, b = rng.standard_normal((m, k)).astype(np.float16), rng.standard_normal((k, n)).astype(np.float16)
    c = np.zeros((m, n), np.float16)
    module.gemm_half2[(-(-n // 64), m), 32](a, b, c, n // 2, k)
    sums = np.zeros((m, n), np.float16)
    for i in range(
        k
    ):  # a product of halves is exact in double precision, and so is nearly always its sum with a half
        sums = (np.outer(a[:, i].astype(np.float64), b[i]) + sums).astype(np.float16)
    assert (c == sums).all()


@pytest.mark.parametrize(("batch", "m", "n"), [(1, 1, 1), (3, 10, 40), (2, 33, 100)])
def test_batched_matrix_times_vector(
    module: Module, rng: np.random.Generator, batch: int, m: int, n: int
) -> None:
    a = rng.standard_normal((batch, m, n)).astype(np.float32)
    x = rng.standard_normal((batch, n)).astype(np.float32)
    y = np.zeros((batch, m), np.float32)
    module.gemv_batched[batch, 128](a, x, y, m, n)
    exact, bound = product_bound(a, x[..., None], np.float32)
    assert (np.abs(y - exact[..., 0]) <= bound[..., 0]).all()


@pytest.mark.parametrize(("n", "block"), [(1, 32), (5, 32), (24, 64)])
def test_lu_with_pivots(module: Module, rng: np.random.Generator, n: int, block: int) -> None:
    matrices = rng.standard_normal((2, n, n))
    packed, order = matrices.copy(), np.zeros((2, n), np.int32)
    module.lu[2, block, 8 * n * n](packed, order, n)
    lower, upper = np.tril(packed, -1) + np.eye(n), np.triu(packed)
    assert (np.abs(lower) <= 1).all()
    np.testing.assert_allclose(
        lower @ upper, np.take_along_axis(matrices, order[..., None], 1), rtol=0, atol=1e-13 * n
    )


@pytest.mark.parametrize("n", [1, 8, 20])
def test_inverse(module: Module, rng: np.random.Generator, n: int) -> None:
    matrix = (rng.random((n, n)) + n * np.eye(n)).astype(np.float32)
    inverse = np.zeros((n, n), np.float32)
    module.invert[1, n, 8 * n * n](matrix, inverse, n)
    np.testing.assert_allclose(inverse, np.linalg.inv(matrix.astype(np.float64)), rtol=0, atol=1e-6)


@pytest.mark.parametrize("n", [1, 7, 32])
def test_cholesky(module: Module, rng: np.random.Generator, n: int) -> None:
    root = rng.standard_normal((n, n))
    a = root @ root.T + n * np.eye(n)
    expected = np.linalg.cholesky(a)
    module.cholesky[1, 32](a, n)
    np.testing.assert_allclose(a, expected, rtol=0, atol=1e-12)
