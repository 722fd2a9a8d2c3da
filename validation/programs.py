"""What a GPU is judged by: one list of programs, which run unchanged on a real and on a simulated GPU.

A program makes its inputs, launches its kernels and knows what they must give.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib import import_module, util
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from simt.cuda import PtxModule, compile_cuda
from simt.gpu import GPU
from simt.gpu.module import Module
from simt.workloads import WORKLOADS

Array = npt.NDArray[Any]
Values = tuple[Any, Callable[[], Any]]  # what a program computed, and what it must be
Check = Callable[[], float]  # the largest error of what was computed, relative to the largest value
Run = Callable[[GPU], Check]

SOURCE = Path(__file__).parent / "kernels.cu"
# In a small campaign, at their first size.
QUICK = {"copy", "gather", "reduce", "scan", "histogram_shared", "transpose", "sgemm", "stencil_2d"}
QUICK |= {"relu", "fir", "spmv", "saxpy", "add"}


@dataclass(frozen=True)
class Program:
    """suite, name: of its records. quick: whether a small campaign has it. run: launches it on a GPU.

    tolerance: the error that it may have. Dropping what `run` gives frees its arrays.
    """

    suite: str
    name: str
    quick: bool
    run: Run
    tolerance: float


# --- our kernels: name, tolerance, sizes, launch ----------------------------------------------------------


def random(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Array:
    return np.random.default_rng(seed).random(shape, np.float32).astype(dtype)


def integers(n: int, limit: int, seed: int = 0, dtype: Any = np.uint32) -> Array:
    return np.random.default_rng(seed).integers(0, limit, n).astype(dtype)


def blocks(n: int, of: int = 256) -> int:
    return -(-n // of)


def copy(gpu: GPU, m: Module, n: int) -> Values:
    x, y = random(n), gpu.empty(n)
    m.copy[blocks(n // 4), 256](gpu.array(x), y, n // 4)
    return y, lambda: x


def triad(gpu: GPU, m: Module, n: int, double: bool = False) -> Values:
    dtype = np.float64 if double else np.float32
    x, y, z = random(n, dtype=dtype), random(n, dtype=dtype, seed=1), gpu.empty(n, dtype)
    m["triad_double" if double else "triad"][blocks(n), 256](gpu.array(x), gpu.array(y), z, 3.0, n)
    return z, lambda: x + 3 * y


def strided(gpu: GPU, m: Module, n: int, stride: int) -> Values:
    x, y = random(n * stride), gpu.empty(n)
    m.strided[blocks(n), 256](gpu.array(x), y, stride, n)
    return y, lambda: x[::stride]


def gather(gpu: GPU, m: Module, n: int, name: str) -> Values:
    x, index = random(n), np.random.default_rng(1).permutation(n).astype(np.int32)
    y = gpu.empty(n)
    m[name][blocks(n), 256](gpu.array(x), gpu.array(index), y, n)
    return y, lambda: x[index] if name == "gather" else x[np.argsort(index)]


def gelu_half(gpu: GPU, m: Module, n: int) -> Values:
    x, y = 4 * random(n, dtype=np.float16) - 2, gpu.empty(n, np.float16)
    m.gelu_half[blocks(n // 2), 256](gpu.array(x), y, n // 2)
    v = x.astype(np.float64)
    return y, lambda: 0.5 * v * (1 + np.tanh(0.79788456 * (v + 0.044715 * v**3)))


def reduce(gpu: GPU, m: Module, n: int) -> Values:
    x, partial_ = random(n), gpu.empty(264)
    m.reduce[264, 256](gpu.array(x), partial_, n)
    return [partial_.numpy().sum(dtype=np.float64)], lambda: [x.sum(dtype=np.float64)]


def dot(gpu: GPU, m: Module, n: int) -> Values:
    x, y, total = random(n), random(n, seed=1), gpu.zeros(1)
    m.dot[blocks(n), 256](gpu.array(x), gpu.array(y), total, n)
    return total, lambda: [x.astype(np.float64) @ y]


def scan(gpu: GPU, m: Module, n: int) -> Values:
    x, y = integers(n, 1000), gpu.empty(n, np.uint32)
    m.scan[n // 256, 256](gpu.array(x), y, n)
    return y, lambda: x.reshape(-1, 256).cumsum(1).ravel()


def bitonic(gpu: GPU, m: Module, n: int) -> Values:
    host = integers(n, 1 << 31)
    x = gpu.array(host)
    m.bitonic[n // 512, 256](x)
    return x, lambda: np.sort(host.reshape(-1, 512)).ravel()


def histogram(gpu: GPU, m: Module, n: int, name: str) -> Values:
    count = 256 if name == "histogram_shared" else 4096
    x, bins = integers(n, 1 << 30), gpu.zeros(count, np.uint32)
    m[name][264 if count == 256 else blocks(n), 256](gpu.array(x), bins, n)
    return bins, lambda: np.bincount(x % count, minlength=count)


def transpose(gpu: GPU, m: Module, n: int, name: str) -> Values:
    x, y = random(n, n), gpu.empty((n, n))
    m[name][(n // 32, n // 32), 256](gpu.array(x), y, n)
    return y, lambda: x.T


def product(gpu: GPU, m: Module, n: int, name: str) -> Values:
    inputs, output = {"sgemm": (np.float32, np.float32), "hgemm": (np.float16, np.float32)}.get(
        name, (np.float64, np.float64)
    )
    a, b = random(n, n, dtype=inputs), random(n, n, dtype=inputs, seed=1)
    c = gpu.empty((n, n), output)
    grid = (n // 32, n // 8) if name == "dgemm" else (n // 64, n // 64)
    m[name][grid, 128 if name == "hgemm" else 256](gpu.array(a), gpu.array(b), c, n)
    return c, lambda: a.astype(np.float64) @ b.astype(np.float64)


def matvec(gpu: GPU, m: Module, n: int) -> Values:
    a, x, y = random(n, n), random(n, seed=1), gpu.empty(n)
    m.matvec[n // 8, 256](gpu.array(a), gpu.array(x), y, n)
    return y, lambda: a.astype(np.float64) @ x


def matvec_int8(gpu: GPU, m: Module, n: int) -> Values:
    a = integers(n * n, 256).astype(np.int8).reshape(n, n)
    x, y = integers(n, 256, 1).astype(np.int8), gpu.empty(n, np.int32)
    m.matvec_int8[n // 8, 256](gpu.array(a), gpu.array(x), y, n // 4)
    return y, lambda: a.astype(np.int64) @ x


def rows(gpu: GPU, m: Module, n: int, name: str) -> Values:
    x, y = random(n, 1024), gpu.empty((n, 1024))
    m[name][n, 256](gpu.array(x), y, 1024)
    if name == "softmax":
        return y, lambda: np.exp(x) / np.exp(x).sum(1, keepdims=True)
    return y, lambda: (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)


def stencil_2d(gpu: GPU, m: Module, n: int) -> Values:
    x, y = random(n, n), gpu.zeros((n, n))
    m.stencil_2d[(n // 32, n // 8), 256](gpu.array(x), y, n)

    def expected() -> Array:
        inside = x[1:-1, 1:-1] + x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]
        return np.pad(0.2 * inside, 1)

    return y, expected


def stencil_3d(gpu: GPU, m: Module, n: int) -> Values:
    x, y = random(n, n, n), gpu.zeros((n, n, n))
    m.stencil_3d[(n // 32, n // 8), 256](gpu.array(x), y, n)

    def expected() -> Array:
        i = slice(1, -1)
        around = x[i, i, :-2] + x[i, i, 2:] + x[i, :-2, i] + x[i, 2:, i] + x[:-2, i, i] + x[2:, i, i]
        return np.pad(x[i, i, i] + 0.1 * around, 1)

    return y, expected


def mandelbrot(gpu: GPU, m: Module, n: int) -> Values:
    steps = gpu.empty((n, n), np.int32)
    m.mandelbrot[(n // 32, n // 8), 256](steps, n)
    found = steps.numpy()
    # Near the border of the set one rounding decides: the inside's share is what is sure.

    def expected() -> Array:
        at = np.arange(n)
        c = (-2 + 3 * at / n)[None] + 1j * (-1.5 + 3 * at / n)[:, None]
        z, inside = np.zeros_like(c), np.ones(c.shape, bool)
        for _ in range(256):
            z[inside] = z[inside] ** 2 + c[inside]
            inside &= np.abs(z) < 2
        return np.array([inside.mean()])

    return [(found == 256).mean()], expected


def n_body(gpu: GPU, m: Module, n: int) -> Values:
    body, force = random(n, 4), gpu.empty((n, 4))
    m.n_body[n // 128, 128](gpu.array(body), force, n)

    def expected() -> Array:
        some = body[:64].astype(np.float64)
        d = body[None, :, :3] - some[:, None, :3]
        weight = body[None, :, 3] / ((d**2).sum(2) + 0.01) ** 1.5
        return np.asarray((weight[:, :, None] * d).sum(1))

    return force.numpy()[:64, :3], expected


def black_scholes(gpu: GPU, m: Module, n: int) -> Values:
    price, strike = 10 + 90 * random(n), 10 + 90 * random(n, seed=1)
    years, call = 0.2 + 2 * random(n, seed=2), gpu.empty(n)
    m.black_scholes[blocks(n), 256](gpu.array(price), gpu.array(strike), gpu.array(years), call, n)

    def expected() -> Array:
        from scipy.special import ndtr

        s, k, t = (v.astype(np.float64) for v in (price, strike, years))
        root = 0.3 * np.sqrt(t)
        d = (np.log(s / k) + (0.02 + 0.045) * t) / root
        return np.asarray(s * ndtr(d) - k * np.exp(-0.02 * t) * ndtr(d - root))

    return call, expected


def monte_carlo(gpu: GPU, m: Module, n: int) -> Values:
    draws, inside = 256, gpu.empty(n, np.uint32)
    m.monte_carlo[n // 256, 256](inside, draws)

    def expected() -> Array:
        state = (np.arange(n, dtype=np.uint64) * 2654435761 + 12345).astype(np.uint32)
        found = np.zeros(n, np.uint32)
        for _ in range(draws):
            pair = []
            for _ in range(2):
                state ^= state << np.uint32(13)
                state ^= state >> np.uint32(17)
                state ^= state << np.uint32(5)
                pair.append((state >> np.uint32(8)).astype(np.float32) * np.float32(1 / (1 << 24)))
            found += pair[0] ** 2 + pair[1] ** 2 < 1
        return found

    return inside, expected


def polynomial(gpu: GPU, m: Module, n: int) -> Values:
    degree, x, y = 512, 0.9 * random(n), gpu.empty(n)
    m.polynomial[blocks(n), 256](gpu.array(x), y, degree, n)
    v = x.astype(np.float64)
    return y, lambda: (1 - v ** (degree + 1)) / (1 - v)


def binary_search(gpu: GPU, m: Module, n: int) -> Values:
    table, wanted = np.sort(integers(1 << 20, 1 << 30, 1, np.int32)), integers(n, 1 << 30, 2, np.int32)
    place = gpu.empty(n, np.int32)
    m.binary_search[blocks(n), 256](gpu.array(table), gpu.array(wanted), place, len(table), n)
    return place, lambda: np.searchsorted(table, wanted)


def walk(gpu: GPU, m: Module, n: int) -> Values:
    steps, end = 32, gpu.empty(n, np.int32)
    next_ = np.random.default_rng(0).permutation(n).astype(np.int32)
    m.walk[blocks(n), 256](gpu.array(next_), end, steps, n)

    def expected() -> Array:
        at: Array = np.arange(n)
        for _ in range(steps):
            at = next_[at]
        return at

    return end, expected


Launch = Callable[[GPU, Module, int], Values]
K, M = 1 << 10, 1 << 20
KERNELS: tuple[tuple[str, Launch, tuple[int, ...], float], ...] = (
    ("copy", copy, (256 * K, 2 * M, 8 * M), 0),
    ("triad", triad, (256 * K, M, 4 * M), 1e-6),
    ("triad_double", partial(triad, double=True), (128 * K, M), 1e-12),
    ("strided_4", partial(strided, stride=4), (128 * K, M), 0),
    ("strided_32", partial(strided, stride=32), (64 * K, 512 * K), 0),
    ("gather", partial(gather, name="gather"), (128 * K, 2 * M), 0),
    ("scatter", partial(gather, name="scatter"), (128 * K, 2 * M), 0),
    ("gelu_half", gelu_half, (256 * K, 4 * M), 2e-3),
    ("reduce", reduce, (256 * K, 4 * M), 1e-5),
    ("dot", dot, (128 * K, 2 * M), 1e-5),
    ("scan", scan, (128 * K, 2 * M), 0),
    ("bitonic", bitonic, (64 * K, 512 * K), 0),
    ("histogram_shared", partial(histogram, name="histogram_shared"), (256 * K, 4 * M), 0),
    ("histogram_global", partial(histogram, name="histogram_global"), (64 * K, 512 * K), 0),
    ("transpose", partial(transpose, name="transpose"), (512, 2048), 0),
    ("transpose_naive", partial(transpose, name="transpose_naive"), (512, 1024), 0),
    ("sgemm", partial(product, name="sgemm"), (256, 512, 1024), 1e-5),
    ("hgemm", partial(product, name="hgemm"), (256, 512, 1024), 1e-3),
    ("dgemm", partial(product, name="dgemm"), (128, 512), 1e-12),
    ("matvec", matvec, (512, 4096), 1e-5),
    ("matvec_int8", matvec_int8, (512, 4096), 0),
    ("layer_norm", partial(rows, name="layer_norm"), (256, 4096), 1e-4),
    ("softmax", partial(rows, name="softmax"), (256, 4096), 1e-4),
    ("stencil_2d", stencil_2d, (512, 2048), 1e-6),
    ("stencil_3d", stencil_3d, (64, 192), 1e-6),
    ("mandelbrot", mandelbrot, (256, 1024), 1e-2),
    ("n_body", n_body, (1 * K, 8 * K), 1e-4),
    ("black_scholes", black_scholes, (128 * K, 2 * M), 1e-4),
    ("monte_carlo", monte_carlo, (32 * K, 256 * K), 0.01),
    ("polynomial", polynomial, (64 * K, M), 1e-4),
    ("binary_search", binary_search, (64 * K, M), 0),
    ("walk", walk, (64 * K, M), 0),
)
# Sizes of simt.workloads.
SIZES = {
    "relu": (1 << 14, 1 << 20, 1 << 22),
    "fir": (1 << 14, 1 << 18, 1 << 20),
    "convolution": (64, 1 << 10, 1 << 12),
    "matmul": (1 << 11, 1 << 15, 1 << 16),
    "aes": (1 << 14, 1 << 19, 1 << 21),
    "spmv": (1 << 10, 1 << 13, 1 << 14),
    "pagerank": (1 << 9, 1 << 12),
    "resnet18": (64,),
}
EXAMPLES = ("saxpy", "coalescing", "bank_conflicts", "gemm", "flash_attention")


@lru_cache(maxsize=4)
def _ptx(arch: str) -> PtxModule:
    return compile_cuda(SOURCE.read_text(encoding="utf-8"), name=SOURCE.name, arch=arch)


def error_of(values: Values) -> float:
    found, expected = np.asarray(values[0], np.float64), np.asarray(values[1](), np.float64)
    return float(np.abs(found - expected).max() / max(np.abs(expected).max(), 1e-30))


def _kernel(launch: Launch, size: int, gpu: GPU) -> Check:
    values = launch(gpu, Module(gpu, _ptx(gpu.arch)), size)
    return lambda: error_of(values)


def _triton(launch: Callable[[GPU, int], Values], size: int, gpu: GPU) -> Check:
    values = launch(gpu, size)
    return lambda: error_of(values)


def _workload(name: str, size: int, gpu: GPU) -> Check:
    outputs = WORKLOADS[name].run(gpu, size)
    return lambda: WORKLOADS[name].error(outputs, WORKLOADS[name].reference(size))


def _example(name: str, gpu: GPU) -> Check:
    """Examples say themselves how wrong they are."""
    with contextlib.redirect_stdout(io.StringIO()) as said:
        import_module(f"simt.examples.{name}").main(gpu)
    return lambda: float("False" in said.getvalue())


def _quick(name: str, size: int) -> bool:
    return name in QUICK and size == 0


def programs() -> Iterator[Program]:
    """All that this machine can run: Triton's need Triton. Names are unique in a suite."""
    for name, launch, sizes, tolerance in KERNELS:
        for i, size in enumerate(sizes):
            yield Program(
                "kernels", f"{name}-{size}", _quick(name, i), partial(_kernel, launch, size), tolerance
            )
    for name, sizes in SIZES.items():
        for i, size in enumerate(sizes):
            run = partial(_workload, name, size)
            yield Program("workloads", f"{name}-{size}", _quick(name, i), run, WORKLOADS[name].tolerance)
    for name in EXAMPLES:
        yield Program("examples", name, _quick(name, 0), partial(_example, name), 0)
    if util.find_spec("triton"):
        yield Program("examples", "triton_softmax", False, partial(_example, "triton_softmax"), 0)
        from triton_programs import TRITON

        for name, start, sizes, tolerance in TRITON:
            for i, size in enumerate(sizes):
                run = partial(_triton, start, size)
                yield Program("triton", f"{name}-{size}", _quick(name, i), run, tolerance)
