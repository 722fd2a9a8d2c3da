"""Integer arithmetic against Python's integers: edge values in all pairs, random ones of every magnitude."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from simt.errors import PtxError
from support.integers import bits_of, check, clamp, signed, vectors
from support.ptx import Device, per_lane

TYPES = ["u16", "s16", "u32", "s32", "u64", "s64"]
SIGNED = ["s16", "s32", "s64"]


def truncating_quotient(a: int, b: int, type_: str) -> int:
    """All ones for a division by zero, as the code that ptxas makes gives it."""
    if b == 0:
        return -1
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def remainder(a: int, b: int, type_: str) -> int:
    return -1 if b == 0 else a - truncating_quotient(a, b, type_) * b


BINARY: dict[str, Callable[[int, int, str], int]] = {
    "add": lambda a, b, t: a + b,
    "sub": lambda a, b, t: a - b,
    "mul.lo": lambda a, b, t: a * b,
    "mul.hi": lambda a, b, t: (a * b) >> bits_of(t),
    "div": truncating_quotient,
    "rem": remainder,
    "min": lambda a, b, t: min(a, b),
    "max": lambda a, b, t: max(a, b),
}


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("name", BINARY)
def test_binary(name: str, type_: str) -> None:
    check(f"{name}.{type_} %o, %i0, %i1;", [type_, type_], type_, lambda a, b: BINARY[name](a, b, type_))


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("part", ["lo", "hi"])
def test_multiply_and_add(part: str, type_: str) -> None:
    shift = 0 if part == "lo" else bits_of(type_)
    check(
        f"mad.{part}.{type_} %o, %i0, %i1, %i2;", [type_] * 3, type_, lambda a, b, c: ((a * b) >> shift) + c
    )


@pytest.mark.parametrize("type_", ["u16", "s16", "u32", "s32"])
def test_wide_products(type_: str) -> None:
    wide = f"{type_[0]}{2 * bits_of(type_)}"
    check(f"mul.wide.{type_} %o, %i0, %i1;", [type_] * 2, wide, lambda a, b: a * b)
    check(f"mad.wide.{type_} %o, %i0, %i1, %i2;", [type_, type_, wide], wide, lambda a, b, c: a * b + c)


@pytest.mark.parametrize("type_", SIGNED)
def test_sign(type_: str) -> None:
    check(f"neg.{type_} %o, %i0;", [type_], type_, lambda a: -a)
    check(f"abs.{type_} %o, %i0;", [type_], type_, abs)


def test_saturation() -> None:
    types = ["s32", "s32"]
    check("add.sat.s32 %o, %i0, %i1;", types, "s32", lambda a, b: clamp(a + b, "s32"))
    check("sub.sat.s32 %o, %i0, %i1;", types, "s32", lambda a, b: clamp(a - b, "s32"))
    high = lambda a, b, c: clamp(((a * b) >> 32) + c, "s32")  # noqa: E731
    check("mad.hi.sat.s32 %o, %i0, %i1, %i2;", ["s32"] * 3, "s32", high)


@pytest.mark.parametrize("type_", ["u32", "s32"])
def test_24_bits(type_: str) -> None:
    def low24(v: int) -> int:
        return signed(v, 24) if type_ == "s32" else v & 0xFFFFFF

    two, three = [type_] * 2, [type_] * 3
    check(f"mul24.lo.{type_} %o, %i0, %i1;", two, type_, lambda a, b: low24(a) * low24(b))
    check(f"mul24.hi.{type_} %o, %i0, %i1;", two, type_, lambda a, b: (low24(a) * low24(b)) >> 16)
    check(f"mad24.lo.{type_} %o, %i0, %i1, %i2;", three, type_, lambda a, b, c: low24(a) * low24(b) + c)
    check(
        f"mad24.hi.{type_} %o, %i0, %i1, %i2;",
        three,
        type_,
        lambda a, b, c: ((low24(a) * low24(b)) >> 16) + c,
    )


def test_24_bits_saturated() -> None:
    def reference(a: int, b: int, c: int) -> int:
        product = (signed(a, 24) * signed(b, 24)) >> 16
        return clamp(signed(product, 32) + c, "s32")

    check("mad24.hi.sat.s32 %o, %i0, %i1, %i2;", ["s32"] * 3, "s32", reference)


@pytest.mark.parametrize("type_", TYPES)
def test_sum_of_absolute_differences(type_: str) -> None:
    check(f"sad.{type_} %o, %i0, %i1, %i2;", [type_] * 3, type_, lambda a, b, c: c + abs(a - b))


def halves(value: int, type_: str) -> list[int]:
    parts = [value & 0xFFFF, value >> 16 & 0xFFFF]
    return [signed(p, 16) for p in parts] if type_[0] == "s" else parts


PACKED: dict[str, tuple[str, Callable[[int, int], int]]] = {
    "add.u16x2": ("u", lambda a, b: a + b),
    "add.s16x2": ("s", lambda a, b: a + b),
    "min.u16x2": ("u", min),
    "min.s16x2": ("s", min),
    "max.u16x2": ("u", max),
    "max.s16x2": ("s", max),
    "min.relu.s16x2": ("s", lambda a, b: max(0, min(a, b))),
    "max.relu.s16x2": ("s", lambda a, b: max(0, a, b)),
}


@pytest.mark.parametrize("name", PACKED)
def test_packed_halves(name: str) -> None:
    type_, operation = PACKED[name]

    def reference(a: int, b: int) -> int:
        low, high = (
            operation(x, y) & 0xFFFF for x, y in zip(halves(a, type_), halves(b, type_), strict=True)
        )
        return low | high << 16

    check(f"{name} %o, %i0, %i1;", ["u32", "u32"], "u32", reference)


def test_relu() -> None:
    check("min.relu.s32 %o, %i0, %i1;", ["s32"] * 2, "s32", lambda a, b: max(0, min(a, b)))
    check("max.relu.s32 %o, %i0, %i1;", ["s32"] * 2, "s32", lambda a, b: max(0, a, b))


@pytest.mark.parametrize("type_", ["u32", "s32", "u64", "s64"])
def test_sums_of_twice_and_thrice_the_width(type_: str) -> None:
    bits = bits_of(type_)
    types = [f"u{bits}"] * 4
    registers = f".reg .b{bits} %t<3>;"

    def whole(low: int, high: int) -> int:
        return low | high << bits

    for name, sign in [("add", 1), ("sub", -1)]:
        # The carry goes on into a third word, which shows it.
        body = (
            f"{name}.cc.{type_} %t0, %i0, %i2; {name}c.cc.{type_} %t1, %i1, %i3; {name}c.{type_} %t2, 0, 0;"
        )
        for word in range(3):

            def reference(a0: int, a1: int, b0: int, b1: int, sign: int = sign, word: int = word) -> int:
                return (whole(a0, a1) + sign * whole(b0, b1)) >> (bits * word)

            check(f"{body} mov.b{bits} %o, %t{word};", types, types[0], reference, registers, seed=word)


@pytest.mark.parametrize("bits", [32, 64])
def test_products_of_twice_the_width(bits: int) -> None:
    """128 by 128 bits (or 64 by 64), low half, by words: mad.cc and madc in the order of nvcc's __int128."""
    registers = f".reg .b{bits} %t<4>;"
    body = (
        f"mul.lo.u{bits} %t0, %i0, %i2; mul.hi.u{bits} %t1, %i0, %i2;"
        f"mad.lo.u{bits} %t1, %i0, %i3, %t1; mad.lo.u{bits} %t1, %i1, %i2, %t1;"
        # Once more, with a sum of products that carries: t3:t2 = i0*i2 + (i1 << bits | i3).
        f"mad.lo.cc.u{bits} %t2, %i0, %i2, %i3; madc.hi.u{bits} %t3, %i0, %i2, %i1;"
    )
    types = [f"u{bits}"] * 4
    mask = (1 << bits) - 1
    product = lambda a0, a1, b0, b1: (a0 | a1 << bits) * (b0 | b1 << bits)  # noqa: E731
    check(f"{body} mov.b{bits} %o, %t1;", types, types[0], lambda *v: product(*v) >> bits, registers)
    sum_ = lambda a0, a1, b0, b1: a0 * b0 + (b1 | a1 << bits)  # noqa: E731
    check(f"{body} mov.b{bits} %o, %t2;", types, types[0], lambda *v: sum_(*v) & mask, registers)
    check(f"{body} mov.b{bits} %o, %t3;", types, types[0], lambda *v: sum_(*v) >> bits, registers)


def test_high_products_carry() -> None:
    def reference(a: int, b: int, c: int) -> int:
        return (((a * b) >> 32) + c) >> 32

    check("mad.hi.cc.u32 %o, %i0, %i1, %i2; addc.u32 %o, 0, 0;", ["u32"] * 3, "u32", reference)
    check("add.cc.u32 %o, %i0, %i1; madc.lo.cc.u32 %o, %i0, %i1, %i2; addc.u32 %o, 0, 0;", ["u32"] * 3, "u32",
          lambda a, b, c: ((a * b & 0xFFFFFFFF) + c + ((a + b) >> 32)) >> 32)  # fmt: skip


@pytest.mark.parametrize("type_", ["u32", "s32", "u64", "s64"])
def test_sums_and_differences_in_one_chain(type_: str) -> None:
    """A difference is a + ~b + 1: its flag is 1 where nothing is borrowed, whatever instruction reads it."""
    bits = bits_of(type_)
    mask = (1 << bits) - 1

    def words(chain: str, a: int, b: int, c: int) -> list[int]:
        carry, results = 0, []
        for name in chain.split():
            first = (a * b) & mask if name[:3] == "mad" else a
            addend = {"add": b, "sub": ~b & mask, "mad": c}[name[:3]]
            total = first + addend + (carry if name[3] == "c" else name[:3] == "sub")
            results.append(total & mask)
            carry = total >> bits
        return results

    for chain in ("sub.cc addc", "add.cc subc", "sub.cc addc.cc subc.cc addc", "add.cc subc.cc addc.cc subc",
                  "mad.lo.cc subc.cc madc.lo.cc subc", "sub.cc madc.lo.cc subc"):  # fmt: skip
        names = chain.split()
        body = "".join(
            f"{name}.{type_} %t{k}, %i0, %i1{', %i2' if name.startswith('mad') else ''};"
            for k, name in enumerate(names)
        )
        registers = f".reg .b{bits} %t<{len(names)}>;"
        for k in range(len(names)):
            check(f"{body} mov.b{bits} %o, %t{k};", [f"u{bits}"] * 3, f"u{bits}",
                  lambda a, b, c, chain=chain, k=k: words(chain, a, b, c)[k], registers, seed=k)  # fmt: skip


@pytest.mark.parametrize("type_", ["u32", "s32", "u64", "s64"])
def test_the_flag_of_a_difference(type_: str) -> None:
    """The constants that ptxas folds: 1 - 2 borrows, 1 + 2 does not carry."""
    bits = bits_of(type_)

    def run(first: str, second: str) -> int:
        body = f"{first}.cc.{type_} %t, 1, 2; {second}.{type_} %o, 0, 0;"
        return int(per_lane(body, output=f"i{bits // 8}", registers=f".reg .b{bits} %t;")[0])

    assert (run("sub", "addc"), run("add", "subc")) == (0, -1)
    assert (run("sub", "subc"), run("add", "addc")) == (-1, 0)


def test_each_lane_and_path_has_its_own_carry() -> None:
    """Lanes that diverge between add.cc and addc keep their flag."""
    a = np.arange(32, dtype=np.uint32) * np.uint32(0x10000000)
    body = """
    add.cc.u32 %t, %i0, 0x80000000;
    setp.lt.u32 %p, %lane0, 7;
    @%p bra OTHER;
    addc.u32 %o, 0, 100;
    bra MEET;
OTHER:
    add.cc.u32 %t, %i0, 0;
    addc.u32 %o, 0, 200;
MEET:
"""
    got = per_lane(body, a, registers=".reg .b32 %t; .reg .pred %p;")
    expected = [200 if i < 7 else 100 + ((int(v) + 0x80000000) >> 32) for i, v in enumerate(a)]
    assert got.tolist() == expected


def test_a_guard_keeps_the_flag_of_the_other_lanes() -> None:
    a = np.full(32, 0xFFFFFFFF, np.uint32)
    body = "add.cc.u32 %t, %i0, 1; setp.lt.u32 %p, %lane0, 16; @%p add.cc.u32 %t, %i0, 0; addc.u32 %o, 0, 0;"
    got = per_lane(body, a, registers=".reg .b32 %t; .reg .pred %p;")
    assert got.tolist() == [0] * 16 + [1] * 16


@pytest.mark.parametrize("b", ["u32", "s32"])
@pytest.mark.parametrize("a", ["u32", "s32"])
def test_dot_products(a: str, b: str) -> None:
    def part(value: int, bits: int, index: int, type_: str) -> int:
        field = value >> (bits * index) & ((1 << bits) - 1)
        return signed(field, bits) if type_ == "s32" else field

    types = ["u32"] * 3
    four = lambda x, y, c: c + sum(part(x, 8, k, a) * part(y, 8, k, b) for k in range(4))  # noqa: E731
    check(f"dp4a.{a}.{b} %o, %i0, %i1, %i2;", types, "u32", four)
    for name, first in [("lo", 0), ("hi", 2)]:

        def two(x: int, y: int, c: int, first: int = first) -> int:
            return c + sum(part(x, 16, k, a) * part(y, 8, first + k, b) for k in range(2))

        check(f"dp2a.{name}.{a}.{b} %o, %i0, %i1, %i2;", types, "u32", two)


@pytest.mark.parametrize("lanes", [0x1, 0x80000000, 0xFFFE, 0xAAAAAAAA])
def test_lanes_outside_the_mask_keep_their_value(lanes: int) -> None:
    a, b = vectors(["u32", "u32"])[:2]
    a, b = a[-32:], b[-32:]
    body = f"mov.b32 %o, 7; shr.u32 %t, {lanes}, %lane0; and.b32 %t, %t, 1; setp.eq.u32 %p, %t, 1; @%p "
    for name, operation in [
        ("add", np.add),
        ("mul.lo", np.multiply),
        ("div", lambda x, y: x // np.maximum(y, 1)),
    ]:
        got = per_lane(f"{body} {name}.u32 %o, %i0, %i1;", a, b, registers=".reg .b32 %t; .reg .pred %p;")
        chosen = (lanes >> np.arange(32)) & 1 == 1
        nonzero = b != 0
        assert (got[~chosen] == 7).all()
        assert (got[chosen & nonzero] == operation(a, b)[chosen & nonzero]).all()


def test_results_may_overlay_sources_of_another_width() -> None:
    """The 64-bit product takes the registers of its own operands, as an allocation may have it."""
    a = np.arange(32, dtype=np.uint64) + np.uint64(0x100000000)
    body = "mov.b64 {%lo, %hi}, %i0; mul.wide.u32 %o, %lo, 3; add.u64 %o, %o, %i0;"
    got = per_lane(body, a, output=np.uint64, registers=".reg .b32 %lo, %hi;")
    assert (got == (a & np.uint64(0xFFFFFFFF)) * np.uint64(3) + a).all()


@pytest.mark.parametrize(
    "instruction",
    [
        "add.b32 %r0, %r1, %r2;",
        "add.sat.u32 %r0, %r1, %r2;",
        "sub.u16x2 %r0, %r1, %r2;",
        "mul.u32 %r0, %r1, %r2;",
        "mul.wide.u64 %d0, %d1, %d2;",
        "mad.lo.sat.s32 %r0, %r1, %r2, %r3;",
        "add.cc.u16 %h0, %h1, %h2;",
        "abs.u32 %r0, %r1;",
        "max.relu.u32 %r0, %r1, %r2;",
        "add.u32 %r0, %d1, %r2;",
        "dp4a.u32 %r0, %r1, %r2, %r3;",
    ],
)
def test_forms_that_do_not_exist_are_refused(instruction: str) -> None:
    registers = ".reg .b32 %r<4>; .reg .b64 %d<4>; .reg .b16 %h<4>;"
    with pytest.raises(PtxError, match=r"test\.ptx:4"):
        Device(f".visible .entry k() {{ {registers} {instruction} ret; }}")
