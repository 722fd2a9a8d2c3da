"""PageRank: 16 iterations over a random graph, a block of 64 threads for each node."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from .spmv import MatrixRows, random_rows
from .workload import Outputs, Workload, with_midpoints

if TYPE_CHECKING:
    from simt.gpu import GPU

DENSITY, ITERATIONS, DAMPING = 0.001, 16, 0.85
SOURCE = """
// A row has the nodes that link to a node, and what share of their rank each of them passes on.
extern "C" __global__ void pagerank(const int* first, const int* sources, const float* shares,
                                    const float* rank, float* next, float base, float damping) {
  __shared__ float sums[64];
  int t = threadIdx.x, row = blockIdx.x;
  float sum = 0;
  for (int k = first[row] + t; k < first[row + 1]; k += 64) sum += shares[k] * rank[sources[k]];
  sums[t] = sum;
  __syncthreads();
  for (int half = 32; half > 0; half /= 2) {
    if (t < half) sums[t] += sums[t + half];
    __syncthreads();
  }
  if (t == 0) next[row] = base + damping * sums[0];
}
"""


def _graph(size: int) -> tuple[MatrixRows, npt.NDArray[np.float32]]:
    rows = random_rows(np.random.default_rng(0), size, max(DENSITY, 4 / size))
    links = np.bincount(rows.columns, minlength=size)
    return rows, (1 / links[rows.columns]).astype(np.float32)


def _on_gpu(gpu: GPU, size: int) -> Outputs:
    rows, shares = _graph(size)
    graph = [gpu.array(part) for part in (rows.first, rows.columns, shares)]
    rank, following = gpu.array(np.full(size, 1 / size, np.float32)), gpu.empty(size)
    kernel = gpu.compile(SOURCE).pagerank
    for _ in range(ITERATIONS):
        kernel[size, 64](*graph, rank, following, (1 - DAMPING) / size, DAMPING)
        rank, following = following, rank
    return {"rank": rank.numpy()}


def _on_host(size: int) -> Outputs:
    rows, shares = _graph(size)
    rank = np.full(size, 1 / size)
    for _ in range(ITERATIONS):
        rank = (1 - DAMPING) / size + DAMPING * rows.sums(shares * rank[rows.columns])
    return {"rank": rank}


PAGERANK = Workload(
    name="pagerank",
    summary="PageRank, 16 iterations, a block for each node",
    unit="nodes",
    sizes=with_midpoints(*(1 << k for k in range(13, 17))),
    small=500,
    multiple=1,
    on_gpu=_on_gpu,
    on_host=_on_host,
)
