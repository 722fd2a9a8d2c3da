"""Triton's kernels in the list of programs; imported where Triton is installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import triton
import triton.language as tl

from simt.gpu import GPU

Values = tuple[Any, Callable[[], Any]]


@triton.jit
def add(x, y, z, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(z + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


@triton.jit
def softmax(x, y, columns, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    row = tl.program_id(0) * columns
    value = tl.load(x + row + at, mask=at < columns, other=float("-inf"))
    power = tl.exp(value - tl.max(value, 0))
    tl.store(y + row + at, power / tl.sum(power, 0), mask=at < columns)


@triton.jit
def layer_norm(x, y, columns, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    row = tl.program_id(0) * columns
    inside = at < columns
    value = tl.load(x + row + at, mask=inside, other=0.0)
    centred = tl.where(inside, value - tl.sum(value, 0) / columns, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, 0) / columns + 1e-5)
    tl.store(y + row + at, centred * scale, mask=inside)


@triton.jit
def matmul(a, b, c, n, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows = tl.program_id(1) * M + tl.arange(0, M)
    columns = tl.program_id(0) * N + tl.arange(0, N)
    inner = tl.arange(0, K)
    left = a + rows[:, None] * n + inner[None, :]
    right = b + inner[:, None] * n + columns[None, :]
    total = tl.zeros((M, N), tl.float32)
    for _ in range(0, n, K):
        total = tl.dot(tl.load(left), tl.load(right), total)
        left += K
        right += K * n
    tl.store(c + rows[:, None] * n + columns[None, :], total)


def _random(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).random(shape, np.float32)


def _add(gpu: GPU, n: int) -> Values:
    x, y, z = _random(n), _random(n, seed=1), gpu.empty(n)
    gpu.triton(add)[triton.cdiv(n, 1024)](gpu.array(x), gpu.array(y), z, n, BLOCK=1024)
    return z, lambda: x + y


def _rows(gpu: GPU, n: int, kernel: Any, expected: Callable[[Any], Any]) -> Values:
    x, y = _random(n, 1000), gpu.empty((n, 1000))
    gpu.triton(kernel)[n](gpu.array(x), y, 1000, BLOCK=1024)
    return y, lambda: expected(x.astype(np.float64))


def _softmax(gpu: GPU, n: int) -> Values:
    return _rows(gpu, n, softmax, lambda x: np.exp(x) / np.exp(x).sum(1, keepdims=True))


def _layer_norm(gpu: GPU, n: int) -> Values:
    def expected(x: Any) -> Any:
        return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)

    return _rows(gpu, n, layer_norm, expected)


def _matmul(gpu: GPU, n: int) -> Values:
    a, b = (_random(n, n, seed=s).astype(np.float16) for s in (0, 1))
    c = gpu.empty((n, n))
    gpu.triton(matmul)[n // 64, n // 64](gpu.array(a), gpu.array(b), c, n, M=64, N=64, K=32)
    return c, lambda: a.astype(np.float64) @ b.astype(np.float64)


# Name, launch, sizes, tolerance.
TRITON: tuple[tuple[str, Callable[[GPU, int], Values], tuple[int, ...], float], ...] = (
    ("add", _add, (1 << 17, 1 << 21), 1e-6),
    ("softmax", _softmax, (512, 4096), 1e-5),
    ("layer_norm", _layer_norm, (512, 4096), 1e-5),
    ("matmul", _matmul, (256, 1024), 1e-3),
)
