"""What three products and a binomial tree take on one SM of Volta, by compiler, unrolling and specification.

    python docs/records/scripts/volta_products.py [--set PATH=VALUE ...] [--nvrtc LIBRARY]

Cycles of an SM for a warp: a register-tiled product of seven CTAs that share their A, and one of seven with
an A of their own (eight steps of K: 32 LDS.128 of one address for all lanes, 8 LDG of a line, 128 FFMA); a
tiled product, and a load of a naive one (TITAN V: 66.5 and 2.04, Debdeep23/test1). Bytes that a stream reads
from the L2. The sample binomialOptions (V100: 1,366,301 cycles, AccelWattch). LIBRARY is another libnvrtc.so:
CUDA 11.2 and later make machine code, earlier ones PTX, of which the installed ptxas makes code. And, on 16
SMs, an iteration of sums over rows and columns of 4,096 elements, as in PolyBench's ATAX, from empty caches.
"""

import argparse
import ctypes
from typing import Any

import numpy as np

from simt.gpu import GPU, Module

REGISTER_TILED = """
extern "C" __global__ void __launch_bounds__(128) product(const float* a, int rows, const float* b,
                                                         int columns, float* c, int k) {
  __shared__ float tile[8][16];
  float sums[16] = {};
  int row = blockIdx.x * 128 + threadIdx.y * 16 + threadIdx.x;
  for (int i = 0; i < k; i += 8) {
    tile[threadIdx.y][threadIdx.x] = b[blockIdx.y * 16 + threadIdx.x + (i + threadIdx.y) * columns];
    __syncthreads();
#pragma unroll UNROLL
    for (int j = 0; j < 8; ++j) {
      float x = a[row + (i + j) * rows];
#pragma unroll
      for (int q = 0; q < 16; ++q) sums[q] += x * tile[j][q];
    }
    __syncthreads();
  }
  for (int q = 0; q < 16; ++q) c[row + (blockIdx.y * 16 + q) * rows] = sums[q];
}
"""
OTHERS = """
extern "C" __global__ void __launch_bounds__(1024) tiled(const float* a, const float* b, float* c, int n) {
  __shared__ float x[32][32], y[32][32];
  int row = blockIdx.y * 32 + threadIdx.y, column = blockIdx.x * 32 + threadIdx.x;
  float sum = 0;
  for (int t = 0; t < n; t += 32) {
    x[threadIdx.y][threadIdx.x] = a[row * n + t + threadIdx.x];
    y[threadIdx.y][threadIdx.x] = b[(t + threadIdx.y) * n + column];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 32; ++k) sum += x[threadIdx.y][k] * y[k][threadIdx.x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}
extern "C" __global__ void naive(const float* a, const float* b, float* c, int n, int k) {
  int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
  float sum = 0;
  for (int t = 0; t < k; ++t) sum += a[row * k + t] * b[t * n + column];
  c[row * n + column] = sum;
}
extern "C" __global__ void stream(const float* a, float* c, int n) {
  float sum = 0;
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) sum += a[i];
  c[threadIdx.x + blockIdx.x * blockDim.x] = sum;
}
"""
SUMS = """
extern "C" __global__ void by_rows(const float* a, const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int j = 0; j < n; ++j) y[i] += a[i * 4096 + j] * x[j];
}
extern "C" __global__ void by_columns(const float* a, const float* x, float* y, int n) {
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  for (int i = 0; i < n; ++i) y[j] += a[i * 4096 + j] * x[i];
}
"""
BINOMIAL = """
__constant__ float options[5 * 1024];
extern "C" __global__ void binomial(float* results, int steps) {
  __shared__ float edge[129];
  const float* option = options + 5 * blockIdx.x;
  const float s = option[0], x = option[1], v = option[2], up = option[3], down = option[4];
  int first = threadIdx.x * 16;
  float call[17];
#pragma unroll
  for (int i = 0; i < 16; ++i) call[i] = fmaxf(s * __expf(v * (2.0f * (first + i) - steps)) - x, 0);
  if (threadIdx.x == 0) edge[128] = fmaxf(s * __expf(v * steps) - x, 0);
#pragma unroll 16
  for (int i = steps; i > 0; --i) {
    edge[threadIdx.x] = call[0];
    __syncthreads();
    call[16] = edge[threadIdx.x + 1];
    __syncthreads();
    if (i > first - 1) {
#pragma unroll
      for (int j = 0; j < 16; ++j) call[j] = up * call[j + 1] + down * call[j];
    }
  }
  if (threadIdx.x == 0) results[blockIdx.x] = call[0];
}
"""


def compiled(gpu: GPU, text: str, nvrtc: ctypes.CDLL | None) -> Module:
    """By the compiler that simt uses, or by this NVRTC."""
    if nvrtc is None:
        return gpu.compile(text, name="products.cu")
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    machine_code = hasattr(nvrtc, "nvrtcGetCUBIN")
    kind = "CUBIN" if machine_code else "PTX"
    option = (ctypes.c_char_p * 1)(f"--gpu-architecture={'sm' if machine_code else 'compute'}_70".encode())

    def call(name: str, *arguments: Any) -> None:
        if getattr(nvrtc, "nvrtc" + name)(*arguments) != 0:
            raise SystemExit(f"nvrtc{name} failed")

    call("CreateProgram", ctypes.byref(program), text.encode(), b"products.cu", 0, None, None)
    call("CompileProgram", program, 1, option)
    call(f"Get{kind}Size", program, ctypes.byref(size))
    code = ctypes.create_string_buffer(size.value)
    call(f"Get{kind}", program, code)
    return gpu.load(code.raw if machine_code else code.value.decode())


def beyond(run: Any, low: int, high: int) -> int:
    """Cycles that `high` steps take beyond `low`, when code and data are in the caches."""
    for steps in (low, high):
        run(steps)
    return int(run(high).cycles - run(low).cycles)


def show(settings: dict[str, int], nvrtc: ctypes.CDLL | None) -> None:
    volta, titan = (GPU(name, set=settings, code="sass") for name in ("qv100", "titanv"))
    for unroll in (8, 4, 2, 1):
        kernel = compiled(volta, REGISTER_TILED.replace("UNROLL", str(unroll)), nvrtc)["product"]
        found = []
        for wide, high in ((1, 7), (7, 1)):
            sizes = (128 * wide * 512, 16 * high * 512, 128 * wide * 16 * high)
            a, b, c = (volta.zeros(size, np.float32) for size in sizes)
            grid, leading = (wide, high), (np.int32(128 * wide), np.int32(16 * high))

            def run(k: int) -> Any:
                return kernel[grid, (16, 8)](a, leading[0], b, leading[1], c, np.int32(k))  # noqa: B023

            found.append(beyond(run, 128, 512) / (384 / 8 * 4 * wide * high))
        print(f"register-tiled, unrolled by {unroll}: {found[0]:.1f}, each its own A: {found[1]:.1f}")
    module = compiled(titan, OTHERS, nvrtc)
    a, c = titan.zeros(1 << 20, np.float32), titan.zeros(1 << 20, np.float32)
    taken = beyond(lambda n: module["tiled"][1, (32, 32)](a, a, c, np.int32(n)), 512, 1024)
    print(f"tiled: {taken / (512 / 32 * 32):.1f}")
    taken = beyond(lambda k: module["naive"][6, (16, 16)](a, a, c, np.int32(96), np.int32(k)), 128, 384)
    print(f"naive: {taken / (256 * 48 * 2):.2f}")
    taken = beyond(lambda n: module["stream"][8, 256](a, c, np.int32(n)), 1 << 16, 1 << 17)
    print(f"stream: {(1 << 18) / taken:.1f} B a cycle")
    kernel = compiled(volta, BINOMIAL, nvrtc)["binomial"]
    print(f"binomialOptions: {kernel[13, 128](volta.zeros(13, np.float32), np.int32(2048)).cycles} cycles")
    gpu = GPU("qv100", set=settings | {"sm.count": 16, "launch.cold_caches": True}, code="sass")
    module = compiled(gpu, SUMS, nvrtc)
    a, x, y = (gpu.zeros(size, np.float32) for size in (1 << 24, 4096, 4096))
    for name in ("by_rows", "by_columns"):
        taken = beyond(lambda n: module[name][16, 256](a, x, y, np.int32(n)), 128, 384)  # noqa: B023
        print(f"{name}: {taken / 256:.1f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--set", action="append", default=[], metavar="PATH=VALUE")
    parser.add_argument("--nvrtc", type=ctypes.CDLL, metavar="LIBRARY")
    options = parser.parse_args()
    pairs = (each.partition("=") for each in options.set)
    show({"sm.count": 1} | {path: int(value) for path, _, value in pairs}, options.nvrtc)
