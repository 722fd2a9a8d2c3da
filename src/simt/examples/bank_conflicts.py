"""Bank conflicts: a transpose through shared memory, with and without a column of padding."""

import numpy as np

import simt
from simt.result import difference

SOURCE = """
template <int width>
__device__ void transpose(const float* in, float* out, int n) {
  __shared__ float tile[32][width];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int k = 0; k < 32; k += 8) tile[threadIdx.y + k][threadIdx.x] = in[(y + k) * n + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  for (int k = 0; k < 32; k += 8) out[(y + k) * n + x] = tile[threadIdx.x][threadIdx.y + k];
}
extern "C" __global__ void conflicts(const float* in, float* out, int n) { transpose<32>(in, out, n); }
extern "C" __global__ void padded(const float* in, float* out, int n) { transpose<33>(in, out, n); }
"""


def main(gpu: simt.GPU) -> None:
    n = 512
    module = gpu.compile(SOURCE)
    a = np.arange(n * n, dtype=np.float32).reshape(n, n)
    x, y, z = gpu.array(a), gpu.zeros((n, n)), gpu.zeros((n, n))
    slow = module.conflicts[(n // 32, n // 32), (32, 8)](x, y, n)
    print("transposed:", bool((y.numpy() == a.T).all()))
    fast = module.padded[(n // 32, n // 32), (32, 8)](x, z, n)
    print("transposed:", bool((z.numpy() == a.T).all()))
    if slow and fast:
        print(difference(slow, fast))
