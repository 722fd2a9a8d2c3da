"""Logic, shifts, and instructions on bits and bytes, against one bit or byte at a time in Python."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from simt.errors import PtxError
from support.integers import bits_of, check, number, signed
from support.ptx import CODE, Device, per_lane

AMOUNTS = [
    0,
    1,
    2,
    7,
    8,
    15,
    16,
    17,
    24,
    31,
    32,
    33,
    40,
    63,
    64,
    65,
    255,
    256,
    0x10001,
    0x80000000,
    0xFFFFFFFF,
]
VALUES = {
    16: [0, 1, 0x7FFF, 0x8000, 0xFFFF, 0x1234, 0xA5C3],
    32: [0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x12345678, 0xA5C3F00D, 0x00FF8000],
    64: [0, 1, 1 << 63, (1 << 63) - 1, (1 << 64) - 1, 0x123456789ABCDEF0, 0xA5C3F00D80FF7E01, 0xFFFFFFFF],
}
DTYPES = {16: np.uint16, 32: np.uint32, 64: np.uint64}


def columns(*choices: list[int], bits: list[int]) -> list[np.ndarray]:
    rows = list(product(*choices))
    return [np.array([r[k] for r in rows], DTYPES[b]) for k, b in enumerate(bits)]


LOGIC: dict[str, Callable[[int, int], int]] = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}


@pytest.mark.parametrize("bits", [16, 32, 64])
def test_logic(bits: int) -> None:
    type_ = f"u{bits}"
    for name, operation in LOGIC.items():
        check(f"{name}.b{bits} %o, %i0, %i1;", [type_, type_], type_, operation)
    check(f"not.b{bits} %o, %i0;", [type_], type_, lambda a: ~a)
    check(f"cnot.b{bits} %o, %i0;", [type_], type_, lambda a: int(a == 0))


@pytest.mark.parametrize("name", [*LOGIC, "not"])
def test_logic_of_predicates(name: str) -> None:
    a, b = columns([0, 1], [0, 1], bits=[32, 32])
    sources = "%p, %q" if name != "not" else "%p"
    body = (
        f"setp.ne.u32 %p, %i0, 0; setp.ne.u32 %q, %i1, 0; {name}.pred %r, {sources}; selp.u32 %o, 1, 0, %r;"
    )
    got = per_lane(body, a, b, registers=".reg .pred %p, %q, %r;")
    reference = LOGIC.get(name, lambda x, y: 1 - x)
    assert got.tolist() == [reference(x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]


@pytest.mark.parametrize("type_", ["b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64"])
def test_shifts(type_: str) -> None:
    bits = bits_of(type_)
    values = columns(VALUES[bits], AMOUNTS, bits=[bits, 32])
    if type_[0] == "b":
        left = lambda a, n: a << n if n < bits else 0  # noqa: E731
        check(f"shl.{type_} %o, %i0, %i1;", [f"u{bits}", "u32"], f"u{bits}", left, columns=values)
    operand = type_.replace("b", "u")
    right = lambda a, n: a >> min(n, bits)  # noqa: E731
    check(f"shr.{type_} %o, %i0, %i1;", [operand, "u32"], operand, right, columns=values)


@pytest.mark.parametrize("mode", ["clamp", "wrap"])
@pytest.mark.parametrize("direction", ["l", "r"])
def test_funnel_shift(direction: str, mode: str) -> None:
    def reference(a: int, b: int, c: int) -> int:
        n = c & 31 if mode == "wrap" else min(c, 32)
        whole = b << 32 | a
        return whole << n >> 32 if direction == "l" else whole >> n

    values = columns(VALUES[32], VALUES[32], AMOUNTS, bits=[32] * 3)
    check(f"shf.{direction}.{mode}.b32 %o, %i0, %i1, %i2;", ["u32"] * 3, "u32", reference, columns=values)


def lop3(a: int, b: int, c: int, table: int) -> int:
    result = 0
    for k in range(32):
        index = (a >> k & 1) << 2 | (b >> k & 1) << 1 | (c >> k & 1)
        result |= (table >> index & 1) << k
    return result


def test_logic_of_three_by_every_table() -> None:
    # Each of the eight combinations of three bits, in four positions.
    a, b, c = 0xF0F0AA0F, 0xCCCC0FF0, 0xAAAAC3C3
    lines = [f"lop3.b32 %t, %i0, %i1, %i2, {k}; mad.lo.u32 %o, %o, 31, %t;" for k in range(256)]
    got = per_lane(
        "mov.b32 %o, 0;" + "".join(lines),
        *[np.full(32, v, np.uint32) for v in (a, b, c)],
        registers=".reg .b32 %t;",
    )
    expected = 0
    for table in range(256):
        expected = (expected * 31 + lop3(a, b, c, table)) & 0xFFFFFFFF
    assert (got == expected).all()


@pytest.mark.parametrize("operation", ["and", "or"])
@pytest.mark.parametrize("negated", ["", "!"])
def test_logic_of_three_with_predicate(operation: str, negated: str) -> None:
    a, q = columns([0, 0x10, 0xFFFFFFFF], [0, 1], bits=[32, 32])
    body = (
        f"setp.ne.u32 %q, %i1, 0; lop3.{operation}.b32 %o|%p, %i0, 0xff, 0, 0xc0, {negated}%q;"
        "selp.u32 %t, 0x1000, 0, %p; or.b32 %o, %o, %t;"
    )
    got = per_lane(body, a, q, registers=".reg .pred %p, %q; .reg .b32 %t;")
    for value, x, other in zip(got.tolist(), a.tolist(), q.tolist(), strict=True):
        holds, with_ = (x & 0xFF) != 0, bool(other) != bool(negated)
        p = holds and with_ if operation == "and" else holds or with_
        assert value == (x & 0xFF) | (0x1000 if p else 0)


@pytest.mark.parametrize("bits", [32, 64])
def test_counts(bits: int) -> None:
    type_ = f"u{bits}"
    check(f"popc.b{bits} %o, %i0;", [type_], "u32", lambda a: a.bit_count())
    check(f"clz.b{bits} %o, %i0;", [type_], "u32", lambda a: bits - a.bit_length())
    check(f"brev.b{bits} %o, %i0;", [type_], type_, lambda a: int(f"{a:0{bits}b}"[::-1], 2))


@pytest.mark.parametrize("type_", ["u32", "s32", "u64", "s64"])
def test_find_leading_bit(type_: str) -> None:
    def position(a: int) -> int:
        return (~a if a < 0 else a).bit_length() - 1

    check(f"bfind.{type_} %o, %i0;", [type_], "u32", position)
    amount = lambda a: -1 if position(a) < 0 else bits_of(type_) - 1 - position(a)  # noqa: E731
    check(f"bfind.shiftamt.{type_} %o, %i0;", [type_], "u32", amount)


def test_find_nth_set() -> None:
    def reference(mask: int, base: int, offset: int) -> int:
        offset = signed(offset, 32)
        if offset == 0:
            return base if mask >> base & 1 else -1
        places = range(base, 32) if offset > 0 else range(base, -1, -1)
        found = [k for k in places if mask >> k & 1]
        return found[abs(offset) - 1] if len(found) >= abs(offset) else -1

    offsets = [0, 1, 2, 5, 32, 33, 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFE0, 0x80000000, 0x7FFFFFFF]
    if CODE == "sass":  # ptxas negates it to itself
        offsets.remove(0x80000000)
    masks = [*VALUES[32], 0xAAAAAAAA]
    values = columns(masks, [0, 1, 2, 3, 16, 31], offsets, bits=[32] * 3)
    check("fns.b32 %o, %i0, %i1, %i2;", ["u32"] * 3, "u32", reference, columns=values)


def amounts_of(bits: int) -> list[int]:
    """Positions and lengths of fields. Of 64-bit ones, ptxas's code does not take the low 8 bits."""
    return [a for a in AMOUNTS if a < 256] if CODE == "sass" and bits == 64 else AMOUNTS


@pytest.mark.parametrize("type_", ["u32", "s32", "u64", "s64"])
def test_extract_field(type_: str) -> None:
    bits = bits_of(type_)

    def reference(a: int, position: int, length: int) -> int:
        a &= (1 << bits) - 1
        position, length = position & 255, length & 255
        sign = a >> min(position + length - 1, bits - 1) & 1 if type_[0] == "s" and length else 0
        inside = [i < length and position + i < bits for i in range(bits)]
        return sum(((a >> (position + i) & 1) if inside[i] else sign) << i for i in range(bits))

    amounts = amounts_of(bits)
    values = columns(VALUES[bits], amounts, amounts, bits=[bits, 32, 32])
    check(f"bfe.{type_} %o, %i0, %i1, %i2;", [type_, "u32", "u32"], type_, reference, columns=values)


@pytest.mark.parametrize("bits", [32, 64])
def test_insert_field(bits: int) -> None:
    def reference(a: int, b: int, position: int, length: int) -> int:
        position, length = position & 255, length & 255
        for i in range(min(length, max(0, bits - position))):
            b = b & ~(1 << (position + i)) | (a >> i & 1) << (position + i)
        return b

    amounts = amounts_of(bits)
    values = columns(VALUES[bits], VALUES[bits][2:6], amounts, amounts, bits=[bits, bits, 32, 32])
    types = [f"u{bits}", f"u{bits}", "u32", "u32"]
    check(f"bfi.b{bits} %o, %i0, %i1, %i2, %i3;", types, f"u{bits}", reference, columns=values)


@pytest.mark.parametrize("type_", ["u32", "s32"])
@pytest.mark.parametrize("mode", ["clamp", "wrap"])
def test_extend(mode: str, type_: str) -> None:
    def reference(a: int, n: int) -> int:
        n = n & 31 if mode == "wrap" else min(n, 32)
        return number(a & ((1 << n) - 1), f"{type_[0]}{n}") if n else 0

    values = columns(VALUES[32], AMOUNTS, bits=[32, 32])
    check(f"szext.{mode}.{type_} %o, %i0, %i1;", [type_, "u32"], type_, reference, columns=values)


@pytest.mark.parametrize("mode", ["clamp", "wrap"])
def test_bit_mask(mode: str) -> None:
    def reference(a: int, b: int) -> int:
        a, b = (a & 31, b & 31) if mode == "wrap" else (min(a, 32), min(b, 32))
        return sum(1 << k for k in range(a, min(a + b, 32)))

    values = columns(AMOUNTS, AMOUNTS, bits=[32, 32])
    check(f"bmsk.{mode}.b32 %o, %i0, %i1;", ["u32", "u32"], "u32", reference, columns=values)


def test_permute_bytes() -> None:
    rng = np.random.default_rng(5)
    selectors = rng.integers(0, 1 << 32, 2000, np.uint64).astype(np.uint32)
    a, b = rng.integers(0, 1 << 32, (2, 2000), np.uint64).astype(np.uint32)

    def reference(x: int, y: int, selector: int) -> int:
        source = (y << 32 | x).to_bytes(8, "little")
        chosen = [selector >> (4 * k) & 15 for k in range(4)]
        return int.from_bytes(
            [(255 if source[s & 7] & 128 else 0) if s & 8 else source[s] for s in chosen], "little"
        )

    check("prmt.b32 %o, %i0, %i1, %i2;", ["u32"] * 3, "u32", reference, columns=[a, b, selectors])
    for selector in [0x3210, 0x7654, 0x5410, 0x7632, 0xFEDC, 0x0123, 0x4567, 0xBA98, 0x8888]:
        check(
            f"prmt.b32 %o, %i0, %i1, {selector};",
            ["u32"] * 2,
            "u32",
            lambda x, y, s=selector: reference(x, y, s),
            columns=[a[:200], b[:200]],
        )


PERMUTE_MODES = {
    # Bytes of b:a, lowest of the result first, for the selectors 0 to 3.
    "f4e": ["0123", "1234", "2345", "3456"],
    "b4e": ["0765", "1076", "2107", "3210"],
    "rc8": ["0000", "1111", "2222", "3333"],
    "ecl": ["0123", "1123", "2223", "3333"],
    "ecr": ["0000", "0111", "0122", "0123"],
    "rc16": ["0101", "2323", "0101", "2323"],
}


@pytest.mark.parametrize("mode", PERMUTE_MODES)
def test_permute_modes(mode: str) -> None:
    def reference(a: int, b: int, selector: int) -> int:
        source = (b << 32 | a).to_bytes(8, "little")
        return int.from_bytes([source[int(k)] for k in PERMUTE_MODES[mode][selector & 3]], "little")

    values = columns([0x13121110], [0x97969594], [0, 1, 2, 3, 4, 7, 0xFFFFFFFD], bits=[32] * 3)
    check(f"prmt.b32.{mode} %o, %i0, %i1, %i2;", ["u32"] * 3, "u32", reference, columns=values)
    for selector in range(5):
        body = f"prmt.b32.{mode} %o, %i0, %i1, {selector};"
        check(body, ["u32"] * 2, "u32", lambda a, b, s=selector: reference(a, b, s), columns=values[:2])


@pytest.mark.parametrize(
    "instruction",
    [
        "and.u32 %r0, %r1, %r2;",
        "and.b8 %r0, %r1, %r2;",
        "shl.s32 %r0, %r1, %r2;",
        "shf.l.b32 %r0, %r1, %r2, %r3;",
        "lop3.b32 %r0, %r1, %r2, %r3, 256;",
        "lop3.b32 %r0, %r1, %r2, %r3, %r3;",
        "lop3.and.b32 %r0, %r1, %r2, %r3, 1, %p;",
        "popc.u32 %r0, %r1;",
        "popc.b64 %d0, %d1;",
        "bfind.b32 %r0, %r1;",
        "bfe.b32 %r0, %r1, %r2, %r3;",
        "bmsk.b32 %r0, %r1, %r2;",
        "prmt.b32.foo %r0, %r1, %r2, %r3;",
    ],
)
def test_forms_that_do_not_exist_are_refused(instruction: str) -> None:
    registers = ".reg .b32 %r<4>; .reg .b64 %d<4>; .reg .pred %p;"
    with pytest.raises(PtxError, match=r"test\.ptx:4"):
        Device(f".visible .entry k() {{ {registers} {instruction} ret; }}")
