"""Slow references for floating-point instructions: exact rationals, rounded once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

MODES = ("rn", "rz", "rm", "rp")


@dataclass(frozen=True)
class Format:
    """A binary format; `finite_only`: its highest exponent also holds numbers, except for one NaN (e4m3).
    `flushes`: results that are tiny after rounding with unbounded exponents become zero.
    """

    name: str
    exponent_bits: int
    mantissa_bits: int
    nan: int
    finite_only: bool = False
    flushes: bool = False

    def flushing(self) -> Format:
        return replace(self, flushes=True)

    @cached_property
    def bits(self) -> int:
        return 1 + self.exponent_bits + self.mantissa_bits

    @cached_property
    def bias(self) -> int:
        return (1 << (self.exponent_bits - 1)) - 1

    @cached_property
    def sign(self) -> int:
        return 1 << (self.bits - 1)

    @cached_property
    def infinity(self) -> int:
        """Code of infinity; if there is none, one above the largest number's."""
        if self.finite_only:
            return self.sign - 1
        return ((1 << self.exponent_bits) - 1) << self.mantissa_bits

    @cached_property
    def dtype(self) -> Any:
        return {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}[self.bits]

    def decode(self, code: int) -> float:
        """Every value of these formats is exactly representable as a Python float."""
        sign = -1.0 if code & self.sign else 1.0
        magnitude = code & (self.sign - 1)
        if self.finite_only and magnitude == self.sign - 1:
            return math.copysign(math.nan, sign)
        if not self.finite_only and magnitude >= self.infinity:
            return math.copysign(math.nan if magnitude > self.infinity else math.inf, sign)
        exponent, mantissa = magnitude >> self.mantissa_bits, magnitude & ((1 << self.mantissa_bits) - 1)
        if exponent == 0:
            return sign * math.ldexp(mantissa, 1 - self.bias - self.mantissa_bits)
        return sign * math.ldexp(
            mantissa + (1 << self.mantissa_bits), exponent - self.bias - self.mantissa_bits
        )

    def encode(
        self,
        value: Fraction | float,
        mode: str = "rn",
        negative_zero: bool = False,
        saturate: bool = False,
    ) -> int:
        """Rounds once. rna: to nearest, ties away from zero. saturate: the largest number, not infinity."""
        if isinstance(value, float):
            if math.isnan(value):
                return self.nan
            if math.isinf(value):
                return (self.sign if value < 0 else 0) | self.infinity - (1 if saturate else 0)
            negative_zero = negative_zero or math.copysign(1, value) < 0
            value = Fraction(value)
        negative = value.numerator < 0 or (value.numerator == 0 and negative_zero)
        sign = self.sign if negative else 0
        value = abs(value)
        if value.numerator == 0:
            return sign
        exponent = value.numerator.bit_length() - value.denominator.bit_length()
        if value.numerator << max(0, -exponent) < value.denominator << max(0, exponent):
            exponent -= 1
        least = 1 - self.bias
        if self.flushes and exponent < least:
            rounded = self._rounded(value, exponent, mode, negative)
            becomes_normal = exponent == least - 1 and rounded == 2 << self.mantissa_bits
            return sign | becomes_normal << self.mantissa_bits
        exponent = max(exponent, least)
        code = self._rounded(value, exponent, mode, negative)
        code += (exponent - (1 - self.bias)) << self.mantissa_bits
        if code >= self.infinity:
            keeps = saturate or mode == "rz" or mode == ("rp" if negative else "rm")
            code = self.infinity - 1 if keeps else self.infinity
        return sign | code

    def _rounded(self, value: Fraction, exponent: int, mode: str, negative: bool) -> int:
        """In units of the last place for numbers with this exponent."""
        shift = self.mantissa_bits - exponent
        divisor = value.denominator << max(0, -shift)
        whole, rest = divmod(value.numerator << max(0, shift), divisor)
        if mode == "rn":
            return whole + (2 * rest > divisor or (2 * rest == divisor and whole % 2 == 1))
        if mode == "rna":
            return whole + (2 * rest >= divisor)
        return whole + (mode == ("rm" if negative else "rp") and rest > 0)

    def flush(self, code: int) -> int:
        return code if code & self.infinity else code & self.sign


F16 = Format("f16", 5, 10, 0x7FFF)
BF16 = Format("bf16", 8, 7, 0x7FFF)
F32 = Format("f32", 8, 23, 0x7FFFFFFF)
F64 = Format("f64", 11, 52, 0xFFF8000000000000)
E4M3 = Format("e4m3", 4, 3, 0x7F, finite_only=True)
E5M2 = Format("e5m2", 5, 2, 0x7F)


def negative(x: float) -> bool:
    return math.copysign(1, x) < 0


def fma(f: Format, mode: str, a: float, b: float, c: float) -> int:
    if math.isnan(a) or math.isnan(b) or math.isnan(c):
        return f.nan
    product_negative = negative(a) != negative(b)
    if math.isinf(a) or math.isinf(b):
        if a == 0 or b == 0 or (math.isinf(c) and negative(c) != product_negative):
            return f.nan
        return f.encode(-math.inf if product_negative else math.inf)
    if math.isinf(c):
        return f.encode(c)
    zero = product_negative if product_negative == negative(c) else mode == "rm"
    return f.encode(Fraction(a) * Fraction(b) + Fraction(c), mode, zero)


def add(f: Format, mode: str, a: float, b: float) -> int:
    return fma(f, mode, a, 1.0, b)


def sub(f: Format, mode: str, a: float, b: float) -> int:
    return fma(f, mode, a, 1.0, -b)


def mul(f: Format, mode: str, a: float, b: float) -> int:
    if math.isfinite(a) and math.isfinite(b):
        return f.encode(Fraction(a) * Fraction(b), mode, negative(a) != negative(b))
    return fma(f, mode, a, b, 0.0)


def div(f: Format, mode: str, a: float, b: float) -> int:
    if math.isnan(a) or math.isnan(b) or (a == 0 and b == 0) or (math.isinf(a) and math.isinf(b)):
        return f.nan
    below = negative(a) != negative(b)
    if b == 0 or math.isinf(a):
        return f.encode(-math.inf if below else math.inf)
    if math.isinf(b):
        return f.sign if below else 0
    return f.encode(Fraction(a) / Fraction(b), mode, below)


def rcp(f: Format, mode: str, a: float) -> int:
    return div(f, mode, 1.0, a)


def sqrt(f: Format, mode: str, a: float) -> int:
    if math.isnan(a) or a < 0:
        return f.nan
    if a == 0 or math.isinf(a):
        return f.encode(a)
    x = Fraction(a)
    # To 200 bits, and a sticky bit for the part that was cut off.
    shift = 400 + (x.denominator.bit_length() & ~1)
    scaled = x.numerator * (1 << shift) // x.denominator
    root = math.isqrt(scaled)
    inexact = root * root != scaled or x.numerator * (1 << shift) % x.denominator != 0
    return f.encode(Fraction(2 * root + inexact, 1 << (shift // 2 + 1)), mode)


def edges(f: Format) -> list[int]:
    """Codes that implementations tend to get wrong."""
    least_normal = 1 << f.mantissa_bits
    one = f.bias << f.mantissa_bits
    positive = [0, 1, 2, least_normal - 1, least_normal, least_normal + 1, one - 1, one, one + 1]
    positive += [one + least_normal, f.infinity - 1, f.infinity, f.infinity + 1, f.sign - 1, one >> 1]
    return [c | s for c in positive for s in (0, f.sign)]


def codes(f: Format, count: int, seed: int) -> np.ndarray:
    """Random codes; a quarter are edge cases, a quarter have similar exponents."""
    rng = np.random.default_rng(seed)
    result = rng.integers(0, 1 << f.bits, count, np.uint64)
    quarter = count // 4
    result[:quarter] = rng.choice(np.array(edges(f), np.uint64), quarter)
    span = np.uint64(4 << f.mantissa_bits)
    middle = np.uint64((f.bias - 2) << f.mantissa_bits)
    sign = rng.integers(0, 2, quarter, np.uint64) << np.uint64(f.bits - 1)
    result[quarter : 2 * quarter] = middle + result[quarter : 2 * quarter] % span | sign
    rng.shuffle(result)
    return result.astype(f.dtype)


def expect(
    f: Format, reference: Callable[..., int], inputs: Sequence[np.ndarray], ftz: bool = False
) -> np.ndarray:
    """The reference's code for each row of inputs; with ftz, subnormal inputs are treated as zeros."""
    rows = zip(*[a.tolist() for a in inputs], strict=True)
    prepare: Callable[[int], int] = f.flush if ftz else int
    return np.array([reference(*[f.decode(prepare(c)) for c in row]) for row in rows], f.dtype)


def first_nan(results: np.ndarray, inputs: Sequence[np.ndarray]) -> np.ndarray:
    """An f64 NaN result keeps the payload of the first NaN operand, and is quiet."""
    fixed = results.copy()
    for operand in reversed(inputs):
        nan = np.isnan(operand.view(np.float64))
        fixed[nan] = operand[nan] | np.uint64(0x0008000000000000)
    return fixed


def assert_same(found: np.ndarray, wanted: np.ndarray, *inputs: np.ndarray) -> None:
    bad = np.nonzero(found != wanted)[0]
    shown = [
        f"{', '.join(hex(int(a[i])) for a in inputs)}: {int(found[i]):#x}, expected {int(wanted[i]):#x}"
        for i in bad[:5]
    ]
    assert not len(bad), f"{len(bad)} of {len(found)} differ: " + "; ".join(shown)
