"""How tensor cores add, slowly and in rationals (docs/functional/tensor.md)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from support.floats import F16, F32, Format, fma
from support.matrices import FORMATS


@dataclass(frozen=True)
class Addition:
    """products: added at once, with the accumulator. bits: kept below the largest exponent. fraction: bits of
    an f32 result.
    """

    products: int
    bits: int
    fraction: int = 23


HALF, TF32, F8 = ("f16", "bf16"), ("tf32",), ("e4m3", "e5m2")
WARP: dict[int, dict[tuple[str, ...], Addition]] = {
    70: {("f16",): Addition(4, 23)},
    75: {("f16",): Addition(8, 24)},
    80: {HALF: Addition(8, 24), TF32: Addition(4, 24)},
    86: {HALF: Addition(8, 24), TF32: Addition(4, 24)},
    89: {HALF: Addition(8, 24), TF32: Addition(4, 24), F8: Addition(16, 13, 13)},
    90: {HALF: Addition(16, 25), TF32: Addition(8, 25)},
    100: {HALF: Addition(16, 25), TF32: Addition(8, 25)},
    120: {HALF: Addition(16, 25), TF32: Addition(8, 25), F8: Addition(32, 25)},
}
WARPGROUP = {HALF: Addition(16, 25), TF32: Addition(8, 25), F8: Addition(32, 13, 13)}


def find(table: dict[tuple[str, ...], Addition], type_: str) -> Addition:
    return next(addition for types, addition in table.items() if type_ in types)


def format_of(type_: str) -> Format:
    return F32 if type_ == "tf32" else FORMATS[type_]


def factor(code: int, type_: str) -> tuple[float, int]:
    """Number and exponent."""
    f = format_of(type_)
    if type_ == "tf32":
        code &= 0xFFFFE000
    field = (code & (f.sign - 1)) >> f.mantissa_bits
    value = f.decode(code)
    return value, -126 if value == 0 else max(field, 1) - f.bias


def cut_off(value: Fraction, quantum: Fraction) -> Fraction:
    return math.trunc(value / quantum) * quantum


def add(
    addition: Addition, factors: Sequence[tuple[int, int]], a: str, b: str, c: int, accumulator: str
) -> int:
    """Code of the accumulator after one sum. factors: codes of A and B."""
    pairs = [(factor(x, a), factor(y, b)) for x, y in factors]
    addend, largest = factor(c, accumulator)
    special = addend + sum(x * y for (x, _), (y, _) in pairs)  # infinite or NaN if any term is
    f = FORMATS[accumulator]
    if not math.isfinite(special):
        return f.encode(special)
    largest = max(largest, *(ex + ey for (_, ex), (_, ey) in pairs))
    quantum = Fraction(2) ** (largest - addition.bits)
    total = cut_off(Fraction(addend), quantum)
    for (x, _), (y, _) in pairs:
        total += cut_off(Fraction(x) * Fraction(y), quantum)
    if accumulator == "f16":
        code = F16.encode(total)
        return 0 if code == F16.sign else code
    if abs(total) >= 2**128:
        return F32.infinity | (F32.sign if total < 0 else 0)
    code = F32.encode(total, "rz") & ~((1 << (23 - addition.fraction)) - 1)
    return 0 if code == F32.sign else code


def product(
    addition: Addition,
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray,
    types: tuple[str, str, str, str],
    step: int | None = None,
    present: np.ndarray | None = None,
) -> np.ndarray:
    """Codes of D for codes of A (m x k), B (k x n) and C.

    types: of d, a, b, c. step: k of the machine instructions. present: which elements of A take part.
    """
    d, ta, tb, tc = types
    accumulator = "f16" if d == tc == "f16" else "f32"
    count = min(addition.products, step or a.shape[1])
    result = np.zeros(c.shape, np.uint32)
    for i in range(a.shape[0]):
        columns = range(a.shape[1]) if present is None else np.flatnonzero(present[i])
        for j in range(b.shape[1]):
            code = int(c[i, j])
            if tc != accumulator:
                code = F32.encode(F16.decode(code))
            for first in range(0, len(columns), count):
                factors = [(int(a[i, x]), int(b[x, j])) for x in columns[first : first + count]]
                code = add(addition, factors, ta, tb, code, accumulator)
            result[i, j] = code if d == accumulator else F16.encode(F32.decode(code))
    return result


def product_in_f32(
    a: np.ndarray, b: np.ndarray, c: np.ndarray, types: tuple[str, str, str, str]
) -> np.ndarray:
    """Codes of D as generations without m8n8k4 compute it: fused multiply-adds in f32."""
    d, _, _, tc = types
    half = d == tc == "f16"
    result = np.zeros(c.shape, np.uint32)
    for i in range(8):
        for j in range(8):
            x, y = ([F16.decode(int(v)) for v in line] for line in (a[i], b[:, j]))
            addend = FORMATS[tc].decode(int(c[i, j]))
            if half:
                for k in (0, 2):
                    two = fma_f32(x[k + 1], y[k + 1], fma_f32(x[k], y[k], -0.0))
                    addend = float(np.float32(addend) + np.float32(two))
            else:
                total = 0.0
                for k in range(4):
                    total = fma_f32(x[k], y[k], total)
                addend = float(np.float32(addend) + np.float32(total))
            result[i, j] = FORMATS[d].encode(addend)
    return result


def fma_f32(a: float, b: float, c: float) -> float:
    """Rounded once, of numbers whose product is exact in f32 (f16)."""
    return F32.decode(fma(F32, "rn", a, b, c))
