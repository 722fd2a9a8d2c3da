"""Sparse matrix times vector: compressed rows, 1 % of the elements, a thread for each row."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from .workload import Outputs, Workload, with_midpoints

if TYPE_CHECKING:
    from simt.gpu import GPU

DENSITY = 0.01
SOURCE = """
extern "C" __global__ void spmv(const int* first, const int* columns, const float* values, const float* x,
                                float* y, int rows) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0;
  for (int k = first[row]; k < first[row + 1]; k++) sum += values[k] * x[columns[k]];
  y[row] = sum;
}
"""


class MatrixRows(NamedTuple):
    """A square matrix by compressed rows: where each row begins (and the last ends), columns."""

    first: npt.NDArray[np.int32]
    columns: npt.NDArray[np.int32]

    def sums(self, products: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """The sum of each row's products."""
        total = np.concatenate([[0.0], np.cumsum(products)])
        return np.asarray(total[self.first[1:]] - total[self.first[:-1]])


def random_rows(rng: np.random.Generator, size: int, density: float) -> MatrixRows:
    """Binomial numbers of elements, spread over the row at random, in ascending order of columns."""
    counts = rng.binomial(size, density, size)
    first = np.concatenate([[0], np.cumsum(counts)])
    place = np.arange(first[-1]) - np.repeat(first[:-1], counts) + rng.random(first[-1])
    columns = place * np.repeat(size / np.maximum(counts, 1), counts)
    return MatrixRows(first.astype(np.int32), np.minimum(columns, size - 1).astype(np.int32))


def _inputs(size: int) -> tuple[MatrixRows, npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    rng = np.random.default_rng(0)
    rows = random_rows(rng, size, DENSITY)
    return rows, rng.random(len(rows.columns), np.float32), rng.random(size, np.float32)


def _on_gpu(gpu: GPU, size: int) -> Outputs:
    rows, values, x = _inputs(size)
    y = gpu.empty(size)
    kernel = gpu.compile(SOURCE).spmv
    arrays = [gpu.array(part) for part in (rows.first, rows.columns, values, x)]
    kernel[-(-size // 128), 128](*arrays, y, size)
    return {"y": y.numpy()}


def _on_host(size: int) -> Outputs:
    rows, values, x = _inputs(size)
    return {"y": rows.sums(values.astype(np.float64) * x[rows.columns])}


SPMV = Workload(
    name="spmv",
    summary="sparse matrix times vector, 1 % of the elements, a thread for each row",
    unit="rows",
    sizes=with_midpoints(*(1 << k for k in range(13, 17))),
    small=1000,
    multiple=1,
    on_gpu=_on_gpu,
    on_host=_on_host,
)
