"""Inputs of the kernels of systematic_study.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import simt

Launch = tuple[str, Any, Any, int, tuple[Any, ...]]  # kernel, grid, block, dynamic shared bytes, arguments
Maker = Callable[[simt.GPU, np.random.Generator], Launch]


def floats(gpu: simt.GPU, rng: np.random.Generator, *shape: int) -> Any:
    return gpu.array(rng.random(shape, np.float32))


def words(gpu: simt.GPU, rng: np.random.Generator, below: int, *shape: int) -> Any:
    return gpu.array(rng.integers(0, below, shape).astype(np.int32))


def zeros(gpu: simt.GPU, *shape: int, of: Any = np.float32) -> Any:
    return gpu.zeros(shape, of)


def blocks(columns: int, rows: int, block: tuple[int, int]) -> tuple[int, int]:
    return (-(-columns // block[0]), -(-rows // block[1]))


def sparse(gpu: simt.GPU, rng: np.random.Generator, rows: int, mean: int) -> tuple[Any, ...]:
    """Row starts, columns and values of a matrix whose rows differ in length."""
    lengths = rng.poisson(mean * rng.pareto(3.0, rows) * 2).clip(1, 40 * mean)
    begin = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    column = rng.integers(0, rows, int(begin[-1])).astype(np.int32)
    return gpu.array(begin), gpu.array(column), gpu.array(rng.random(len(column), np.float32))


def texts(gpu: simt.GPU, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
    lengths = rng.integers(8, 40, count)
    begin = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return gpu.array(rng.integers(97, 123, int(begin[-1])).astype(np.uint8)), gpu.array(begin)


def image(kernel: str, w: int, h: int, block: tuple[int, int], of: Any, *more: Any) -> Maker:
    def make(gpu: simt.GPU, rng: np.random.Generator) -> Launch:
        given = gpu.array((rng.random((h, w)) * (255 if of is np.uint8 else 1)).astype(of))
        return kernel, blocks(w, h, block), block, 0, (given, zeros(gpu, h, w, of=of), w, h, *more)

    return make


def lists(gpu: simt.GPU, rng: np.random.Generator, rows: int, mean: int, below: int) -> tuple[Any, Any]:
    """Where the list of each row begins, and the lists' values."""
    begin = np.concatenate([[0], np.cumsum(rng.poisson(mean, rows))]).astype(np.int32)
    return gpu.array(begin), words(gpu, rng, below, int(begin[-1]))
