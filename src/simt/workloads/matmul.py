"""Matrix multiplication, 64 x 128 by 128 x n: tiles through shared memory, 4 by 4 results a thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from .workload import Outputs, Workload, with_midpoints

if TYPE_CHECKING:
    from simt.gpu import GPU

ROWS, INNER = 64, 128
SOURCE = """
// A block of 16 x 16 threads makes a tile of 64 x 64.
extern "C" __global__ void __launch_bounds__(256) matmul(const float* a, const float* b, float* c, int inner,
                                                         int n) {
  __shared__ __align__(16) float left[16][68], right[16][64];
  int t = threadIdx.x, x = t % 16 * 4, y = t / 16 * 4;
  int k = t % 4 * 4, m = t / 4;
  a += (blockIdx.y * 64 + m) * inner + k;
  b += blockIdx.x * 64 + t / 16 * n + x;
  float sum[4][4] = {};
  for (int first = 0; first < inner; first += 16, a += 16, b += 16 * n) {
    float4 u = *(const float4*)a;
    left[k][m] = u.x, left[k + 1][m] = u.y, left[k + 2][m] = u.z, left[k + 3][m] = u.w;
    *(float4*)&right[t / 16][x] = *(const float4*)b;
    __syncthreads();
#pragma unroll
    for (int s = 0; s < 16; s++) {
      float4 p = *(float4*)&left[s][y], q = *(float4*)&right[s][x];
      float column[4] = {p.x, p.y, p.z, p.w}, row[4] = {q.x, q.y, q.z, q.w};
#pragma unroll
      for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) sum[i][j] += column[i] * row[j];
    }
    __syncthreads();
  }
  c += (blockIdx.y * 64 + y) * n + blockIdx.x * 64 + x;
  for (int i = 0; i < 4; i++) *(float4*)&c[i * n] = make_float4(sum[i][0], sum[i][1], sum[i][2], sum[i][3]);
}
"""


def _inputs(size: int) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    rng = np.random.default_rng(0)
    return rng.random((ROWS, INNER), np.float32), rng.random((INNER, size), np.float32)


def _on_gpu(gpu: GPU, size: int) -> Outputs:
    a, b = (gpu.array(part) for part in _inputs(size))
    c = gpu.empty((ROWS, size))
    gpu.compile(SOURCE).matmul[(size // 64, ROWS // 64), 256](a, b, c, INNER, size)
    return {"c": c.numpy()}


def _on_host(size: int) -> Outputs:
    a, b = _inputs(size)
    return {"c": a @ b}


MATMUL = Workload(
    name="matmul",
    summary="matrix multiplication, 64 x 128 by 128 x n",
    unit="columns",
    sizes=with_midpoints(*(1 << k for k in range(15, 20))),
    small=192,
    multiple=64,
    on_gpu=_on_gpu,
    on_host=_on_host,
)
