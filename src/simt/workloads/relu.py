"""ReLU over a vector: two basic blocks, one warp type."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from .workload import Outputs, Workload, with_midpoints

if TYPE_CHECKING:
    from simt.gpu import GPU

SOURCE = """
extern "C" __global__ void relu(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = fmaxf(x[i], 0.0f);
}
"""


def _input(size: int) -> npt.NDArray[np.float32]:
    return np.asarray(np.random.default_rng(0).random(size, np.float32) - 0.5, np.float32)


def _on_gpu(gpu: GPU, size: int) -> Outputs:
    x, y = gpu.array(_input(size)), gpu.empty(size)
    gpu.compile(SOURCE).relu[-(-size // 256), 256](x, y, size)
    return {"y": y.numpy()}


def _on_host(size: int) -> Outputs:
    return {"y": np.maximum(_input(size), 0)}


RELU = Workload(
    name="relu",
    summary="ReLU of a vector",
    unit="elements",
    sizes=with_midpoints(*(1 << k for k in range(18, 23))),
    small=1000,
    multiple=1,
    on_gpu=_on_gpu,
    on_host=_on_host,
    tolerance=0,
)
