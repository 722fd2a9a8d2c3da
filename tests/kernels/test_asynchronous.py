"""Copies that run asynchronously to threads, barriers in memory, clusters that share their memory."""

from __future__ import annotations

import numpy as np
import pytest

import simt
from simt.gpu import Module

PIPELINES = r"""
#include <cuda_pipeline.h>

// Rows of 128 go through three buffers; each copy is on its way while the row before is summed.
extern "C" __global__ void pipelined_sum(const float4 *x, float *sums, int rows) {
  __shared__ float4 buffer[3][32];
  const int t = threadIdx.x;
  for (int r = 0; r < 2; ++r) {
    if (r < rows) __pipeline_memcpy_async(&buffer[r][t], &x[r * 32 + t], 16);
    __pipeline_commit();
  }
  for (int r = 0; r < rows; ++r) {
    if (r + 2 < rows) __pipeline_memcpy_async(&buffer[(r + 2) % 3][t], &x[(r + 2) * 32 + t], 16);
    __pipeline_commit();
    __pipeline_wait_prior(2);
    __syncthreads();
    const float4 v = buffer[r % 3][31 - t];
    float sum = v.x + v.y + v.z + v.w;
    for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (t == 0) sums[r] = sum;
    __syncthreads();
  }
}

// The end of the array is padded with zeros by the copy itself.
extern "C" __global__ void padded_copy(const int *x, int *y, int n) {
  __shared__ int buffer[64];
  const int i = blockIdx.x * 64 + threadIdx.x;
  __pipeline_memcpy_async(&buffer[threadIdx.x], x + min(i, n - 1), 4, i < n ? 0 : 4);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  y[i] = buffer[63 - threadIdx.x];
}
"""

BARRIERS = r"""
#include <cuda/barrier>
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
namespace cg = cooperative_groups;

// Two halves of a block hand a buffer to and fro with two barriers in shared memory.
extern "C" __global__ void hand_over(const int *x, int *y, int rounds) {
  using Barrier = cuda::barrier<cuda::thread_scope_block>;
  __shared__ __align__(8) char place[2 * sizeof(Barrier)];
  Barrier *full = (Barrier *)place, *empty = full + 1;
  __shared__ int box[64];
  const int half = blockDim.x / 2, t = threadIdx.x % half;
  if (threadIdx.x == 0) init(full, blockDim.x), init(empty, blockDim.x);
  __syncthreads();
  for (int r = 0; r < rounds; ++r) {
    if (threadIdx.x < half) {
      box[t] = x[r * half + t] * 3;
      (void)full->arrive();
      empty->arrive_and_wait();
    } else {
      full->arrive_and_wait();
      y[r * half + t] = box[half - 1 - t];
      (void)empty->arrive();
    }
  }
}

// A group's copy to shared memory, waited for by the group.
extern "C" __global__ void group_copy(const int *x, int *y) {
  __shared__ __align__(16) int buffer[256];
  auto block = cg::this_thread_block();
  cg::memcpy_async(block, buffer, x + blockIdx.x * 256, sizeof(buffer));
  cg::wait(block);
  for (int i = threadIdx.x; i < 256; i += blockDim.x) y[blockIdx.x * 256 + i] = buffer[255 - i];
}
"""

CLUSTERS = r"""
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

// A histogram whose bins are spread over the blocks of a cluster.
extern "C" __global__ void spread_histogram(const int *x, int *bins, int n, int each) {
  extern __shared__ int own[];
  auto cluster = cg::this_cluster();
  for (int b = threadIdx.x; b < each; b += blockDim.x) own[b] = 0;
  cluster.sync();
  for (int i = cluster.thread_rank(); i < n; i += cluster.num_threads())
    atomicAdd(cluster.map_shared_rank(own, x[i] / each) + x[i] % each, 1);
  cluster.sync();
  for (int b = threadIdx.x; b < each; b += blockDim.x) bins[cluster.block_rank() * each + b] = own[b];
}

// Each block of a cluster reads its neighbour's sum.
extern "C" __global__ void __cluster_dims__(4, 1, 1) neighbours(const int *x, int *y) {
  __shared__ int sum;
  auto cluster = cg::this_cluster();
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  atomicAdd(&sum, x[blockIdx.x * blockDim.x + threadIdx.x]);
  cluster.sync();
  if (threadIdx.x == 0)
    y[blockIdx.x] = *cluster.map_shared_rank(&sum, (cluster.block_rank() + 1) % cluster.num_blocks());
  cluster.sync();
}
"""


@pytest.fixture(scope="module")
def pipelines(gpu: simt.GPU) -> Module:
    return gpu.compile(PIPELINES)


@pytest.fixture(scope="module")
def barriers(gpu: simt.GPU) -> Module:
    return gpu.compile(BARRIERS)


@pytest.fixture(scope="module")
def clusters(gpu: simt.GPU) -> Module:
    return gpu.compile(CLUSTERS)


@pytest.mark.parametrize("rows", [1, 2, 3, 10])
def test_pipelined_copies(pipelines: Module, rng: np.random.Generator, rows: int) -> None:
    x = rng.integers(-100, 100, (rows, 128)).astype(np.float32)
    sums = np.zeros(rows, np.float32)
    pipelines.pipelined_sum[1, 32](x, sums, rows)
    assert (sums == x.sum(1)).all()


@pytest.mark.parametrize("n", [1, 63, 130])
def test_copies_that_pad(pipelines: Module, rng: np.random.Generator, n: int) -> None:
    x, y = rng.integers(1, 1000, n).astype(np.int32), np.full(192, -1, np.int32)
    pipelines.padded_copy[3, 64](x, y, n)
    assert (y == np.pad(x, (0, 192 - n)).reshape(3, 64)[:, ::-1].ravel()).all()


@pytest.mark.slow
@pytest.mark.parametrize(("block", "rounds"), [(64, 1), (128, 5)])
def test_barriers_in_memory(barriers: Module, rng: np.random.Generator, block: int, rounds: int) -> None:
    x = rng.integers(-1000, 1000, (rounds, block // 2)).astype(np.int32)
    y = np.zeros_like(x)
    barriers.hand_over[1, block](x, y, rounds)
    assert (y == 3 * x[:, ::-1]).all()


@pytest.mark.slow
@pytest.mark.parametrize("block", [32, 96])
def test_copy_of_a_group(barriers: Module, rng: np.random.Generator, block: int) -> None:
    x = rng.integers(-1000, 1000, (3, 256)).astype(np.int32)
    y = np.zeros_like(x)
    barriers.group_copy[3, block](x, y)
    assert (y == x[:, ::-1]).all()


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 2, 8])
def test_histogram_over_a_cluster(clusters: Module, rng: np.random.Generator, size: int) -> None:
    each = 10
    x = rng.integers(0, size * each, 1000).astype(np.int32)
    bins = np.zeros(size * each, np.int32)
    clusters.spread_histogram[size, 64, 4 * each, None, size](x, bins, len(x), each)
    assert (bins == np.bincount(x, minlength=size * each)).all()


@pytest.mark.slow
def test_neighbours_in_a_cluster(clusters: Module, rng: np.random.Generator) -> None:
    x = rng.integers(-100, 100, (8, 64)).astype(np.int32)
    y = np.zeros(8, np.int32)
    clusters.neighbours[8, 64](x, y)
    sums = x.sum(1).reshape(2, 4)
    assert (y == np.roll(sums, -1, 1).ravel()).all()
