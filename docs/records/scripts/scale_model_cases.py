"""The launches of scale_model_study.py: kernels of tests/kernels and Triton kernels of `simt model`,
each with a number of CTAs that the caller asks for.

Arrays on which no address and no branch depends are unbacked; the others have values.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

import simt
from simt.network import works
from simt.network.works import Work

Launch = tuple[str, Any, Any, int, tuple[Any, ...]]
"""Kernel, grid, block, dynamic shared bytes, arguments."""
SEED = 5103
GPUS = ("h100", "qv100", "rtx3060")
WAVES = (8, 24)
"""Of each launch, drawn between these."""
KIND = "bfloat16"


def data(gpu: simt.GPU, *shape: int, of: Any = np.float32) -> Any:
    return gpu.empty(shape, of, unbacked=True)


def filled(gpu: simt.GPU, *shape: int, of: Any = np.float32) -> Any:
    return gpu.array((np.random.default_rng(1).random(shape) + 0.5).astype(of))


def heat(gpu: simt.GPU, ctas: int) -> Launch:
    x, y = 2048, max(1, ctas // 64) * 8
    return "heat_2d", (x // 32, y // 8), (32, 8), 0, (data(gpu, y, x), data(gpu, y, x), y, x, 0.1)


def stencil(gpu: simt.GPU, ctas: int) -> Launch:
    n = 256 * ctas
    return "stencil_1d", ctas, 256, 4 * 262, (data(gpu, n), data(gpu, n), n)


def laplace(gpu: simt.GPU, ctas: int) -> Launch:
    x, y, z = 1024, max(1, ctas // 32) * 4, 2
    u, v = data(gpu, z, y, x, of=np.float64), data(gpu, z, y, x, of=np.float64)
    return "laplace_3d", (x // 32, y // 4), (32, 4), 0, (u, v, x, y, z)


def transpose(kernel: str) -> Callable[[simt.GPU, int], Launch]:
    def of(gpu: simt.GPU, ctas: int) -> Launch:
        x, y = 2048, max(1, ctas // 64) * 32
        return kernel, (x // 32, y // 32), (32, 8), 0, (data(gpu, y, x), data(gpu, x, y), y, x)

    return of


def black_scholes(gpu: simt.GPU, ctas: int) -> Launch:
    n = 128 * ctas
    return "black_scholes", ctas, 128, 0, (*(filled(gpu, n) for _ in range(5)), 0.02, 0.3, n)


def lorenz(gpu: simt.GPU, ctas: int) -> Launch:
    return "lorenz", ctas, 64, 0, (data(gpu, 64 * ctas, 3, of=np.float64), 1, 0.01)


def gemm_naive(gpu: simt.GPU, ctas: int) -> Launch:
    n, k = 1024, 16
    m = max(1, ctas // 32) * 8
    arguments = (data(gpu, m, k), data(gpu, k, n), data(gpu, m, n))
    return "gemm_naive", (n // 32, m // 8), (32, 8), 0, (*arguments, m, n, k)


def gemm_registers(gpu: simt.GPU, ctas: int) -> Launch:
    n, k = 2048, 32
    m = max(1, ctas // 32) * 64
    arguments = (data(gpu, m, k), data(gpu, k, n), data(gpu, m, n))
    return "gemm_registers", (n // 64, m // 64), 64, 0, (*arguments, n, k)


def gemv(gpu: simt.GPU, ctas: int) -> Launch:
    m, n = 4, 96
    return "gemv_batched", ctas, 128, 0, (data(gpu, ctas, m, n), data(gpu, ctas, n), data(gpu, ctas, m), m, n)


def softmax(kernel: str) -> Callable[[simt.GPU, int], Launch]:
    def of(gpu: simt.GPU, ctas: int) -> Launch:
        rows, columns = 4 * ctas, 64
        array = filled if kernel == "softmax_online" else data
        return kernel, ctas, (32, 4), 0, (array(gpu, rows, columns), array(gpu, rows, columns), rows, columns)

    return of


def layer_norm(gpu: simt.GPU, ctas: int) -> Launch:
    columns = 256
    given = (filled(gpu, ctas, columns), filled(gpu, columns), filled(gpu, columns))
    return "layer_norm", ctas, 128, 0, (*given, filled(gpu, ctas, columns), columns, 1e-5)


def convolve(gpu: simt.GPU, ctas: int) -> Launch:
    x, size = 1024, 3
    y = max(1, ctas // 64) * 8
    given = (data(gpu, y, x), data(gpu, size, size), data(gpu, y, x))
    return "convolve", (x // 16, y // 8), (16, 8), 0, (*given, y, x, size)


def gelu(gpu: simt.GPU, ctas: int) -> Launch:
    n = 256 * ctas
    return "gelu", ctas, 256, 0, (data(gpu, n), data(gpu, n), n)


def xorshift(gpu: simt.GPU, ctas: int) -> Launch:
    n = 64 * ctas
    return "xorshift", ctas, 64, 0, (data(gpu, n, of=np.uint32), data(gpu, 20 * n, of=np.uint32), 20)


def sha256(gpu: simt.GPU, ctas: int) -> Launch:
    n = 32 * ctas
    return "sha256", ctas, 32, 0, (data(gpu, n, 16, of=np.uint32), data(gpu, n, 8, of=np.uint32), n)


def dot(gpu: simt.GPU, ctas: int) -> Launch:
    quads = 32
    return "dot", ctas, 32, 0, (data(gpu, ctas, quads, 4), data(gpu, ctas, quads, 4), data(gpu, ctas), quads)


def sort_bitonic(gpu: simt.GPU, ctas: int) -> Launch:
    n = 256
    rng = np.random.default_rng(1)
    return "sort_bitonic", ctas, 128, 4 * n, (gpu.array(rng.random((ctas, n), np.float32)), n)


def spmv_ell(gpu: simt.GPU, ctas: int) -> Launch:
    rows, width = 128 * ctas, 12
    columns = gpu.array(np.random.default_rng(1).integers(0, rows, (width, rows)).astype(np.int32))
    given = (columns, data(gpu, width, rows), data(gpu, rows), data(gpu, rows))
    return "spmv_ell", ctas, 128, 0, (*given, rows, width)


def look_up(gpu: simt.GPU, ctas: int) -> Launch:
    n, slots = 128 * ctas, 1 << 20
    rng = np.random.default_rng(1)
    table = rng.integers(0, 1 << 62, slots).astype(np.uint64)
    table = gpu.array(np.where(rng.random(slots) < 0.6, table, np.uint64(2**64 - 1)))
    key = gpu.array(rng.integers(0, 1 << 31, n).astype(np.uint32))
    return "look_up", ctas, 128, 0, (table, slots, key, gpu.zeros(n, np.int32), n)


def murmur3(gpu: simt.GPU, ctas: int) -> Launch:
    count = 64 * ctas
    rng = np.random.default_rng(1)
    begin = np.concatenate([[0], np.cumsum(rng.integers(8, 40, count))]).astype(np.int32)
    text = gpu.array(rng.integers(97, 123, int(begin[-1])).astype(np.uint8))
    given = (text, gpu.array(begin), gpu.zeros(count, np.uint32))
    return "murmur3", ctas, 64, 0, (*given, 0x9747B28C, count)


def mandelbrot(gpu: simt.GPU, ctas: int) -> Launch:
    w = 1024
    h = max(1, ctas // 64) * 8
    return (
        "mandelbrot",
        (w // 16, h // 8),
        (16, 8),
        0,
        (data(gpu, h, w, of=np.uint16), w, h, -2.2, -1.0, 3.0 / w, 10),
    )


def fft_shared(gpu: simt.GPU, ctas: int) -> Launch:
    bits = 6
    given = (data(gpu, ctas << bits, 2), data(gpu, ctas << bits, 2))
    return "fft_shared", ctas, 64, 8 << bits, (*given, bits, np.float32(-1))


def haar(gpu: simt.GPU, ctas: int) -> Launch:
    n = 128 * ctas
    return "haar", ctas, 128, 0, (data(gpu, n, 2), data(gpu, n), data(gpu, n), n)


def padded_copy(gpu: simt.GPU, ctas: int) -> Launch:
    n = 64 * ctas
    return "padded_copy", ctas, 64, 0, (filled(gpu, n, of=np.int32), filled(gpu, n, of=np.int32), n)


def norm_rows(hidden: int, layer: bool) -> Callable[[simt.GPU, int], Work]:
    return lambda gpu, ctas: works.norm(ctas, hidden, KIND, True, layer)


def activation(gpu: simt.GPU, ctas: int) -> Work:
    return works.activate(max(1, ctas // 4), 4096, KIND, True)


def product(k: int, across: int = 16) -> Callable[[simt.GPU, int], Work]:
    """Of the tile that large shapes get on the GPU; as many columns as give `across` tiles."""

    def of(gpu: simt.GPU, ctas: int) -> Work:
        tile = (128, 256, 64, 8, 3) if gpu.spec.sm_version >= 90 else (128, 128, 32, 8, 3)
        m, n = max(1, ctas // across) * tile[0], across * tile[1]
        return works.product(m, n, k, gpu.spec, KIND, tile=tile)

    return of


def attention(dim: int) -> Callable[[simt.GPU, int], Work]:
    """As many sequences of 1,024 tokens as give the CTAs, with 8 heads."""
    return lambda gpu, ctas: works.prefill_attention(max(1, ctas // 64), 1024, 8, 8, dim, KIND, gpu.spec)


Maker = Callable[[simt.GPU, int], Launch | Work]
KERNELS: dict[str, tuple[str, Maker]] = {
    "heat": ("test_stencils", heat),
    "stencil": ("test_stencils", stencil),
    "laplace": ("test_stencils", laplace),
    "transpose_naive": ("test_stencils", transpose("transpose_naive")),
    "transpose_padded": ("test_stencils", transpose("transpose_padded")),
    "mandelbrot": ("test_simulations", mandelbrot),
    "black_scholes": ("test_simulations", black_scholes),
    "lorenz": ("test_simulations", lorenz),
    "gemm_naive": ("test_linear_algebra", gemm_naive),
    "gemm_registers": ("test_linear_algebra", gemm_registers),
    "gemv": ("test_linear_algebra", gemv),
    "softmax": ("test_neural", softmax("softmax")),
    "softmax_online": ("test_neural", softmax("softmax_online")),
    "layer_norm": ("test_neural", layer_norm),
    "convolve": ("test_neural", convolve),
    "gelu": ("test_neural", gelu),
    "xorshift": ("test_random_and_hashes", xorshift),
    "sha256": ("test_random_and_hashes", sha256),
    "murmur3": ("test_random_and_hashes", murmur3),
    "dot": ("test_reductions", dot),
    "sort_bitonic": ("test_sorts", sort_bitonic),
    "spmv_ell": ("test_sparse_and_graphs", spmv_ell),
    "look_up": ("test_sparse_and_graphs", look_up),
    "fft_shared": ("test_signals", fft_shared),
    "haar": ("test_signals", haar),
    "padded_copy": ("test_asynchronous", padded_copy),
    "triton_rms_norm": ("", norm_rows(2048, False)),
    "triton_layer_norm": ("", norm_rows(1024, True)),
    "triton_activation": ("", activation),
    "triton_product": ("", product(512)),
    "triton_product_short": ("", product(256)),
    "triton_product_wide": ("", product(384, 32)),
    "triton_attention": ("", attention(64)),
    "triton_attention_128": ("", attention(128)),
}
"""File of tests/kernels that has its source, none for those of `simt model`; and its launch."""
TRITON = ("triton_",)


def halves() -> dict[str, str]:
    """Half of each kernel, by a split that does not change: of the CUDA kernels and of Triton's each half."""
    found: dict[str, str] = {}
    shuffled = random.Random(SEED)
    for triton in (False, True):
        names = sorted(name for name in KERNELS if name.startswith(TRITON) is triton)
        shuffled.shuffle(names)
        found |= {name: ("development", "held-out")[i % 2] for i, name in enumerate(names)}
    return found


def waves_of(gpu: str, name: str) -> float:
    """Drawn for each launch: a few of them whole, most with a part of a wave at the end."""
    return round(random.Random(f"{SEED} {gpu} {name}").uniform(*WAVES), 2)


if __name__ == "__main__":
    for kernel, half in sorted(halves().items(), key=lambda item: item[::-1]):
        print(half, kernel, *(f"{gpu}:{waves_of(gpu, kernel)}" for gpu in GPUS))
