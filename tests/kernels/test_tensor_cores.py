"""Products on tensor cores: wmma in every type, mma in assembly, a layer's epilogue."""

from __future__ import annotations

import numpy as np
import pytest

from simt.gpu import Module
from support.products import product_bound

SOURCE = r"""
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;

// A warp makes a tile of M by N; a is stored by rows, b by columns. Sizes are multiples of the tile.
template <int M, int N, int K, typename In, typename Storage, typename Out>
__device__ void product(const Storage *a, const Storage *b, Out *c, int n, int k) {
  const int warp = threadIdx.y, row = (blockIdx.y * blockDim.y + warp) * M, column = blockIdx.x * N;
  wmma::fragment<wmma::matrix_a, M, N, K, In, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, M, N, K, In, wmma::col_major> right;
  wmma::fragment<wmma::accumulator, M, N, K, Out> sum;
  wmma::fill_fragment(sum, Out(0));
  for (int i = 0; i < k; i += K) {
    wmma::load_matrix_sync(left, a + row * k + i, k);
    wmma::load_matrix_sync(right, b + column * k + i, k);
    if constexpr (sizeof(Storage) == 4 && sizeof(Out) == 4) {
      for (auto &v : left.x) v = wmma::__float_to_tf32(v);
      for (auto &v : right.x) v = wmma::__float_to_tf32(v);
    }
    wmma::mma_sync(sum, left, right, sum);
  }
  wmma::store_matrix_sync(c + row * n + column, sum, n, wmma::mem_row_major);
}
#define PRODUCT(name, m, n_, k_, in, storage, out)                                                        \
  extern "C" __global__ void name(const storage *a, const storage *b, out *c, int n, int k) {              \
    product<m, n_, k_, in>(a, b, c, n, k);                                                                 \
  }
PRODUCT(half_float, 16, 16, 16, half, half, float)
PRODUCT(half_half, 16, 16, 16, half, half, half)
PRODUCT(half_wide, 8, 32, 16, half, half, float)
PRODUCT(half_tall, 32, 8, 16, half, half, float)
PRODUCT(bf16_float, 16, 16, 16, __nv_bfloat16, __nv_bfloat16, float)
PRODUCT(tf32_float, 16, 16, 8, wmma::precision::tf32, float, float)
PRODUCT(s8_int, 16, 16, 16, signed char, signed char, int)
PRODUCT(u8_int, 16, 16, 16, unsigned char, unsigned char, int)
PRODUCT(double_double, 8, 8, 4, double, double, double)

// Tiles in shared memory, ldmatrix and mma in assembly; 64 by 64 for four warps.
extern "C" __global__ void staged(const half *a, const half *b, float *c, int n, int k) {
  __shared__ __align__(16) half left[64][24], right[16][72];
  const int t = threadIdx.x, lane = t % 32, warp = t / 32;
  const half *from_a = a + (blockIdx.y * 64 + t / 2) * k + t % 2 * 8;
  const half *from_b = b + t / 8 * n + blockIdx.x * 64 + t % 8 * 8;
  float sum[8][4] = {};
  for (int first = 0; first < k; first += 16) {
    *(uint4 *)&left[t / 2][t % 2 * 8] = *(const uint4 *)(from_a + first);
    *(uint4 *)&right[t / 8][t % 8 * 8] = *(const uint4 *)(from_b + first * n);
    __syncthreads();
    unsigned x[4], y[4];
    const unsigned at = __cvta_generic_to_shared(&left[warp * 16 + lane % 16][lane / 16 * 8]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(at));
    for (int j = 0; j < 8; j += 2) {
      const unsigned from = __cvta_generic_to_shared(&right[lane % 16][j * 8 + lane / 16 * 8]);
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                   : "=r"(y[0]), "=r"(y[1]), "=r"(y[2]), "=r"(y[3]) : "r"(from));
      for (int s = 0; s < 2; ++s)
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
                     "{%8, %9}, {%0, %1, %2, %3};"
                     : "+f"(sum[j + s][0]), "+f"(sum[j + s][1]), "+f"(sum[j + s][2]), "+f"(sum[j + s][3])
                     : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[2 * s]), "r"(y[2 * s + 1]));
    }
    __syncthreads();
  }
  const int row = blockIdx.y * 64 + warp * 16 + lane / 4, column = blockIdx.x * 64 + lane % 4 * 2;
  for (int j = 0; j < 8; ++j) {
    *(float2 *)&c[row * n + column + j * 8] = make_float2(sum[j][0], sum[j][1]);
    *(float2 *)&c[(row + 8) * n + column + j * 8] = make_float2(sum[j][2], sum[j][3]);
  }
}

// A fully connected layer: product, bias and rectifier, the sum loaded with the bias.
extern "C" __global__ void layer(const half *x, const half *w, const float *bias, half *y, int n, int k) {
  __shared__ float tile[16][16];
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> right;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  const int row = blockIdx.y * 16, column = blockIdx.x * 16;
  for (int e = threadIdx.x; e < 256; e += 32) tile[e / 16][e % 16] = bias[column + e % 16];
  __syncwarp();
  wmma::load_matrix_sync(sum, &tile[0][0], 16, wmma::mem_row_major);
  for (int i = 0; i < k; i += 16) {
    wmma::load_matrix_sync(left, x + row * k + i, k);
    wmma::load_matrix_sync(right, w + i * n + column, n);
    wmma::mma_sync(sum, left, right, sum);
  }
  for (int e = 0; e < sum.num_elements; ++e) sum.x[e] = fmaxf(sum.x[e], 0);
  wmma::store_matrix_sync(&tile[0][0], sum, 16, wmma::mem_row_major);
  __syncwarp();
  for (int e = threadIdx.x; e < 256; e += 32)
    y[(row + e / 16) * n + column + e % 16] = __float2half(tile[e / 16][e % 16]);
}
"""


def truncated(x: np.ndarray, bits: int) -> np.ndarray:
    """f32 values with the low bits of the mantissa rounded away, to nearest even."""
    raw = x.view(np.uint32).astype(np.uint64)
    raw = raw + (1 << (bits - 1)) - 1 + (raw >> bits & 1) >> bits << bits
    return raw.astype(np.uint32).view(np.float32)


TILES = {
    "half_wide": (8, 32, 16),
    "half_tall": (32, 8, 16),
    "tf32_float": (16, 16, 8),
    "double_double": (8, 8, 4),
}
SHAPES = [(1, 1, 1), (2, 3, 4)]


@pytest.mark.parametrize("warps", [1, 2])
@pytest.mark.parametrize("tiles", SHAPES)
@pytest.mark.parametrize(
    "kernel", ["half_float", "half_wide", "half_tall", "bf16_float", "tf32_float", "double_double"]
)
def test_floating_point(
    module: Module, rng: np.random.Generator, kernel: str, tiles: tuple[int, int, int], warps: int
) -> None:
    tile_m, tile_n, tile_k = TILES.get(kernel, (16, 16, 16))
    m, n, k = tiles[0] * tile_m * warps, tiles[1] * tile_n, tiles[2] * tile_k
    a, b = rng.standard_normal((m, k)).astype(np.float32), rng.standard_normal((n, k)).astype(np.float32)
    out = np.float64 if kernel.startswith("double") else np.float32
    if kernel.startswith("half"):
        a, b = a.astype(np.float16), b.astype(np.float16)
        given = a, b
    elif kernel.startswith("bf16"):
        a, b = truncated(a, 16), truncated(b, 16)
        given = tuple((x.view(np.uint32) >> 16).astype(np.uint16) for x in (a, b))
    elif kernel.startswith("tf32"):
        given = a, b
    else:
        a, b = a.astype(np.float64), b.astype(np.float64)
        given = a, b
    c = np.zeros((m, n), out)
    module[kernel][(tiles[1], tiles[0]), (32, warps)](*given, c, n, k)
    if kernel.startswith("tf32"):
        # cvt.rna: to nearest, ties away from zero.
        a, b = (((x.view(np.uint32) + 0x1000) & 0xFFFFE000).view(np.float32) for x in (a, b))
    exact, bound = product_bound(a, b.T, out)
    # Tensor cores align the products of an instruction to the largest one and truncate to about 24 bits.
    assert (np.abs(c - exact) <= 4 * bound).all()


@pytest.mark.parametrize("tiles", SHAPES)
def test_half_precision_sums(module: Module, rng: np.random.Generator, tiles: tuple[int, int, int]) -> None:
    m, n, k = (16 * t for t in tiles)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((m, k), (n, k)))  # sums are exact
    c = np.zeros((m, n), np.float16)
    module.half_half[(tiles[1], tiles[0]), (32, 1)](a, b, c, n, k)
    assert (c == a.astype(np.float32) @ b.T.astype(np.float32)).all()


@pytest.mark.parametrize(("kernel", "dtype"), [("s8_int", np.int8), ("u8_int", np.uint8)])
@pytest.mark.parametrize("tiles", SHAPES)
def test_whole_numbers(
    module: Module, rng: np.random.Generator, kernel: str, dtype: type, tiles: tuple[int, int, int]
) -> None:
    m, n, k = (16 * t for t in tiles)
    info = np.iinfo(dtype)
    a, b = (rng.integers(info.min, info.max + 1, shape).astype(dtype) for shape in ((m, k), (n, k)))
    c = np.zeros((m, n), np.int32)
    module[kernel][(tiles[1], tiles[0]), (32, 1)](a, b, c, n, k)
    assert (c == a.astype(np.int32) @ b.T.astype(np.int32)).all()


@pytest.mark.parametrize(("m", "n", "k"), [(64, 64, 16), (128, 64, 80)])
def test_tiles_in_shared_memory(module: Module, rng: np.random.Generator, m: int, n: int, k: int) -> None:
    a, b = rng.standard_normal((m, k)).astype(np.float16), rng.standard_normal((k, n)).astype(np.float16)
    c = np.zeros((m, n), np.float32)
    module.staged[(n // 64, m // 64), 128](a, b, c, n, k)
    exact, bound = product_bound(a, b, np.float32)
    assert (np.abs(c - exact) <= 4 * bound).all()


def test_layer(module: Module, rng: np.random.Generator) -> None:
    m, n, k = 32, 48, 64
    x, w = rng.integers(-4, 5, (m, k)).astype(np.float16), rng.integers(-4, 5, (k, n)).astype(np.float16)
    bias = rng.integers(-50, 50, n).astype(np.float32)
    y = np.zeros((m, n), np.float16)
    module.layer[(n // 16, m // 16), 32](x, w, bias, y, n, k)
    assert (y == np.maximum(x.astype(np.float32) @ w.astype(np.float32) + bias, 0)).all()
