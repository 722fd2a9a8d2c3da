"""Comparison and selection: setp, set, selp, slct, with every type and comparison."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from simt.errors import PtxError
from support.integers import DTYPES, bits_of, check, vectors
from support.ptx import Device, per_lane, ptx_only

ORDERED: dict[str, Callable[[float, float], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}


def holds(name: str, a: float, b: float) -> bool:
    """As in PTX: a comparison with NaN is false, or true if its name ends in u."""
    nan = math.isnan(a) or math.isnan(b)
    if name in ("num", "nan"):
        return nan == (name == "nan")
    if name in ORDERED:
        return not nan and ORDERED[name](a, b)
    return nan or ORDERED[name[:-1]](a, b)


FLOATING = [*ORDERED, *[f"{name}u" for name in ORDERED], "num", "nan"]
# As bits: zeros, subnormal, normal and infinite numbers, NaNs with small and large payloads.
FLOAT_BITS = {
    "f16": [
        0,
        0x8000,
        1,
        0x8001,
        0x03FF,
        0x0400,
        0x3C00,
        0xBC00,
        0x7BFF,
        0x7C00,
        0xFC00,
        0x7C01,
        0x7E00,
        0xFFFF,
    ],
    "bf16": [
        0,
        0x8000,
        1,
        0x8001,
        0x007F,
        0x0080,
        0x3F80,
        0xBF80,
        0x7F7F,
        0x7F80,
        0xFF80,
        0x7F81,
        0x7FFF,
        0xFFC0,
    ],
    "f32": [
        *[
            0,
            0x80000000,
            1,
            0x80000001,
            0x007FFFFF,
            0x00800000,
            0x3F800000,
            0xBF800000,
            0x3F800001,
            0x7F7FFFFF,
        ],
        *[0x7F800000, 0xFF800000, 0x7F800001, 0x7FFFFFFF, 0xFFC00000],
    ],
    "f64": [
        *[0, 1 << 63, 1, 0x000FFFFFFFFFFFFF, 0x3FF0000000000000, 0xBFF0000000000000, 0x3FF0000000000001],
        *[0x7FEFFFFFFFFFFFFF, 0x7FF0000000000000, 0xFFF0000000000000, 0x7FF0000000000001, 0xFFFFFFFFFFFFFFFF],
    ],
}


def value(bits: int, type_: str, flush: bool = False) -> float:
    if type_ == "bf16":
        return value(bits << 16, "f32")
    dtype, integer = {
        "f16": (np.float16, np.uint16),
        "f32": (np.float32, np.uint32),
        "f64": (np.float64, np.uint64),
    }[type_]
    number = float(np.array(bits, integer).view(dtype))
    return 0.0 if flush and abs(number) < np.finfo(dtype).tiny else number


def float_columns(type_: str) -> list[np.ndarray]:
    rows = list(product(FLOAT_BITS[type_], repeat=2))
    size = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8}[type_]
    return [np.array([r[k] for r in rows], DTYPES[size]) for k in (0, 1)]


@pytest.mark.parametrize("type_", ["u16", "s16", "u32", "s32", "u64", "s64"])
def test_setp_of_integers(type_: str) -> None:
    names = dict(zip(ORDERED, ORDERED, strict=True)) | (UNSIGNED if type_[0] == "u" else {})
    for name, meaning in names.items():
        body = f"setp.{name}.{type_} %p, %i0, %i1; selp.u32 %o, 1, 0, %p;"
        compare = lambda a, b, m=meaning: int(ORDERED[m](a, b))  # noqa: E731
        check(body, [type_, type_], "u32", compare, ".reg .pred %p;")
        if meaning in ("eq", "ne") and type_[0] == "u":
            check(
                body.replace(type_ + " %p", "b" + type_[1:] + " %p"),
                [type_] * 2,
                "u32",
                compare,
                ".reg .pred %p;",
            )


@pytest.mark.parametrize("name", FLOATING)
@pytest.mark.parametrize("type_", ["f16", "f16.ftz", "bf16", "f32", "f32.ftz", "f64"])
def test_setp_and_set_of_floating_point(type_: str, name: str) -> None:
    base, _, ftz = type_.partition(".")
    a, b = float_columns(base)
    modifiers = f"{name}.ftz" if ftz else name
    expected = [
        holds(name, value(x, base, bool(ftz)), value(y, base, bool(ftz)))
        for x, y in zip(a.tolist(), b.tolist(), strict=True)
    ]
    got = per_lane(
        f"setp.{modifiers}.{base} %p, %i0, %i1; selp.u32 %o, 1, 0, %p;", a, b, registers=".reg .pred %p;"
    )
    assert got.tolist() == [int(e) for e in expected]
    got = per_lane(f"set.{modifiers}.u32.{base} %o, %i0, %i1;", a, b)
    assert got.tolist() == [0xFFFFFFFF if e else 0 for e in expected]


@pytest.mark.parametrize("type_", ["f16x2", "bf16x2"])
def test_packed_setp_and_set(type_: str) -> None:
    base = type_[:-2]
    low_a, low_b = float_columns(base)
    high_a, high_b = np.roll(low_a, 5), np.roll(low_b, 11)
    a = low_a.astype(np.uint32) | high_a.astype(np.uint32) << 16
    b = low_b.astype(np.uint32) | high_b.astype(np.uint32) << 16
    one = 0x3C00 if base == "f16" else 0x3F80
    for name in FLOATING:
        low, high = (
            [holds(name, value(u, base), value(v, base)) for u, v in zip(x.tolist(), y.tolist(), strict=True)]
            for x, y in ((low_a, low_b), (high_a, high_b))
        )
        pairs = list(zip(low, high, strict=True))
        got = per_lane(
            f"setp.{name}.{type_} %p|%q, %i0, %i1; selp.u32 %o, 1, 0, %p; @%q or.b32 %o, %o, 2;",
            a,
            b,
            registers=".reg .pred %p, %q;",
        )
        assert got.tolist() == [int(x) + 2 * int(y) for x, y in pairs]
        got = per_lane(f"set.{name}.{type_}.{type_} %o, %i0, %i1;", a, b)
        assert got.tolist() == [one * int(x) + (one << 16) * int(y) for x, y in pairs]
        got = per_lane(f"set.{name}.s32.{type_} %o, %i0, %i1;", a, b)
        assert got.tolist() == [0xFFFF * int(x) + 0xFFFF0000 * int(y) for x, y in pairs]


BOOLEANS: dict[str, Callable[[bool, bool], bool]] = {
    "and": lambda x, y: x and y,
    "or": lambda x, y: x or y,
    "xor": lambda x, y: x != y,
}


@pytest.mark.parametrize("negated", ["", "!"])
@pytest.mark.parametrize("operation", BOOLEANS)
def test_combination_with_a_third_predicate(operation: str, negated: str) -> None:
    rows = list(product([1, 5, 0xFFFFFFFF], [1, 5], [0, 1]))
    a, b, c = (np.array([r[k] for r in rows], np.uint32) for k in range(3))
    body = (
        f"setp.ne.u32 %c, %i2, 0; setp.lt.{operation}.s32 %p|%q, %i0, %i1, {negated}%c;"
        "selp.u32 %o, 1, 0, %p; selp.u32 %t, 2, 0, %q; or.b32 %o, %o, %t;"
        f"set.lt.{operation}.u32.s32 %t, %i0, %i1, {negated}%c; and.b32 %t, %t, 4; or.b32 %o, %o, %t;"
    )
    got = per_lane(body, a, b, c, registers=".reg .pred %p, %q, %c; .reg .b32 %t;")
    for result, x, y, z in zip(got.tolist(), a.tolist(), b.tolist(), c.tolist(), strict=True):
        less, third = (x - (1 << 32) if x >> 31 else x) < y, bool(z) != bool(negated)
        p, q = BOOLEANS[operation](less, third), BOOLEANS[operation](not less, third)
        assert result == p + 2 * q + 4 * p


@ptx_only("ptxas 12.9 refuses one destination: Arguments mismatch for instruction setp")
def test_packed_setp_with_one_destination_compares_the_low_halves() -> None:
    a = np.array([0x00003C00, 0x3C000000, 0x3C003C00, 0] * 8, np.uint32)
    got = per_lane("setp.eq.f16x2 %p, %i0, 0x40003c00; selp.u32 %o, 1, 0, %p;", a, registers=".reg .pred %p;")
    assert got.tolist() == [1, 0, 1, 0] * 8


def test_one_of_two_destinations_may_be_left_out() -> None:
    a = np.arange(32, dtype=np.uint32)
    got = per_lane("setp.lt.u32 _|%q, %i0, 7; selp.u32 %o, 1, 0, %q;", a, registers=".reg .pred %q;")
    assert got.tolist() == [0] * 7 + [1] * 25


def test_the_third_predicate_may_be_a_destination() -> None:
    a = np.arange(32, dtype=np.uint32)
    body = (
        "setp.lt.u32 %p, %i0, 20; setp.gt.and.u32 %p|%q, %i0, 7, %p;"
        "selp.u32 %o, 1, 0, %p; @%q add.u32 %o, %o, 2;"
    )
    got = per_lane(body, a, registers=".reg .pred %p, %q;")
    assert got.tolist() == [2 if i <= 7 else 1 if i < 20 else 0 for i in range(32)]


def test_lanes_outside_the_mask_keep_their_predicate() -> None:
    a = np.arange(32, dtype=np.uint32)
    body = (
        "setp.lt.u32 %p, %i0, 16; setp.lt.u32 %g, %i0, 20; @%g setp.gt.u32 %p, %i0, 17;selp.u32 %o, 1, 0, %p;"
    )
    got = per_lane(body, a, registers=".reg .pred %p, %g;")
    assert got.tolist() == [int(i in (18, 19)) for i in range(32)]


@pytest.mark.parametrize(
    ("result", "one"),
    [("u32", 0xFFFFFFFF), ("s32", 0xFFFFFFFF), ("f32", 0x3F800000), ("f16", 0x3C00), ("bf16", 0x3F80)],
)
@pytest.mark.parametrize("type_", ["u16", "s32", "b32", "u64", "f32", "f64"])
def test_values_that_set_writes(type_: str, result: str, one: int) -> None:
    bits = int(type_[1:])
    a = np.arange(32, dtype=DTYPES[bits // 8]) % 3
    b = np.ones(32, DTYPES[bits // 8])
    output = np.uint16 if one < 0x10000 else np.uint32
    got = per_lane(f"set.eq.{result}.{type_} %o, %i0, %i1;", a, b, output=output)
    assert got.tolist() == [one if i % 3 == 1 else 0 for i in range(32)]


@pytest.mark.parametrize("result", ["u16", "s16"])
def test_set_of_16_bits(result: str) -> None:
    a = np.array([0x3C00, 0x7E00] * 16, np.uint16)
    got = per_lane(f"set.num.{result}.f16 %o, %i0, %i0;", a, output=np.uint16)
    assert got.tolist() == [0xFFFF, 0] * 16


@pytest.mark.parametrize(
    "type_", ["b16", "u16", "s16", "b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64"]
)
def test_selp(type_: str) -> None:
    bits = bits_of(type_)
    a, b = vectors([f"u{bits}"] * 2)
    for negated in ("", "!"):
        body = f"and.b32 %t, %lane0, 5; setp.eq.u32 %p, %t, 4; selp.{type_} %o, %i0, %i1, {negated}%p;"
        got = per_lane(body, a, b, output=a.dtype, registers=".reg .pred %p; .reg .b32 %t;")
        first = (np.arange(len(a)) & 5 == 4) != bool(negated)
        assert (got == np.where(first, a, b)).all()


@pytest.mark.parametrize(
    "type_", ["b16", "u16", "s16", "b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64"]
)
def test_slct(type_: str) -> None:
    bits = bits_of(type_)
    a, b = vectors([f"u{bits}"] * 2)
    c = np.resize(np.array([0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF], np.uint32), len(a))
    got = per_lane(f"slct.{type_}.s32 %o, %i0, %i1, %i2;", a, b, c, output=a.dtype)
    assert (got == np.where(c.view(np.int32) >= 0, a, b)).all()
    # NaN selects the second; -0.0 is not below 0; nor is any flushed subnormal number.
    numbers = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45], np.float32)
    c = np.resize(numbers, len(a))
    got = per_lane(f"slct.{type_}.f32 %o, %i0, %i1, %i2;", a, b, c.view(np.uint32), output=a.dtype)
    assert (got == np.where(c >= 0, a, b)).all()
    got = per_lane(f"slct.ftz.{type_}.f32 %o, %i0, %i1, %i2;", a, b, c.view(np.uint32), output=a.dtype)
    assert (got == np.where((c >= 0) | (np.abs(c) < 1e-38), a, b)).all()


@pytest.mark.parametrize(
    "instruction",
    [
        "setp.u32 %p, %r1, %r2;",
        "setp.lo.s32 %p, %r1, %r2;",
        "setp.lt.b32 %p, %r1, %r2;",
        "setp.equ.u32 %p, %r1, %r2;",
        "setp.eq.ftz.f64 %p, %d1, %d2;",
        "setp.eq.u8 %p, %r1, %r2;",
        "setp.eq.and.u32 %p, %r1, %r2;",
        "set.eq.u16.u32 %h1, %r1, %r2;",
        "set.eq.f16x2.f16 %r0, %h1, %h2;",
        "set.eq.f64.f64 %d0, %d1, %d2;",
        "selp.u32 %r0, %r1, %r2, %r3;",
        "slct.u32.u32 %r0, %r1, %r2, %r3;",
        "slct.ftz.u32.s32 %r0, %r1, %r2, %r3;",
    ],
)
def test_forms_that_do_not_exist_are_refused(instruction: str) -> None:
    registers = ".reg .b16 %h<4>; .reg .b32 %r<4>; .reg .b64 %d<4>; .reg .pred %p, %q;"
    with pytest.raises(PtxError, match=r"test\.ptx:4"):
        Device(f".visible .entry k() {{ {registers} {instruction} ret; }}")
