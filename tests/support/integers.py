"""Shared by tests of integer instructions: values to try, slow and obvious arithmetic on Python integers."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np

from support.ptx import per_lane

DTYPES = {2: np.uint16, 4: np.uint32, 8: np.uint64}
EDGES = {
    16: [0, 1, 2, 3, 7, 10, 0x55AA, 0x7FFE, 0x7FFF, 0x8000, 0x8001, 0xFF80, 0xFFFE, 0xFFFF],
    32: [
        *[0, 1, 2, 3, 10, 31, 32, 33, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0xFFFFFF],
        *[0x7FFFFFFE, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFF8000, 0xFFFFFF80, 0xFFFFFFFE, 0xFFFFFFFF],
        *[0x12345678, 0xDEADBEEF],
    ],
    64: [
        *[0, 1, 2, 3, 10, 63, 64, 0xFFFFFFFF, 0x100000000, 0x7FFFFFFFFFFFFFFF, 0x8000000000000000],
        *[0x8000000000000001, 0xFFFFFFFF00000000, 0xFFFFFFFFFFFFFFFE, 0xFFFFFFFFFFFFFFFF],
        0x123456789ABCDEF0,
    ],
}


def bits_of(type_: str) -> int:
    return 32 if type_.endswith("x2") else int(type_[1:])


def signed(value: int, bits: int) -> int:
    """Two's complement."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def number(value: int, type_: str) -> int:
    """The number represented by a register's bits."""
    bits = bits_of(type_)
    return signed(value, bits) if type_[0] == "s" else value & ((1 << bits) - 1)


def limits(type_: str) -> tuple[int, int]:
    bits = bits_of(type_)
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if type_[0] == "s" else (0, (1 << bits) - 1)


def clamp(value: int, type_: str) -> int:
    low, high = limits(type_)
    return max(low, min(high, value))


def vectors(types: list[str], seed: int = 0, random: int = 300) -> list[np.ndarray]:
    """Bits for each operand: all pairs of edge values for the first two, then random ones."""
    rng = np.random.default_rng(seed)
    widths = [bits_of(t) for t in types]
    edges = list(product(*[EDGES[w] for w in widths[:2]]))
    columns = []
    for k, w in enumerate(widths):
        if k < 2:
            head = np.array([e[k] for e in edges], np.uint64)
        else:
            head = rng.choice(np.array(EDGES[w], np.uint64), len(edges))
        wide = (
            rng.integers(0, 1 << w, random, np.uint64, endpoint=False)
            if w < 64
            else rng.integers(0, np.iinfo(np.uint64).max, random, np.uint64, endpoint=True)
        )
        # Numbers of every magnitude, not only large ones.
        shifts = rng.integers(0, w, random).astype(np.uint64)
        columns.append(np.concatenate([head, wide >> shifts]).astype(DTYPES[w // 8]))
    return columns


def check(
    body: str,
    types: list[str],
    result: str,
    reference: Callable[..., int],
    registers: str = "",
    seed: int = 0,
    columns: list[np.ndarray] | None = None,
) -> None:
    """Runs `body` (%o from %i0, ...) and compares each lane with reference(numbers of the operands)."""
    columns = vectors(types, seed) if columns is None else columns
    bits = bits_of(result)
    got = per_lane(body, *columns, output=DTYPES[bits // 8], registers=registers)
    mask = (1 << bits) - 1
    for lane, values in enumerate(zip(*[c.tolist() for c in columns], strict=True)):
        expected = reference(*[number(v, t) for v, t in zip(values, types, strict=True)]) & mask
        assert int(got[lane]) == expected, (
            f"{body}: {[hex(v) for v in values]}: {got[lane]:#x}, not {expected:#x}"
        )
