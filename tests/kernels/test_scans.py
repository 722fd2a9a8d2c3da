"""Prefix sums in a warp, a block and a grid, and algorithms based on them: compaction, segmented sums."""

from __future__ import annotations

import numpy as np
import pytest

from simt.gpu import Module

SOURCE = r"""
// Hillis and Steele: log n steps between two halves of shared memory; inclusive.
extern "C" __global__ void scan_hillis_steele(const int *x, int *y, int n) {
  extern __shared__ int space[];
  int from = 0;
  const int t = threadIdx.x;
  space[t] = t < n ? x[t] : 0;
  for (int d = 1; d < blockDim.x; d *= 2) {
    __syncthreads();
    const int v = space[from * blockDim.x + t] + (t >= d ? space[from * blockDim.x + t - d] : 0);
    from ^= 1;
    space[from * blockDim.x + t] = v;
  }
  __syncthreads();
  if (t < n) y[t] = space[from * blockDim.x + t];
}

// Blelloch: sums up a tree, prefixes down; two elements a thread; exclusive.
extern "C" __global__ void scan_blelloch(const int *x, int *y, int n) {
  extern __shared__ int tree[];
  const int t = threadIdx.x, size = 2 * blockDim.x;
  for (int i = t; i < size; i += blockDim.x) tree[i] = i < n ? x[i] : 0;
  int step = 1;
  for (int pairs = blockDim.x; pairs > 0; pairs /= 2, step *= 2) {
    __syncthreads();
    if (t < pairs) tree[step * (2 * t + 2) - 1] += tree[step * (2 * t + 1) - 1];
  }
  __syncthreads();
  if (t == 0) tree[size - 1] = 0;
  for (int pairs = 1; pairs < size; pairs *= 2) {
    step /= 2;
    __syncthreads();
    if (t < pairs) {
      int &left = tree[step * (2 * t + 1) - 1], &right = tree[step * (2 * t + 2) - 1];
      const int kept = left;
      left = right;
      right += kept;
    }
  }
  __syncthreads();
  for (int i = t; i < size; i += blockDim.x)
    if (i < n) y[i] = tree[i];
}

__device__ unsigned scan_of_warp(unsigned v) {
  for (int d = 1; d < 32; d *= 2) {
    const unsigned left = __shfl_up_sync(~0u, v, d);
    if (threadIdx.x % 32 >= d) v += left;
  }
  return v;
}

// A grid in one pass: each block publishes its sum, and looks back over those before it until it finds a
// whole prefix. The state is 2 bits (nothing, sum, prefix) beside 62 bits of value.
extern "C" __global__ void scan_look_back(const unsigned *x, unsigned *y, unsigned long long *state,
                                          unsigned *ticket, int n) {
  __shared__ unsigned of_warp[32], before, block;
  const int t = threadIdx.x, lane = t % 32, warp = t / 32, warps = blockDim.x / 32;
  if (t == 0) block = atomicAdd(ticket, 1);
  __syncthreads();
  const int i = block * blockDim.x + t;
  unsigned v = scan_of_warp(i < n ? x[i] : 0);
  if (lane == 31) of_warp[warp] = v;
  __syncthreads();
  if (warp == 0) {
    const unsigned sum = scan_of_warp(lane < warps ? of_warp[lane] : 0);
    of_warp[lane] = sum;
    const unsigned all = __shfl_sync(~0u, sum, 31);
    if (lane == 0) {
      volatile unsigned long long *look = state;
      unsigned prefix = 0;
      look[block] = (block ? 1ull : 2ull) << 62 | all;
      for (int b = (int)block - 1; b >= 0;) {
        const unsigned long long s = look[b];
        if (s >> 62 == 0) continue;
        prefix += (unsigned)s;
        if (s >> 62 == 2) break;
        --b;
      }
      before = prefix;
      look[block] = 2ull << 62 | (unsigned)(prefix + all);
    }
  }
  __syncthreads();
  if (i < n) y[i] = v + (warp ? of_warp[warp - 1] : 0) + before;
}

// What passes a test, in order: ballots and population counts, one block.
extern "C" __global__ void compact(const int *x, int *kept, int *count, int n) {
  __shared__ int of_warp[32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  int done = 0;
  for (int first = 0; first < n; first += blockDim.x) {
    const int i = first + threadIdx.x;
    const bool keep = i < n && x[i] > 0;
    const unsigned votes = __ballot_sync(~0u, keep);
    if (lane == 0) of_warp[warp] = __popc(votes);
    const int all = __syncthreads_count(keep);
    int before = done;
    for (int w = 0; w < warp; ++w) before += of_warp[w];
    if (keep) kept[before + __popc(votes & ((1u << lane) - 1))] = x[i];
    done += all;
    __syncthreads();
  }
  if (threadIdx.x == 0) *count = done;
}

// Running sums that begin anew at each head flag, in one warp.
extern "C" __global__ void scan_segments(const float *x, const unsigned char *head, float *y) {
  const int i = blockIdx.x * 32 + threadIdx.x, lane = threadIdx.x;
  const unsigned heads = __ballot_sync(~0u, head[i]) | 1;
  const int first = 31 - __clz(heads & (2u << lane) - 1);
  float v = x[i];
  for (int d = 1; d < 32; d *= 2) {
    const float left = __shfl_up_sync(~0u, v, d);
    if (lane - d >= first) v += left;
  }
  y[i] = v;
}
"""


@pytest.mark.parametrize(("n", "block"), [(1, 32), (50, 64), (256, 256), (1000, 1024)])
def test_hillis_steele(module: Module, rng: np.random.Generator, n: int, block: int) -> None:
    x, y = rng.integers(-100, 100, n).astype(np.int32), np.zeros(n, np.int32)
    module.scan_hillis_steele[1, block, 8 * block](x, y, n)
    assert (y == x.cumsum()).all()


@pytest.mark.parametrize(("n", "block"), [(1, 1), (3, 2), (60, 32), (256, 128), (1500, 1024)])
def test_blelloch(module: Module, rng: np.random.Generator, n: int, block: int) -> None:
    x, y = rng.integers(-100, 100, n).astype(np.int32), np.zeros(n, np.int32)
    module.scan_blelloch[1, block, 8 * block](x, y, n)
    assert (y == x.cumsum() - x).all()


@pytest.mark.parametrize(("n", "block"), [(5, 32), (4000, 64), (10_000, 256)])
def test_decoupled_look_back(module: Module, rng: np.random.Generator, n: int, block: int) -> None:
    blocks = -(-n // block)
    x, y = rng.integers(0, 2**32, n, dtype=np.uint64).astype(np.uint32), np.zeros(n, np.uint32)
    module.scan_look_back[blocks, block](x, y, np.zeros(blocks, np.uint64), np.zeros(1, np.uint32), n)
    assert (y == x.cumsum(dtype=np.uint32)).all()


@pytest.mark.parametrize(("n", "block"), [(1, 32), (999, 128), (3000, 512)])
def test_compaction_keeps_the_order(module: Module, rng: np.random.Generator, n: int, block: int) -> None:
    x = rng.integers(-5, 6, n).astype(np.int32)
    kept, count = np.zeros(n, np.int32), np.zeros(1, np.int32)
    module.compact[1, block](x, kept, count, n)
    assert count[0] == (x > 0).sum()
    assert (kept[: count[0]] == x[x > 0]).all()


@pytest.mark.parametrize("density", [0.02, 0.3, 1])
def test_segments(module: Module, rng: np.random.Generator, density: float) -> None:
    x = rng.integers(-50, 50, (4, 32)).astype(np.float32)
    head = (rng.random((4, 32)) < density).astype(np.uint8)
    y = np.zeros_like(x)
    module.scan_segments[4, 32](x, head, y)
    expected = np.zeros_like(x)
    for row in range(4):
        for lane in range(32):
            begins = lane == 0 or head[row, lane]
            expected[row, lane] = x[row, lane] + (0 if begins else expected[row, lane - 1])
    assert (y == expected).all()
