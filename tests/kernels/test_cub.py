"""CUB's block-wide algorithms: reduction, scan, radix sort, histogram."""

from __future__ import annotations

import numpy as np
import pytest

from simt.gpu import Module

SOURCE = r"""
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_histogram.cuh>

template <cub::BlockReduceAlgorithm algorithm>
__global__ void reduce(const int *x, int *total, int *most) {
  using Reduce = cub::BlockReduce<int, 128, algorithm>;
  __shared__ typename Reduce::TempStorage space;
  const int v = x[blockIdx.x * 128 + threadIdx.x];
  const int sum = Reduce(space).Sum(v);
  __syncthreads();
  const int greatest = Reduce(space).Reduce(v, [](int a, int b) { return a > b ? a : b; });
  if (threadIdx.x == 0) total[blockIdx.x] = sum, most[blockIdx.x] = greatest;
}

template <cub::BlockScanAlgorithm algorithm>
__global__ void scan(const int *x, int *y, int *total) {
  using Scan = cub::BlockScan<int, 64, algorithm>;
  __shared__ typename Scan::TempStorage space;
  int v[3], all;
  for (int k = 0; k < 3; ++k) v[k] = x[(blockIdx.x * 64 + threadIdx.x) * 3 + k];
  Scan(space).ExclusiveSum(v, v, all);
  for (int k = 0; k < 3; ++k) y[(blockIdx.x * 64 + threadIdx.x) * 3 + k] = v[k];
  if (threadIdx.x == 0) total[blockIdx.x] = all;
}

extern "C" __global__ void sort(float *keys, int *values, int descending) {
  using Sort = cub::BlockRadixSort<float, 64, 4, int>;
  __shared__ typename Sort::TempStorage space;
  float k[4];
  int v[4];
  const int first = (blockIdx.x * 64 + threadIdx.x) * 4;
  for (int i = 0; i < 4; ++i) k[i] = keys[first + i], v[i] = values[first + i];
  if (descending) Sort(space).SortDescending(k, v); else Sort(space).Sort(k, v);
  for (int i = 0; i < 4; ++i) keys[first + i] = k[i], values[first + i] = v[i];
}

extern "C" __global__ void histogram(const unsigned char *x, unsigned *bins) {
  using Histogram = cub::BlockHistogram<unsigned char, 64, 4, 256>;
  __shared__ typename Histogram::TempStorage space;
  __shared__ unsigned own[256];
  unsigned char v[4];
  for (int i = 0; i < 4; ++i) v[i] = x[(blockIdx.x * 64 + threadIdx.x) * 4 + i];
  Histogram(space).Histogram(v, own);
  __syncthreads();
  for (int b = threadIdx.x; b < 256; b += 64) bins[blockIdx.x * 256 + b] = own[b];
}
"""
REDUCTIONS = ("BLOCK_REDUCE_RAKING", "BLOCK_REDUCE_WARP_REDUCTIONS")
SCANS = ("BLOCK_SCAN_RAKING", "BLOCK_SCAN_WARP_SCANS")
TEMPLATES = [*(f"reduce<cub::{a}>" for a in REDUCTIONS), *(f"scan<cub::{a}>" for a in SCANS)]


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", REDUCTIONS)
@pytest.mark.parametrize("grid", [1, 5])
def test_reduce(module: Module, rng: np.random.Generator, algorithm: str, grid: int) -> None:
    x = rng.integers(-(10**6), 10**6, (grid, 128)).astype(np.int32)
    total, most = np.zeros((2, grid), np.int32)
    module[f"reduce<cub::{algorithm}>"][grid, 128](x, total, most)
    assert (total == x.sum(1)).all() and (most == x.max(1)).all()


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", SCANS)
@pytest.mark.parametrize("grid", [1, 4])
def test_scan(module: Module, rng: np.random.Generator, algorithm: str, grid: int) -> None:
    x = rng.integers(-1000, 1000, (grid, 192)).astype(np.int32)
    y, total = np.zeros_like(x), np.zeros(grid, np.int32)
    module[f"scan<cub::{algorithm}>"][grid, 64](x, y, total)
    assert (y == x.cumsum(1) - x).all() and (total == x.sum(1)).all()


@pytest.mark.slow
@pytest.mark.parametrize("descending", [0, 1])
@pytest.mark.parametrize("grid", [1, 3])
def test_radix_sort(module: Module, rng: np.random.Generator, descending: int, grid: int) -> None:
    keys = rng.integers(-40, 40, (grid, 256)).astype(np.float32) / 4  # many equal keys: the sort is stable
    values = np.tile(np.arange(256, dtype=np.int32), (grid, 1))
    order = np.argsort(-keys if descending else keys, axis=1, kind="stable")
    expected = np.take_along_axis(keys, order, 1)
    module.sort[grid, 64](keys, values, descending)
    assert (keys == expected).all() and (values == order).all()


@pytest.mark.slow
def test_histogram(module: Module, rng: np.random.Generator) -> None:
    x = rng.integers(0, 20, (2, 256)).astype(np.uint8) ** 2 // 2
    bins = np.zeros((2, 256), np.uint32)
    module.histogram[2, 64](x, bins)
    assert (bins == [np.bincount(row, minlength=256) for row in x]).all()
