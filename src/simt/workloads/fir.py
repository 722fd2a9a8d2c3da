"""A finite impulse response filter: 16 taps in a loop, a thread for each sample."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from .workload import Outputs, Workload, with_midpoints

if TYPE_CHECKING:
    from simt.gpu import GPU

TAPS = 16
SOURCE = """
// history holds the samples before the first, the latest last.
extern "C" __global__ void fir(const float* x, const float* history, const float* filter, float* y, int taps,
                               int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float sum = 0;
  for (int k = 0; k < taps; k++) sum += filter[k] * (i >= k ? x[i - k] : history[taps + i - k]);
  y[i] = sum;
}
"""


def _inputs(size: int) -> tuple[npt.NDArray[np.float32], ...]:
    rng = np.random.default_rng(0)
    return rng.random(size, np.float32), rng.random(TAPS, np.float32), rng.random(TAPS, np.float32)


def _on_gpu(gpu: GPU, size: int) -> Outputs:
    x, history, taps = (gpu.array(part) for part in _inputs(size))
    y = gpu.empty(size)
    gpu.compile(SOURCE).fir[-(-size // 256), 256](x, history, taps, y, TAPS, size)
    return {"y": y.numpy()}


def _on_host(size: int) -> Outputs:
    x, history, taps = _inputs(size)
    return {"y": np.convolve(np.concatenate([history, x]), taps)[TAPS : TAPS + size]}


FIR = Workload(
    name="fir",
    summary="finite impulse response filter with 16 taps",
    unit="samples",
    sizes=with_midpoints(*(k << 16 for k in (1, 2, 4, 8, 16, 64))),
    small=1000,
    multiple=1,
    on_gpu=_on_gpu,
    on_host=_on_host,
)
