"""The kernels of few_waves_study.py: their inputs, for any number of CTAs, and the values that they give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from systematic_inputs import floats, words, zeros

import simt

Array = Any
Values = list[tuple[Array, Any, float]]  # array on the GPU, what it shall hold, relative tolerance
Made = tuple[tuple[Any, ...], Callable[[], Values]]  # arguments, and the values after the launch
Maker = Callable[[simt.GPU, np.random.Generator, int], Made]


@dataclass(frozen=True)
class Kernel:
    """threads: of a CTA. multiple: the number of CTAs is one of these."""

    make: Maker
    threads: int
    half: str
    multiple: int = 1


def counted(data: Array, size: int) -> Any:
    return np.bincount(data.numpy().ravel(), minlength=size)


# --- development -------------------------------------------------------------------------------------------


def histogram_shared(gpu: simt.GPU, rng: np.random.Generator, ctas: int) -> Made:
    each = 12
    data = gpu.array(rng.integers(0, 256, ctas * 256 * each).astype(np.uint8))
    counts = zeros(gpu, 256, of=np.uint32)
    return (data, counts, each), lambda: [(counts, counted(data, 256), 0)]


def mandelbrot_tiles(gpu: simt.GPU, rng: np.random.Generator, ctas: int) -> Made:
    most, across = 120, 16
    width, height = 16 * across, 8 * ctas // across
    out = zeros(gpu, height, width, of=np.uint16)

    def values() -> Values:
        x, y = np.arange(width, dtype=np.float32), np.arange(height, dtype=np.float32)[:, None]
        c = (-2 + 2.5 * x / width) + 1j * (-1.25 + 2.5 * y / height)
        z, count = np.zeros(c.shape, np.complex128), np.zeros(c.shape, np.int64)
        for _ in range(most):
            inside = (z * z.conj()).real < 4
            count += inside
            z = np.where(inside, z * z + c, z)
        # Points near the border leave one iteration apart in single precision.
        near = np.abs(out.numpy().astype(int) - count) > 1
        assert near.mean() < 0.02, f"{near.mean():.1%} of the points differ"
        return []

    return (out, across, ctas, most), values


def sgemm_tiled(gpu: simt.GPU, rng: np.random.Generator, ctas: int) -> Made:
    across, depth = 6, 128
    m, n = 16 * ctas // across, 16 * across
    a, b, c = floats(gpu, rng, m, depth), floats(gpu, rng, depth, n), zeros(gpu, m, n)
    return (a, b, c, across, depth), lambda: [(c, a.numpy() @ b.numpy(), 1e-5)]


def sum_tree_add(gpu: simt.GPU, rng: np.random.Generator, ctas: int) -> Made:
    each = 10
    given, total = words(gpu, rng, 100, ctas * 256 * each), zeros(gpu, 1, of=np.int32)
    return (given, total, each), lambda: [(total, [given.numpy().sum()], 0)]


def matrix(gpu: simt.GPU, rng: np.random.Generator, lengths: Any) -> tuple[Array, ...]:
    """Row starts, columns, values of a sparse matrix, and a vector to multiply it by."""
    begin = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    n = int(begin[-1])
    column = words(gpu, rng, len(lengths), n)
    return gpu.array(begin), column, floats(gpu, rng, n), floats(gpu, rng, len(lengths))


def product(begin: Array, column: Array, value: Array, x: Array) -> Any:
    sums = np.concatenate([[0], np.cumsum(value.numpy().astype(np.float64) * x.numpy()[column.numpy()])])
    return sums[begin.numpy()[1:]] - sums[begin.numpy()[:-1]]


def spmv_rows(gpu: simt.GPU, rng: np.random.Generator, ctas: int) -> Made:
    rows = 128 * ctas
    given = matrix(gpu, rng, rng.poisson(6 + 8 * rng.random(rows)))
    y = zeros(gpu, rows)
    return (*given, y), lambda: [(y, product(*given), 1e-4)]


def stencil_march(gpu: simt.GPU, rng: np.random.Generator, ctas: int) -> Made:
    across, planes = 8, 12
    rows = 4 * ctas // across
    given = floats(gpu, rng, planes, rows, 32 * across)
    out = zeros(gpu, planes, rows, 32 * across)

    def values() -> Values:
        u = given.numpy()
        wide = np.pad(u, ((0, 0), (1, 1), (1, 1)), mode="edge")[1:-1]
        sides = wide[:, :-2, 1:-1] + wide[:, 2:, 1:-1] + wide[:, 1:-1, :-2] + wide[:, 1:-1, 2:]
        wanted = np.zeros_like(u)
        wanted[1:-1] = 0.4 * u[1:-1] + 0.1 * (u[:-2] + u[2:] + sides)
        return [(out, wanted, 1e-5)]

    return (given, out, across, rows, planes), values


def scan_chunks(gpu: simt.GPU, rng: np.random.Generator, ctas: int) -> Made:
    given, out = words(gpu, rng, 1000, ctas, 256), zeros(gpu, ctas, 256, of=np.int32)
    return (given, out), lambda: [(out, np.cumsum(given.numpy(), axis=1), 0)]


def sort_chunks(gpu: simt.GPU, rng: np.random.Generator, ctas: int) -> Made:
    given, out = words(gpu, rng, 1 << 30, ctas, 256), zeros(gpu, ctas, 256, of=np.int32)
    return (given, out), lambda: [(out, np.sort(given.numpy(), axis=1), 0)]


# --- judging -----------------------------------------------------------------------------------------------


def collatz(gpu: simt.GPU, rng: np.random.Generator, ctas: int) -> Made:
    n = 128 * ctas
    start = gpu.array(rng.integers(1, 5000, n).astype(np.uint32))
    steps = zeros(gpu, n, of=np.int32)

    def values() -> Values:
        value, count = start.numpy().astype(np.int64), np.zeros(n, np.int64)
        while (value != 1).any():
            count += value != 1
            value = np.where(value == 1, 1, np.where(value & 1, 3 * value + 1, value // 2))
        return [(steps, count, 0)]

    return (start, steps), values


def histogram_warps(gpu: simt.GPU, rng: np.random.Generator, ctas: int) -> Made:
    each = 14
    data = gpu.array(np.minimum(63, rng.exponential(8, ctas * 256 * each)).astype(np.uint8))
    counts = zeros(gpu, 64, of=np.uint32)
    return (data, counts, each), lambda: [(counts, counted(data, 64), 0)]


def dgemm_registers(gpu: simt.GPU, rng: np.random.Generator, ctas: int) -> Made:
    across, depth = 5, 40
    m, n = 16 * ctas // across, 16 * across
    a, b = gpu.array(rng.random((m, depth))), gpu.array(rng.random((depth, n)))
    c = zeros(gpu, m, n, of=np.float64)
    return (a, b, c, across, depth), lambda: [(c, a.numpy() @ b.numpy(), 1e-12)]


def row_maxima(gpu: simt.GPU, rng: np.random.Generator, ctas: int) -> Made:
    columns = 1100
    given = words(gpu, rng, 1 << 30, ctas, columns)
    of_row, of_all = zeros(gpu, ctas, of=np.int32), zeros(gpu, 1, of=np.int32)
    return (given, of_row, of_all, columns), lambda: [
        (of_row, given.numpy().max(axis=1), 0),
        (of_all, [given.numpy().max()], 0),
    ]


def diffuse_steps(gpu: simt.GPU, rng: np.random.Generator, ctas: int) -> Made:
    steps, n = 9, 256 * ctas
    given, out = floats(gpu, rng, n), zeros(gpu, n)

    def values() -> Values:
        line = np.pad(given.numpy(), 32, mode="edge")
        for _ in range(steps):
            line = np.pad(0.25 * (line[:-2] + 2 * line[1:-1] + line[2:]), 1, mode="edge")
        return [(out, line[32:-32], 1e-5)]

    return (given, out, steps), values


def spmv_warps(gpu: simt.GPU, rng: np.random.Generator, ctas: int) -> Made:
    rows = 4 * ctas
    given = matrix(gpu, rng, (20 + 60 * rng.pareto(1.6, rows)).clip(0, 1500).astype(int))
    y = zeros(gpu, rows)
    return (*given, y), lambda: [(y, product(*given), 1e-3)]


def scan_rows(gpu: simt.GPU, rng: np.random.Generator, ctas: int) -> Made:
    columns = 224
    given = words(gpu, rng, 1000, 4 * ctas, columns)
    out = zeros(gpu, 4 * ctas, columns, of=np.int32)
    return (given, out, columns), lambda: [(out, np.cumsum(given.numpy(), axis=1), 0)]


def radix_pass(gpu: simt.GPU, rng: np.random.Generator, ctas: int) -> Made:
    given = gpu.array(rng.integers(0, 1 << 31, (ctas, 256)).astype(np.uint32))
    out = zeros(gpu, ctas, 256, of=np.uint32)

    def values() -> Values:
        keys = given.numpy()
        order = np.argsort(keys >> 8 & 15, axis=1, kind="stable")
        return [(out, np.take_along_axis(keys, order, axis=1), 0)]

    return (given, out, 8), values


def bodies(gpu: simt.GPU, rng: np.random.Generator, ctas: int) -> Made:
    tiles, n = 2, 128 * ctas
    body, pull = floats(gpu, rng, n, 4), zeros(gpu, n, 4)

    def values() -> Values:
        p = body.numpy().astype(np.float64)
        wanted = np.zeros((n, 4))
        for i in range(ctas):
            own = p[128 * i : 128 * (i + 1), None, :3]
            others = np.concatenate(
                [p[128 * j : 128 * (j + 1)] for j in ((i + k) % ctas for k in range(tiles))]
            )
            d = others[None, :, :3] - own
            s = others[:, 3] * ((d**2).sum(axis=2) + 0.01) ** -1.5
            wanted[128 * i : 128 * (i + 1), :3] = (d * s[:, :, None]).sum(axis=1)
        return [(pull, wanted, 1e-4)]

    return (body, pull, tiles), values


def hash_probe(gpu: simt.GPU, rng: np.random.Generator, ctas: int) -> Made:
    size, n = 1 << 14, 192 * ctas
    table = np.zeros(size, np.uint32)
    keys = rng.choice(np.arange(1, 1 << 22, dtype=np.uint32), int(0.85 * size), replace=False)
    where: dict[int, int] = {}
    for one in keys.tolist():
        at = (one * 2654435761 & 0xFFFFFFFF) >> 7 & size - 1
        while table[at]:
            at = at + 1 & size - 1
        table[at], where[one] = one, at
    wanted = np.where(rng.random(n) < 0.6, rng.choice(keys, n), rng.integers(1 << 22, 1 << 23, n)).astype(
        np.uint32
    )
    place = zeros(gpu, n, of=np.int32)
    return (gpu.array(table), gpu.array(wanted), place, np.uint32(size - 1)), lambda: [
        (place, [where.get(one, -1) for one in wanted.tolist()], 0)
    ]


def conv_direct(gpu: simt.GPU, rng: np.random.Generator, ctas: int) -> Made:
    across, channels = 6, 5
    rows, width = 8 * ctas // across, 16 * across
    given, weight = floats(gpu, rng, channels, rows + 2, width + 2), floats(gpu, rng, channels, 3, 3)
    out = zeros(gpu, rows, width)

    def values() -> Values:
        u, w = given.numpy().astype(np.float64), weight.numpy()
        parts = (
            w[:, dy, dx, None, None] * u[:, dy : dy + rows, dx : dx + width]
            for dy in range(3)
            for dx in range(3)
        )
        return [(out, sum(part.sum(axis=0) for part in parts), 1e-5)]

    return (given, weight, out, across, rows, channels), values


def transpose_tiles(gpu: simt.GPU, rng: np.random.Generator, ctas: int) -> Made:
    across = 4
    rows, width = 128 * ctas // across, 32 * across
    given, out = floats(gpu, rng, rows, width), zeros(gpu, width, rows)
    return (given, out, across, rows), lambda: [(out, given.numpy().T, 0)]


def mark_neighbours(gpu: simt.GPU, rng: np.random.Generator, ctas: int) -> Made:
    n = 256 * ctas
    begin = np.concatenate([[0], np.cumsum((4 * rng.pareto(1.8, n)).clip(0, 200).astype(int))]).astype(
        np.int32
    )
    neighbour = rng.integers(0, n, int(begin[-1])).astype(np.int32)
    frontier = rng.permutation(n)[: 128 * ctas].astype(np.int32)
    mark = zeros(gpu, n, of=np.int32)

    def values() -> Values:
        wanted = np.zeros(n, np.int32)
        for vertex in frontier:
            wanted[neighbour[begin[vertex] : begin[vertex + 1]]] = 1
        return [(mark, wanted, 0)]

    return (gpu.array(frontier), gpu.array(begin), gpu.array(neighbour), mark), values


def align_pairs(gpu: simt.GPU, rng: np.random.Generator, ctas: int) -> Made:
    pairs = 64 * ctas
    begin = np.concatenate([[0], np.cumsum(rng.integers(2, 13, 2 * pairs))]).astype(np.int32)
    letters = rng.integers(97, 101, int(begin[-1])).astype(np.uint8)
    score = zeros(gpu, pairs, of=np.int32)

    def common(a: bytes, b: bytes) -> int:
        row = [0] * (len(b) + 1)
        for x in a:
            corner = 0
            for j, y in enumerate(b, 1):
                corner, row[j] = row[j], corner + 1 if x == y else max(row[j - 1], row[j])
        return row[-1]

    def values() -> Values:
        text = [letters[i:j].tobytes() for i, j in pairwise(begin)]
        return [(score, [common(a, b) for a, b in zip(text[::2], text[1::2], strict=True)], 0)]

    return (gpu.array(letters), gpu.array(begin), score), values


def walk_out(gpu: simt.GPU, rng: np.random.Generator, ctas: int) -> Made:
    n, most = 96 * ctas, 150
    seed = rng.integers(1, 1 << 31, n).astype(np.uint32)
    steps = zeros(gpu, n, of=np.int32)

    def values() -> Values:
        state, at, count = seed.copy(), np.zeros(n, int), np.zeros(n, int)
        wide = 3 + 8 * np.arange(ctas).repeat(96) // ctas
        for _ in range(most):
            inside = abs(at) < wide
            for shift in (13, -17, 5):
                state ^= state << np.uint32(shift) if shift > 0 else state >> np.uint32(-shift)
            at = np.where(inside, at + np.where(state >> 16 & 1, 1, -1), at)
            count += inside
        return [(steps, count, 0)]

    return (gpu.array(seed), steps, most), values


def cholesky_small(gpu: simt.GPU, rng: np.random.Generator, ctas: int) -> Made:
    m = rng.random((ctas, 24, 24)).astype(np.float32)
    m = m @ m.transpose(0, 2, 1) + 24 * np.eye(24, dtype=np.float32)
    out = zeros(gpu, ctas, 24, 24)
    return (gpu.array(m), out), lambda: [(out, np.linalg.cholesky(m.astype(np.float64)), 1e-3)]


def gather_after(gpu: simt.GPU, rng: np.random.Generator, ctas: int) -> Made:
    n, size, rounds, gathers = 256 * ctas, 1 << 20, 60, 6
    given, table = words(gpu, rng, 1 << 30, n), words(gpu, rng, 1000, size)
    out = zeros(gpu, n, of=np.int32)

    def values() -> Values:
        at, total = given.numpy().astype(np.uint32), np.zeros(n, np.int64)
        for k in range(rounds + gathers):
            if k >= rounds:
                total += table.numpy()[at >> 8 & size - 1]
            at = at * np.uint32(1664525) + np.uint32(1013904223)
        return [(out, total, 0)]

    return (given, table, out, size - 1, rounds, gathers), values


def take_tasks(gpu: simt.GPU, rng: np.random.Generator, ctas: int) -> Made:
    tasks = 5 * ctas
    length = rng.integers(1, 60, tasks).astype(np.int32)
    result, taken = zeros(gpu, tasks, 64, of=np.int32), zeros(gpu, 1, of=np.int32)

    def values() -> Values:
        value = np.tile(np.arange(64), (tasks, 1))
        for k in range(60):
            value = np.where(k < length[:, None], value * 5 + k & 65535, value)
        return [(result, value, 0)]

    return (gpu.array(length), result, taken, tasks), values


KERNELS = {
    made.__name__: Kernel(made, threads, half, multiple)
    for made, threads, half, multiple in (
        (histogram_shared, 256, "development", 1),
        (mandelbrot_tiles, 128, "development", 16),
        (sgemm_tiled, 256, "development", 6),
        (sum_tree_add, 256, "development", 1),
        (spmv_rows, 128, "development", 1),
        (stencil_march, 128, "development", 8),
        (scan_chunks, 256, "development", 1),
        (sort_chunks, 256, "development", 1),
        (collatz, 128, "judging", 1),
        (histogram_warps, 256, "judging", 1),
        (dgemm_registers, 64, "judging", 5),
        (row_maxima, 128, "judging", 1),
        (diffuse_steps, 256, "judging", 1),
        (spmv_warps, 128, "judging", 1),
        (scan_rows, 128, "judging", 1),
        (radix_pass, 256, "judging", 1),
        (bodies, 128, "judging", 1),
        (hash_probe, 192, "judging", 1),
        (conv_direct, 128, "judging", 6),
        (transpose_tiles, 256, "judging", 4),
        (mark_neighbours, 128, "judging", 1),
        (align_pairs, 64, "judging", 1),
        (walk_out, 96, "judging", 1),
        (cholesky_small, 64, "judging", 1),
        (gather_after, 256, "judging", 1),
        (take_tasks, 64, "judging", 1),
    )
}
