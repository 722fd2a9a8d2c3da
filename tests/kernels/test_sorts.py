"""Sorting and counting: bitonic, odd-even, merge and radix sorts, histograms."""

from __future__ import annotations

import numpy as np
import pytest

from simt.gpu import Module

SOURCE = r"""
// Bitonic sort of a power of two of keys in shared memory.
extern "C" __global__ void sort_bitonic(float *keys, int n) {
  extern __shared__ float space[];
  for (int i = threadIdx.x; i < n; i += blockDim.x) space[i] = keys[blockIdx.x * n + i];
  for (int size = 2; size <= n; size *= 2) {
    for (int d = size / 2; d > 0; d /= 2) {
      __syncthreads();
      for (int p = threadIdx.x; p < n / 2; p += blockDim.x) {
        const int i = 2 * p - (p & (d - 1)), j = i + d;
        const float a = space[i], b = space[j];
        if ((a > b) == ((i & size) == 0)) space[i] = b, space[j] = a;
      }
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) keys[blockIdx.x * n + i] = space[i];
}

// One step of bitonic sort over global memory, keys with their values.
extern "C" __global__ void bitonic_step(unsigned *keys, unsigned *values, int size, int d) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, j = i ^ d;
  if (j <= i) return;
  const bool up = (i & size) == 0;
  if (up ? keys[i] > keys[j] : keys[i] < keys[j]) {
    const unsigned k = keys[i], v = values[i];
    keys[i] = keys[j], values[i] = values[j];
    keys[j] = k, values[j] = v;
  }
}

// Odd-even transposition: a thread per pair, until nobody swaps.
extern "C" __global__ void sort_odd_even(int *keys, int n) {
  bool changed = true;
  while (changed) {
    changed = false;
    for (int odd = 0; odd < 2; ++odd) {
      for (int i = 2 * threadIdx.x + odd; i + 1 < n; i += 2 * blockDim.x) {
        const int a = keys[i], b = keys[i + 1];
        if (a > b) keys[i] = b, keys[i + 1] = a, changed = true;
      }
      changed = __syncthreads_or(changed);
    }
  }
}

// Merges sorted runs of `width`: each element finds its place by binary search in the other run.
extern "C" __global__ void merge_runs(const int *from, int *to, int width, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int run = i / width, other = (run ^ 1) * width, v = from[i];
  int low = min(other, n), high = min(other + width, n);
  const int begin = low;
  while (low < high) {
    const int middle = (low + high) / 2;
    // Equal keys of the left run come first.
    if (run % 2 ? from[middle] <= v : from[middle] < v) low = middle + 1; else high = middle;
  }
  to[run / 2 * 2 * width + i % width + (low - begin)] = v;
}

// Radix sort in one block, a bit a pass, by a split: zeros first, each side in order.
extern "C" __global__ void sort_radix(unsigned *keys, int bits) {
  __shared__ unsigned space[256];
  __shared__ int zeros[8];
  const int t = threadIdx.x, lane = t % 32, warp = t / 32;
  unsigned key = keys[t];
  for (int b = 0; b < bits; ++b) {
    const bool one = key >> b & 1;
    const unsigned votes = __ballot_sync(~0u, !one);
    if (lane == 0) zeros[warp] = __popc(votes);
    __syncthreads();
    int before = 0, all = 0;
    for (int w = 0; w < blockDim.x / 32; ++w) {
      if (w < warp) before += zeros[w];
      all += zeros[w];
    }
    before += __popc(votes & ((1u << lane) - 1));
    space[one ? all + t - before : before] = key;
    __syncthreads();
    key = space[t];
  }
  keys[t] = key;
}

extern "C" __global__ void histogram_global(const unsigned char *x, unsigned *bins, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&bins[x[i]], 1);
}

// A histogram per block in shared memory, four bytes a load.
extern "C" __global__ void histogram_shared(const uchar4 *x, unsigned *bins, int quads) {
  __shared__ unsigned own[256];
  for (int b = threadIdx.x; b < 256; b += blockDim.x) own[b] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < quads; i += gridDim.x * blockDim.x) {
    const uchar4 v = x[i];
    atomicAdd(&own[v.x], 1);
    atomicAdd(&own[v.y], 1);
    atomicAdd(&own[v.z], 1);
    atomicAdd(&own[v.w], 1);
  }
  __syncthreads();
  for (int b = threadIdx.x; b < 256; b += blockDim.x) atomicAdd(&bins[b], own[b]);
}

// Lanes with equal keys find each other, and one of them counts for all.
extern "C" __global__ void histogram_match(const int *x, int *bins, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned here = __ballot_sync(~0u, i < n);
  if (i < n) {
    const unsigned same = __match_any_sync(here, x[i]);
    if (threadIdx.x % 32 == __ffs(same) - 1) atomicAdd(&bins[x[i]], __popc(same));
  }
}
"""


@pytest.mark.parametrize(("n", "block"), [(2, 32), (64, 32), (512, 128), (1024, 1024)])
def test_bitonic_in_shared_memory(module: Module, rng: np.random.Generator, n: int, block: int) -> None:
    keys = rng.standard_normal((3, n)).astype(np.float32)
    expected = np.sort(keys, axis=1)
    module.sort_bitonic[3, block, 4 * n](keys, n)
    assert (keys == expected).all()


def test_bitonic_over_many_launches(module: Module, rng: np.random.Generator) -> None:
    n = 1024
    keys = rng.permutation(n).astype(np.uint32)
    values = keys * 7
    size = 2
    while size <= n:
        distance = size // 2
        while distance:
            module.bitonic_step[n // 128, 128](keys, values, size, distance)
            distance //= 2
        size *= 2
    assert (keys == np.arange(n)).all()
    assert (values == 7 * np.arange(n)).all()


@pytest.mark.parametrize(("n", "block"), [(1, 32), (33, 32), (200, 128)])
def test_odd_even_transposition(module: Module, rng: np.random.Generator, n: int, block: int) -> None:
    keys = rng.integers(-50, 50, n).astype(np.int32)
    expected = np.sort(keys)
    module.sort_odd_even[1, block](keys, n)
    assert (keys == expected).all()


@pytest.mark.parametrize("n", [1, 100, 1500])
def test_merge_sort(module: Module, rng: np.random.Generator, n: int) -> None:
    a = rng.integers(-200, 200, n).astype(np.int32)
    expected, b = np.sort(a), np.zeros(n, np.int32)
    width = 1
    while width < n:
        module.merge_runs[-(-n // 128), 128](a, b, width, n)
        a, b = b, a
        width *= 2
    assert (a == expected).all()


@pytest.mark.parametrize(("n", "bits"), [(32, 32), (256, 16)])
def test_radix_sort(module: Module, rng: np.random.Generator, n: int, bits: int) -> None:
    keys = rng.integers(0, 1 << bits, n, dtype=np.uint64).astype(np.uint32)
    expected = np.sort(keys)
    module.sort_radix[1, n](keys, bits)
    assert (keys == expected).all()


@pytest.mark.parametrize(("grid", "block"), [(1, 32), (4, 256)])
@pytest.mark.parametrize("n", [4, 4000])
def test_histograms(module: Module, rng: np.random.Generator, grid: int, block: int, n: int) -> None:
    x = np.minimum(rng.geometric(0.05, n), 255).astype(np.uint8)  # some bins are crowded
    expected = np.bincount(x, minlength=256)
    bins = np.zeros((2, 256), np.uint32)
    module.histogram_global[grid, block](x, bins[0], n)
    module.histogram_shared[grid, block](x, bins[1], n // 4)
    assert (bins == expected).all()


def test_histogram_of_matching_lanes(module: Module, rng: np.random.Generator) -> None:
    x = rng.integers(0, 7, 1000).astype(np.int32)
    bins = np.zeros(7, np.int32)
    module.histogram_match[8, 128](x, bins, len(x))
    assert (bins == np.bincount(x, minlength=7)).all()
