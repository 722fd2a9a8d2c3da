"""Sums, minima and the position of a maximum: in shared memory, by shuffles, atomics, cooperative groups."""

from __future__ import annotations

import numpy as np
import pytest

from simt.gpu import Module

SOURCE = r"""
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

// A binary tree in shared memory, one partial sum per block.
extern "C" __global__ void sum_tree(const float *x, float *partial, int n) {
  extern __shared__ float space[];
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += x[i];
  space[threadIdx.x] = sum;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) space[threadIdx.x] += space[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) partial[blockIdx.x] = space[0];
}

// Shuffles in each warp, then one warp over the warps' sums.
extern "C" __global__ void sum_shuffle(const float *x, float *partial, int n) {
  __shared__ float of_warp[32];
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += x[i];
  for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(~0u, sum, d);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (lane == 0) of_warp[warp] = sum;
  __syncthreads();
  if (warp == 0) {
    sum = lane < blockDim.x / 32 ? of_warp[lane] : 0;
    for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (lane == 0) partial[blockIdx.x] = sum;
  }
}

// Integer atomics: one per thread in shared memory, one per block in global memory.
extern "C" __global__ void sum_atomic(const int *x, unsigned long long *total, int n) {
  __shared__ unsigned long long of_block;
  if (threadIdx.x == 0) of_block = 0;
  __syncthreads();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&of_block, (unsigned long long)(long long)x[i]);
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(total, of_block);
}

// Cooperative groups: minimum and maximum of integers with the hardware's own reductions.
extern "C" __global__ void range_groups(const int *x, int *least, int *most, int n) {
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  const int i = cg::this_grid().thread_rank();
  const int v = x[min(i, n - 1)];
  const int low = cg::reduce(warp, v, cg::less<int>()), high = cg::reduce(warp, v, cg::greater<int>());
  if (warp.thread_rank() == 0) {
    atomicMin(least, low);
    atomicMax(most, high);
  }
}

// Groups of lanes that meet by chance: one atomic for all active lanes.
extern "C" __global__ void count_coalesced(const int *x, int *count, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && x[i] % 3 == 0) {
    auto active = cg::coalesced_threads();
    if (active.thread_rank() == 0) atomicAdd(count, active.size());
  }
}

// Where the greatest value is; the first of equal ones.
extern "C" __global__ void argmax(const float *x, int *where, int n) {
  __shared__ float value[256];
  __shared__ int index[256];
  float best = -INFINITY;
  int at = n;
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    if (x[i] > best) best = x[i], at = i;
  value[threadIdx.x] = best;
  index[threadIdx.x] = at;
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) {
      const int other = threadIdx.x + half;
      const bool better = value[other] > value[threadIdx.x] ||
                          (value[other] == value[threadIdx.x] && index[other] < index[threadIdx.x]);
      if (better) value[threadIdx.x] = value[other], index[threadIdx.x] = index[other];
    }
  }
  if (threadIdx.x == 0) *where = index[0];
}

// The last block to finish adds the others' sums: threadfence and a counter.
__device__ unsigned finished;
extern "C" __global__ void sum_last_block(const double *x, double *partial, double *total, int n) {
  __shared__ double space[128];
  __shared__ bool last;
  double sum = 0;
  for (int i = blockIdx.x * 128 + threadIdx.x; i < n; i += gridDim.x * 128) sum += x[i];
  const auto reduce = [&](double v) {
    space[threadIdx.x] = v;
    for (int half = 64; half > 0; half /= 2) {
      __syncthreads();
      if (threadIdx.x < half) space[threadIdx.x] += space[threadIdx.x + half];
    }
    __syncthreads();
    return space[0];
  };
  sum = reduce(sum);
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = sum;
    __threadfence();
    last = atomicInc(&finished, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last) {
    sum = reduce(threadIdx.x < gridDim.x ? ((volatile double *)partial)[threadIdx.x] : 0);
    if (threadIdx.x == 0) *total = sum;
  }
}

// Dot product, a block per pair of vectors, four elements a load.
extern "C" __global__ void dot(const float4 *a, const float4 *b, float *out, int quads) {
  const float4 *x = a + (size_t)blockIdx.x * quads, *y = b + (size_t)blockIdx.x * quads;
  float sum = 0;
  for (int i = threadIdx.x; i < quads; i += 32) {
    const float4 u = x[i], v = y[i];
    sum += u.x * v.x + u.y * v.y + u.z * v.z + u.w * v.w;
  }
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}
"""

SHAPES = [(1, 32), (3, 64), (7, 256), (2, 1024)]


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["sum_tree", "sum_shuffle"])
@pytest.mark.parametrize(("grid", "block"), SHAPES)
@pytest.mark.parametrize("n", [1, 31, 1000, 20_011])
def test_sum(module: Module, rng: np.random.Generator, kernel: str, grid: int, block: int, n: int) -> None:
    x = rng.integers(-1000, 1000, n).astype(np.float32)  # sums of these are exact in any order
    partial = np.full(grid, np.nan, np.float32)
    module[kernel][grid, block, 4 * block](x, partial, n)
    assert partial.sum() == x.sum(dtype=np.float64)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "block"), [(1, 32), (77, 96), (5000, 128)])
def test_sum_by_atomics(module: Module, rng: np.random.Generator, n: int, block: int) -> None:
    x = rng.integers(-(2**31), 2**31, n, dtype=np.int64).astype(np.int32)
    total = np.zeros(1, np.int64)
    module.sum_atomic[-(-n // block), block](x, total, n)
    assert total[0] == x.sum(dtype=np.int64)


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 33, 4096])
def test_least_and_most(module: Module, rng: np.random.Generator, n: int) -> None:
    x = rng.integers(-(2**31), 2**31, n, dtype=np.int64).astype(np.int32)
    least, most = np.full(1, 2**31 - 1, np.int32), np.full(1, -(2**31), np.int32)
    module.range_groups[-(-n // 64), 64](x, least, most, n)
    assert (least[0], most[0]) == (x.min(), x.max())


@pytest.mark.parametrize("n", [5, 1000])
def test_one_atomic_for_the_active_lanes(module: Module, rng: np.random.Generator, n: int) -> None:
    x = rng.integers(0, 1000, n).astype(np.int32)
    count = np.zeros(1, np.int32)
    module.count_coalesced[-(-n // 128), 128](x, count, n)
    assert count[0] == (x % 3 == 0).sum()


@pytest.mark.parametrize("block", [32, 256])
@pytest.mark.parametrize("n", [1, 100, 3000])
def test_place_of_the_maximum(module: Module, rng: np.random.Generator, n: int, block: int) -> None:
    x = rng.integers(0, 50, n).astype(np.float32)  # with many equal values
    where = np.zeros(1, np.int32)
    module.argmax[1, block](x, where, n)
    assert where[0] == x.argmax()


@pytest.mark.parametrize("grid", [1, 5, 64])
def test_last_block_finishes_the_sum(module: Module, rng: np.random.Generator, grid: int) -> None:
    x = rng.integers(-(2**40), 2**40, 9999).astype(np.float64)
    partial, total = np.zeros(grid), np.zeros(1)
    for _ in range(2):  # the counter is back at zero after the first
        module.sum_last_block[grid, 128](x, partial, total, len(x))
        assert total[0] == x.sum()
        total[:] = 0


@pytest.mark.parametrize(("vectors", "length"), [(1, 4), (5, 128), (3, 1000)])
def test_dot_product(module: Module, rng: np.random.Generator, vectors: int, length: int) -> None:
    a, b = rng.standard_normal((2, vectors, length)).astype(np.float32)
    out = np.zeros(vectors, np.float32)
    module.dot[vectors, 32](a, b, out, length // 4)
    exact = (a.astype(np.float64) * b).sum(1)
    bound = length * 2.0**-24 * np.abs(a.astype(np.float64) * b).sum(1)
    assert (np.abs(out - exact) <= bound).all()
