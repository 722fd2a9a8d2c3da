"""Where a tiled product keeps an SM busy, against rates that others measured on an A100."""

from __future__ import annotations

import numpy as np
import pytest

import simt

PUBLISHED = 33.4
"""Cycles of an SM for a warp and tile, 2048 x 2048 (vaughaningram/gpu-perf-model, Nsight Compute's figures in
results/m2_tiled16_a100_80gb_2048_profile_summary.csv): 1,228,406,784 instructions, 0.5495 in an issue slot of
108 SMs, are 33.3; 3.704 ms without a profiler, at 1,410 MHz, are 33.6."""
TILED = """
typedef unsigned long long size;
extern "C" __global__ void tiled(const float* a, const float* b, float* c, size k, size n) {
  __shared__ float mine[16][16], other[16][16];
  const size column = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
  float sum = 0;
  for (size at = 0; at < k; at += 16) {
    const size x = at + threadIdx.x, y = at + threadIdx.y;
    mine[threadIdx.y][threadIdx.x] = x < k ? a[row * k + x] : 0;
    other[threadIdx.y][threadIdx.x] = y < k && column < n ? b[y * n + column] : 0;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 16; ++i) sum += mine[threadIdx.y][i] * other[i][threadIdx.x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}
"""


def cycles(k: int) -> int:
    """Of eight CTAs of eight warps on an SM, as many as it holds, that find their arrays in the L2."""
    gpu = simt.GPU("a100-pcie", code="sass", set={"sm.count": 1})
    tiled = gpu.compile(TILED).tiled
    a, b, c = (gpu.zeros(shape, np.float32) for shape in ((16, k), (k, 128), (16, 128)))
    return [tiled[(8, 1), (16, 16)](a, b, c, k, 128).cycles for _ in range(2)][-1]


def test_steady_state() -> None:
    tiles = 64 * 16  # warps, and tiles of 256 more elements
    assert (cycles(512) - cycles(256)) / tiles == pytest.approx(PUBLISHED, rel=0.05)
