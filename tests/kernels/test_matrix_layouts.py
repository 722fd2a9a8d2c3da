"""Matrices in layouts chosen by compilers: wmma for three generations, Triton's products."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import simt
from simt.cuda import toolkit
from support.floats import BF16, E4M3, Format
from support.ptx import CODE

WMMA = """
#include <mma.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
using namespace nvcuda;

template <class Layout> constexpr bool by_columns = false;
template <> constexpr bool by_columns<wmma::col_major> = true;

// A block of four warps makes 32 x 32 of C = 2 A B, by tiles in shared memory.
template <class T, class Acc, class LayoutB>
__device__ void product(const T* a, const T* b, Acc* c, int n, int k) {
  constexpr bool by_column = by_columns<LayoutB>;
  // Rows begin at multiples of 16 bytes, tiles at multiples of 32, as the PTX ISA demands.
  constexpr int across = 16 + 16 / sizeof(T), tile = 32 / sizeof(T), along = 2 * tile + 16 / sizeof(T);
  __shared__ __align__(32) T left[32 * across], right[32 * along];
  const int warp = threadIdx.x / 32, row = warp / 2, column = warp % 2;
  wmma::fragment<wmma::accumulator, 16, 16, 16, Acc> total;
  wmma::fill_fragment(total, Acc(0));
  for (int at = 0; at < k; at += 16) {
    for (int i = threadIdx.x; i < 512; i += blockDim.x) {
      left[i / 16 * across + i % 16] = a[(blockIdx.y * 32 + i / 16) * k + at + i % 16];
      const T value = b[(at + i / 32) * n + blockIdx.x * 32 + i % 32];
      right[by_column ? i % 32 * across + i / 32 : i / 32 * along + i % 32 / 16 * tile + i % 16] = value;
    }
    __syncthreads();
    wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, T, LayoutB> fb;
    wmma::load_matrix_sync(fa, left + row * 16 * across, across);
    wmma::load_matrix_sync(fb, right + column * (by_column ? 16 * across : tile), by_column ? across : along);
    wmma::mma_sync(total, fa, fb, total);
    __syncthreads();
  }
  for (int i = 0; i < total.num_elements; ++i) total.x[i] = total.x[i] + total.x[i];
  wmma::store_matrix_sync(c + (blockIdx.y * 32 + row * 16) * n + blockIdx.x * 32 + column * 16, total, n,
                          wmma::mem_row_major);
}
"""
KERNELS = """
#define KERNEL(name, T, Acc, L)                                                             \\
  extern "C" __global__ void name(const T* a, const T* b, Acc* c, int n, int k) { \\
    product<T, Acc, wmma::L>(a, b, c, n, k);                                          \\
  }
KERNEL(half_row, half, float, row_major)
KERNEL(half_col, half, float, col_major)
KERNEL(half_half, half, half, col_major)
#if __CUDA_ARCH__ >= 720
KERNEL(bytes, signed char, int, row_major)
KERNEL(unsigned_bytes, unsigned char, int, col_major)
#endif
#if __CUDA_ARCH__ >= 800
KERNEL(bfloat_row, __nv_bfloat16, float, row_major)

// Fragments' positions are those of mma.sync: rows found from them.
extern "C" __global__ void row_sums(const half* a, float* sums) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
  wmma::load_matrix_sync(fa, a, 16);
  const int lane = threadIdx.x;
  float upper = 0, lower = 0;
  for (int i = 0; i < 8; ++i) (i & 2 ? lower : upper) += __half2float(fa.x[i]);
  for (int d = 1; d < 4; d *= 2) {
    upper += __shfl_xor_sync(~0u, upper, d);
    lower += __shfl_xor_sync(~0u, lower, d);
  }
  if (lane % 4 == 0) {
    sums[lane / 4] = upper;
    sums[lane / 4 + 8] = lower;
  }
}
#endif
"""


def to_codes(values: np.ndarray, f: Format) -> np.ndarray:
    return np.array([f.encode(float(v)) for v in values.ravel()], f.dtype).reshape(values.shape)


def from_codes(codes: np.ndarray, f: Format) -> np.ndarray:
    return np.array([f.decode(int(c)) for c in codes.ravel()]).reshape(codes.shape)


@functools.cache
def wmma(device: str) -> simt.gpu.Module:
    if not toolkit.toolkits():
        pytest.skip("NVRTC's wheel is not installed")
    return simt.GPU(device, functional=True, code=CODE).compile(WMMA + KERNELS, name=f"wmma_{device}.cu")


CASES = [
    *[(d, k) for d in ("qv100", "a100", "h100") for k in ("half_row", "half_col", "half_half")],
    *[(d, k) for d in ("a100", "h100") for k in ("bytes", "unsigned_bytes", "bfloat_row")],
]


@pytest.mark.slow
@pytest.mark.parametrize(("device", "kernel"), CASES)
def test_wmma_products(device: str, kernel: str, rng: np.random.Generator) -> None:
    module = wmma(device)
    m, n, k = 64, 96, 80
    if "bytes" in kernel:
        type_ = np.uint8 if kernel.startswith("unsigned") else np.int8
        a, b = (
            rng.integers(np.iinfo(type_).min, np.iinfo(type_).max, s, type_, True) for s in ((m, k), (k, n))
        )
        c = np.zeros((m, n), np.int32)
        numbers = a.astype(np.float64), b.astype(np.float64)
        tolerance = 0.0
    elif kernel == "bfloat_row":
        a, b = (to_codes(rng.standard_normal(s), BF16) for s in ((m, k), (k, n)))
        c = np.zeros((m, n), np.float32)
        numbers = from_codes(a, BF16), from_codes(b, BF16)
        tolerance = 1e-4
    else:
        a, b = (rng.standard_normal(s).astype(np.float16) for s in ((m, k), (k, n)))
        c = np.zeros((m, n), np.float16 if kernel == "half_half" else np.float32)
        numbers = a.astype(np.float64), b.astype(np.float64)
        tolerance = 0.2 if kernel == "half_half" else 1e-4
    module[kernel][(n // 32, m // 32), 128](a, b, c, n, k)
    np.testing.assert_allclose(c, 2 * (numbers[0] @ numbers[1]), rtol=0, atol=tolerance)


def test_fragments_can_be_looked_into(rng: np.random.Generator) -> None:
    a = rng.standard_normal((16, 16)).astype(np.float16)
    sums = np.zeros(16, np.float32)
    wmma("a100").row_sums[1, 32](a, sums)
    np.testing.assert_allclose(sums, a.astype(np.float64).sum(1), atol=1e-5)


@functools.cache
def triton_kernels() -> Any:
    pytest.importorskip("triton", reason="Triton is not installed")
    from support import tensor_kernels

    return tensor_kernels


@functools.cache
def device(name: str) -> simt.GPU:
    """Adds in double precision: with f8, a tensor core keeps 13 bits, which would hide what a layout does."""
    return simt.GPU(name, functional=True, tensor_arithmetic="exact", code=CODE)


SMALL, LARGE = (64, 32, 32), (128, 64, 64)
PRODUCTS = [
    *[(d, "f16", o, t) for d in ("a100", "h100") for o in ("rr", "rc", "cr", "cc") for t in (SMALL, LARGE)],
    *[(d, t, o, SMALL) for d in ("a100", "h100") for t in ("bf16", "f32", "i8") for o in ("rc", "cr")],
    *[("h100", "e4m3", o, LARGE) for o in ("rc", "cr")],
]


@pytest.mark.parametrize(("name", "type_", "layouts", "tile"), PRODUCTS, ids=str)
def test_triton_products(
    name: str, type_: str, layouts: str, tile: tuple[int, int, int], rng: np.random.Generator
) -> None:
    """mma.sync and wgmma with operands in all layouts that Triton uses in shared memory."""
    kernels = triton_kernels()
    bm, bn, bk = tile
    m, n, k = bm, 2 * bn, 2 * bk
    codes = type_ in ("bf16", "e4m3")
    out = np.zeros((m, n), np.int32 if type_ == "i8" else np.float32)
    operands, numbers = [], []
    for shape in ((m, k), (k, n)):
        if type_ == "i8":
            values = rng.integers(-128, 128, shape, np.int8)
        elif codes:
            values = to_codes(rng.standard_normal(shape), BF16 if type_ == "bf16" else E4M3)
        else:
            values = rng.standard_normal(shape).astype(np.float16 if type_ == "f16" else np.float32)
        operands.append(values)
        numbers.append(
            from_codes(values, BF16 if type_ == "bf16" else E4M3) if codes else values.astype(np.float64)
        )
    a, b = (np.ascontiguousarray(x if y == "r" else x.T) for x, y in zip(operands, layouts, strict=True))
    steps_a = (k, 1) if layouts[0] == "r" else (1, m)
    steps_b = (n, 1) if layouts[1] == "r" else (1, k)
    kind = {"i8": 1, "bf16": 2, "e4m3": 3}.get(type_, 0)
    device(name).triton(kernels.product)[(m // bm, n // bn)](
        a, b, out, k, *steps_a, *steps_b, n, BM=bm, BN=bn, BK=bk, KIND=kind, num_warps=4, num_stages=1
    )
    # tf32 keeps 11 bits of a number.
    tolerance = {"f32": 0.05, "i8": 0.0}.get(type_, 1e-3)
    np.testing.assert_allclose(out, numbers[0] @ numbers[1], rtol=0, atol=tolerance)


@pytest.mark.parametrize("name", ["a100", "h100"])
def test_triton_attention(name: str, rng: np.random.Generator) -> None:
    pytest.importorskip("triton", reason="Triton is not installed")
    from support import triton_kernels as kernels

    heads, length, depth = 2, 128, 64
    q, k, v = (rng.standard_normal((heads, length, depth)).astype(np.float16) for _ in range(3))
    out = np.zeros_like(q)
    scale = depth**-0.5
    device(name).triton(kernels.attention)[(length // 64, heads)](
        q, k, v, out, scale * np.log2(np.e), length, BM=64, BN=64, D=depth, num_warps=4, num_stages=1
    )
    scores = q.astype(np.float64) @ k.astype(np.float64).transpose(0, 2, 1) * scale
    scores = np.where(np.tril(np.ones((length, length), bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    np.testing.assert_allclose(out, weights @ v.astype(np.float64), rtol=0, atol=3e-3)
