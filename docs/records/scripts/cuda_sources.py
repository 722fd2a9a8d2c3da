"""How long it takes to make PTX: CUDA C++ through NVRTC, again from the cache, ptxas, and fat binaries.

python cuda_sources.py
"""

from __future__ import annotations

import os
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import lz4.block
import zstandard

from simt.cuda import compile_cuda, resources
from simt.cuda.fatbin import FATBIN_MAGIC, read_fatbins

T = TypeVar("T")
ARCH = "sm_80"
UNITS = 40
SOURCES = {
    "saxpy": """
        extern "C" __global__ void saxpy(float a, const float *x, float *y, int n) {
          int i = blockIdx.x * blockDim.x + threadIdx.x;
          if (i < n) y[i] += a * x[i];
        }""",
    "double math": """
        extern "C" __global__ void math(const double *x, double *y) {
          int i = threadIdx.x;
          y[i] = sin(x[i]) + exp(x[i]) + pow(x[i], 1.5) + lgamma(x[i]) + erf(x[i]);
        }""",
    "cooperative groups": """
        #include <cooperative_groups.h>
        #include <cooperative_groups/reduce.h>
        namespace cg = cooperative_groups;
        extern "C" __global__ void sum(const int *x, int *y) {
          auto warp = cg::tiled_partition<32>(cg::this_thread_block());
          y[0] = cg::reduce(warp, x[threadIdx.x], cg::plus<int>());
        }""",
    "CUB radix sort": """
        #include <cub/block/block_radix_sort.cuh>
        extern "C" __global__ void sort(unsigned *keys) {
          using Sort = cub::BlockRadixSort<unsigned, 128, 4>;
          __shared__ typename Sort::TempStorage space;
          unsigned mine[4];
          for (int i = 0; i < 4; ++i) mine[i] = keys[threadIdx.x * 4 + i];
          Sort(space).Sort(mine);
          for (int i = 0; i < 4; ++i) keys[threadIdx.x * 4 + i] = mine[i];
        }""",
}


def timed(action: Callable[[], T]) -> tuple[T, float]:
    """A result and the seconds that it took."""
    start = time.perf_counter()
    result = action()
    return result, time.perf_counter() - start


def large_fatbin(path: Path) -> None:
    """40 translation units of 10 MB each, one half LZ4, the other zstd."""
    draw = random.Random(1)
    lines = "".join(f"// {draw.random()}\n" for _ in range(480_000))
    text = f".version 8.0\n.target sm_80\n.entry f() {{ ret; }}\n{lines}".encode()
    packed = ((0x2011, lz4.block.compress(text, store_size=False)), (0x8011, zstandard.compress(text)))
    with path.open("wb") as file:
        for unit in range(UNITS):
            flags, payload = packed[unit % 2]
            fields = (1, 0x101, 64, len(payload), len(payload), 0, 0, 8, 80, 0, 0, flags, 0, len(text))
            sizes = (2, 2, 4, 8, 4, 4, 2, 2, 4, 4, 4, 8, 8, 8)
            entry = b"".join(
                field.to_bytes(size, "little") for field, size in zip(fields, sizes, strict=True)
            )
            file.write(FATBIN_MAGIC + (len(entry) + len(payload)).to_bytes(8, "little") + entry + payload)


def main() -> None:
    """Prints the table."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SIMT_CACHE"] = folder
        compile_cuda("", arch=ARCH)  # loads NVRTC
        print(f"{'':20} {'PTX':>8} {'compile':>9} {'again':>9} {'ptxas':>9} {'again':>9}")
        for name, source in SOURCES.items():
            _, compiling = timed(lambda source=source: compile_cuda(source, arch=ARCH))
            module, cached = timed(lambda source=source: compile_cuda(source, arch=ARCH))
            _, assembling = timed(lambda module=module: resources(module, ARCH))
            _, kept = timed(lambda module=module: resources(module, ARCH))
            print(
                f"{name:20} {len(module.text) / 1e3:5.0f} kB {compiling:7.2f} s {cached * 1e3:6.1f} ms "
                f"{assembling:7.2f} s {kept * 1e3:6.1f} ms"
            )
        path = Path(folder) / "large.fatbin"
        large_fatbin(path)
        modules, reading = timed(lambda: read_fatbins(path, ARCH))
        size = sum(len(module.text) for module in modules)
        packed = path.stat().st_size
        print(
            f"fat binary: {packed / 1e6:.0f} MB, {len(modules)} units, {size / 1e6:.0f} MB of PTX: "
            f"{reading:.1f} s, {size / reading / 1e6:.0f} MB/s"
        )


if __name__ == "__main__":
    main()
