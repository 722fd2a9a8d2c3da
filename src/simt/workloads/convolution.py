"""Simple convolution: a 3 by 3 mask over an image of 256 rows, a thread for each pixel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from .workload import Outputs, Workload

if TYPE_CHECKING:
    from simt.gpu import GPU

HEIGHT, MASK = 256, 3
SOURCE = """
// The image has a border, so that every pixel of the result has its neighbours.
extern "C" __global__ void convolution(const float* x, const float* mask, float* y, int width, int height,
                                       int side) {
  int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (column >= width || row >= height) return;
  float sum = 0;
  for (int r = 0; r < side; r++)
    for (int s = 0; s < side; s++) sum += x[(row + r) * (width + side - 1) + column + s] * mask[r * side + s];
  y[row * width + column] = sum;
}
"""


def _inputs(width: int) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    rng = np.random.default_rng(0)
    return rng.random((HEIGHT + MASK - 1, width + MASK - 1), np.float32), rng.random((MASK, MASK), np.float32)


def _on_gpu(gpu: GPU, width: int) -> Outputs:
    x, mask = (gpu.array(part) for part in _inputs(width))
    y = gpu.empty((HEIGHT, width))
    kernel = gpu.compile(SOURCE).convolution
    kernel[(-(-width // 64), HEIGHT // 4), (64, 4)](x, mask, y, width, HEIGHT, MASK)
    return {"y": y.numpy()}


def _on_host(width: int) -> Outputs:
    x, mask = _inputs(width)
    y = sum(x[r : r + HEIGHT, s : s + width] * mask[r, s] for r in range(MASK) for s in range(MASK))
    return {"y": np.asarray(y)}


CONVOLUTION = Workload(
    name="convolution",
    summary="simple convolution, 3 x 3, of an image with 256 rows",
    unit="columns",
    sizes=tuple(1 << k for k in range(10, 15)),
    small=100,
    multiple=1,
    on_gpu=_on_gpu,
    on_host=_on_host,
)
