"""SAXPY: the smallest useful kernel, from CUDA C++ to values and cycles."""

import numpy as np

import simt

SOURCE = """
extern "C" __global__ void saxpy(float a, const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
"""


def main(gpu: simt.GPU) -> None:
    n = 1 << 18
    x, y = np.random.default_rng(0).random((2, n), np.float32)
    expected = np.float32(2) * x + y
    module = gpu.compile(SOURCE)
    module.saxpy[(n + 255) // 256, 256](2.0, x, y, n)
    print("largest error:", float(abs(y - expected).max()))
