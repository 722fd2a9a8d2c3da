"""Coalesced against strided: the same bytes, once side by side and once 128 bytes apart."""

import numpy as np

import simt
from simt.result import difference

SOURCE = """
extern "C" __global__ void strided(const float* x, float* y, int n, int stride) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int k = (i % (n / stride)) * stride + i / (n / stride);
  y[i] = x[k] + 1;
}
extern "C" __global__ void coalesced(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[i] + 1;
}
"""


def main(gpu: simt.GPU) -> None:
    n = 1 << 18
    module = gpu.compile(SOURCE)
    x = gpu.array(np.arange(n, dtype=np.float32))
    y, z = gpu.empty(n), gpu.empty(n)
    slow = module.strided[n // 256, 256](x, y, n, 32)
    fast = module.coalesced[n // 256, 256](x, z, n)
    # Both read every element once.
    print("same elements:", bool((np.sort(y.numpy()) == z.numpy()).all()))
    if slow and fast:
        print(difference(slow, fast))
