"""Kernels compiled by Numba."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest

import simt
from support.ptx import CODE

if importlib.util.find_spec("numba_cuda") is None:
    pytest.skip("numba-cuda is not installed", allow_module_level=True)

from numba import cuda, float32


def saxpy(a: Any, x: Any, y: Any) -> None:
    i = cuda.grid(1)
    if i < x.size:
        y[i] += a * x[i]


def block_sums(x: Any, sums: Any) -> None:
    space = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    space[t] = x[i] if i < x.size else 0
    half = 32
    while half > 0:
        cuda.syncthreads()
        if t < half:
            space[t] += space[t + half]
        half //= 2
    if t == 0:
        cuda.atomic.add(sums, 0, space[0])


def transpose(a: Any, b: Any) -> None:
    x, y = cuda.grid(2)
    if x < a.shape[0] and y < a.shape[1]:
        b[y, x] = a[x, y]


@pytest.fixture(scope="module")
def gpu() -> simt.GPU:
    return simt.GPU("a100", functional=True, code=CODE)


@pytest.mark.parametrize(("n", "block"), [(1, 32), (1000, 96)])
def test_saxpy(gpu: simt.GPU, rng: np.random.Generator, n: int, block: int) -> None:
    x, y = rng.integers(-100, 100, (2, n)).astype(np.float32)
    expected = y + 3 * x
    gpu.numba(saxpy)[-(-n // block), block](np.float32(3), x, y)
    assert (y == expected).all()


@pytest.mark.parametrize("n", [1, 500])
def test_sum(gpu: simt.GPU, rng: np.random.Generator, n: int) -> None:
    x, total = rng.integers(-100, 100, n).astype(np.float32), np.zeros(1, np.float32)
    gpu.numba(block_sums)[-(-n // 64), 64](x, total)
    assert total[0] == x.sum()


def test_transpose_of_a_view(gpu: simt.GPU, rng: np.random.Generator) -> None:
    a = rng.standard_normal((40, 50))
    b = np.zeros((50, 40))
    gpu.numba(transpose)[(5, 7), (8, 8)](a, b)
    assert (b == a.T).all()
