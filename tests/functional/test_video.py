"""Video instructions against their specification, part by part, in unlimited precision."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from simt.errors import PtxError
from support.integers import EDGES, signed
from support.ptx import CODE, Device, per_lane

rng = np.random.default_rng(3)
WORDS = [
    np.concatenate([rng.permutation(np.array(EDGES[32] * 2, np.uint32)), words]).astype(np.uint32)
    for words in rng.integers(0, 1 << 32, (3, 100), np.uint64)
]

OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "vadd": lambda a, b: a + b,
    "vsub": lambda a, b: a - b,
    "vabsdiff": lambda a, b: abs(a - b),
    "vmin": min,
    "vmax": max,
    "vavrg": lambda a, b: (a + b + int(a + b >= 0)) >> 1,
}
COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
TYPES = ["u32", "s32"]


def field(value: int, shift: int, bits: int, type_: str) -> int:
    value = value >> shift & ((1 << bits) - 1)
    return signed(value, bits) if type_ == "s32" else value


def place(selector: str) -> tuple[int, int]:
    """Lowest bit and width of .b2, .h1 or a whole word."""
    if not selector:
        return 0, 32
    size = 8 if selector[1] == "b" else 16
    return int(selector[2]) * size, size


def clamp(value: int, bits: int, type_: str) -> int:
    if type_ == "s32":
        return max(-(1 << (bits - 1)), min((1 << (bits - 1)) - 1, value))
    return max(0, min((1 << bits) - 1, value))


def finish(value: int, c: int, saturates: bool, second: str, dsel: str, type_: str) -> int:
    """Saturation, the second operation or the merge of a scalar instruction."""
    value = signed(value, 34)
    shift, bits = place(dsel)
    value = clamp(value, bits, type_) if saturates else signed(value, 33)
    if dsel:
        mask = ((1 << bits) - 1) << shift
        return (value << shift & mask) | (c & ~mask)
    other = field(c, 0, 32, type_)
    return {"": value, ".add": value + other, ".min": min(value, other), ".max": max(value, other)}[second]


def ptxas_differs(second: str, dsel: str, saturates: bool) -> bool:
    """What ptxas 12.9 makes of scalar instructions for sm_70 and later, which have none, is not what the PTX
    ISA says: it writes the upper half of the result to .h1 (PRMT 0x3254), saturates to 32 bits before it
    merges a part, and saturates, compares and adds intermediate results of 32 or 64 bits, not 33.
    """
    if CODE == "ptx":
        return False
    return dsel == ".h1" or second in (".min", ".max") or (saturates and bool(dsel or second))


def compare(body: str, reference: Callable[[int, int, int], int]) -> None:
    got = per_lane(body, *WORDS)
    for lane, (a, b, c) in enumerate(zip(*[w.tolist() for w in WORDS], strict=True)):
        expected = reference(a, b, c) & 0xFFFFFFFF
        assert int(got[lane]) == expected, (
            f"{body}: {a:#x}, {b:#x}, {c:#x}: {got[lane]:#x}, not {expected:#x}"
        )


@pytest.mark.parametrize("name", ["vadd", "vsub", "vabsdiff", "vmin", "vmax"])
def test_scalar_arithmetic(name: str) -> None:
    choice = random.Random(name)
    selectors = ["", "", ".b0", ".b1", ".b2", ".b3", ".h0", ".h1"]
    for _ in range(60):
        types = [choice.choice(TYPES) for _ in range(3)]
        asel, bsel, dsel = (choice.choice(selectors) for _ in range(3))
        second = "" if dsel else choice.choice(["", ".add", ".min", ".max"])
        saturates = choice.random() < 0.5
        if ptxas_differs(second, dsel, saturates):
            continue
        third = ", %i2" if dsel or second else ""
        sat = ".sat" if saturates else ""
        body = f"{name}.{'.'.join(types)}{sat}{second} %o{dsel}, %i0{asel}, %i1{bsel}{third};"

        def reference(
            a: int,
            b: int,
            c: int,
            types: list[str] = types,
            selectors: tuple[str, str, str] = (asel, bsel, dsel),
            rest: tuple[bool, str] = (saturates, second),
        ) -> int:
            x, y = field(a, *place(selectors[0]), types[1]), field(b, *place(selectors[1]), types[2])
            return finish(OPERATIONS[name](x, y), c, *rest, selectors[2], types[0])

        compare(body, reference)


@pytest.mark.parametrize("mode", ["clamp", "wrap"])
@pytest.mark.parametrize("name", ["vshl", "vshr"])
def test_scalar_shifts(name: str, mode: str) -> None:
    choice = random.Random(name + mode)
    for _ in range(40):
        types = [choice.choice(TYPES), choice.choice(TYPES)]
        asel, bsel, dsel = (choice.choice(["", ".b0", ".b3", ".h1"]) for _ in range(3))
        second = "" if dsel else choice.choice(["", ".add", ".min", ".max"])
        saturates = choice.random() < 0.5
        if ptxas_differs(second, dsel, saturates):
            continue
        third = ", %i2" if dsel or second else ""
        sat = ".sat" if saturates else ""
        body = f"{name}.{'.'.join(types)}.u32{sat}.{mode}{second} %o{dsel}, %i0{asel}, %i1{bsel}{third};"

        def reference(
            a: int,
            b: int,
            c: int,
            types: list[str] = types,
            selectors: tuple[str, str, str] = (asel, bsel, dsel),
            rest: tuple[bool, str] = (saturates, second),
        ) -> int:
            x, y = field(a, *place(selectors[0]), types[1]), field(b, *place(selectors[1]), "u32")
            n = y & 31 if mode == "wrap" else min(y, 32)
            return finish(x << n if name == "vshl" else x >> n, c, *rest, selectors[2], types[0])

        compare(body, reference)


@pytest.mark.parametrize("name", COMPARISONS)
def test_scalar_comparison(name: str) -> None:
    for a_type in TYPES:
        for b_type in TYPES:
            value = lambda a, b: int(COMPARISONS[name](field(a, 8, 8, a_type), field(b, 0, 16, b_type)))  # noqa: B023, E731
            head = f"vset.{a_type}.{b_type}.{name}"
            compare(f"{head} %o, %i0.b1, %i1.h0;", lambda a, b, c: value(a, b))  # noqa: B023
            compare(f"{head}.add %o, %i0.b1, %i1.h0, %i2;", lambda a, b, c: value(a, b) + c)  # noqa: B023
            if not ptxas_differs(".max", "", False):
                compare(f"{head}.max %o, %i0.b1, %i1.h0, %i2;", lambda a, b, c: max(value(a, b), c))  # noqa: B023
            merged = lambda a, b, c: (c & 0xFFFF00FF) | value(a, b) << 8  # noqa: B023, E731
            compare(f"{head} %o.b1, %i0.b1, %i1.h0, %i2;", merged)


@pytest.mark.parametrize("scale", ["", ".shr7", ".shr15"])
@pytest.mark.parametrize("saturates", ["", ".sat"])
@pytest.mark.parametrize("form", ["", "-a", "-b", "-a-b", "-c", ".po"])
def test_multiply_and_add(form: str, saturates: str, scale: str) -> None:
    for a_type in TYPES:
        for b_type in TYPES:
            if CODE == "sass" and "u32" in (a_type, b_type) and (saturates or scale):
                continue  # ptxas sign-extends unsigned factors and c to 64 bits: IMAD.WIDE, SHF.R.S32.HI
            for asel, bsel in [("", ""), (".h1", ".b2")]:
                negative = [("-" if f"-{operand}" in form else "") for operand in "abc"]
                po = form if form == ".po" else ""
                body = (
                    f"vmad.s32.{a_type}.{b_type}{po}{saturates}{scale} %o,"
                    f" {negative[0]}%i0{asel}, {negative[1]}%i1{bsel}, {negative[2]}%i2;"
                )
                negated = ("-a" in form) != ("-b" in form)
                is_signed = "s32" in (a_type, b_type) or negated or "-c" in form

                def reference(
                    a: int,
                    b: int,
                    c: int,
                    types: tuple[str, str] = (a_type, b_type),
                    selectors: tuple[str, str] = (asel, bsel),
                    negated: bool = negated,
                    is_signed: bool = is_signed,
                ) -> int:
                    product = field(a, *place(selectors[0]), types[0]) * field(
                        b, *place(selectors[1]), types[1]
                    )
                    c = ~c if "-c" in form else c
                    total = (~product if negated else product) + field(
                        c, 0, 32, "s32" if is_signed else "u32"
                    )
                    total += int(negated or "-c" in form or form == ".po")
                    total >>= {"": 0, ".shr7": 7, ".shr15": 15}[scale]
                    return clamp(total, 32, "s32" if is_signed else "u32") if saturates else total

                compare(body, reference)


def parallel(
    operation: Callable[[int, int], int],
    parts: int,
    types: list[str],
    asel: str,
    bsel: str,
    mask: set[int],
    rest: str,
) -> Callable[[int, int, int], int]:
    """An instruction on 2 or 4 parts. Selectors: the part of b:a to take, for the highest part first."""
    bits = 32 // parts

    def reference(a: int, b: int, c: int) -> int:
        both = b << 32 | a
        result = c if rest == ".add" else 0
        for k in range(parts):
            x = field(both, bits * int(asel[-1 - k]), bits, types[1])
            y = field(both, bits * int(bsel[-1 - k]), bits, types[2])
            value = operation(x, y)
            if rest == ".sat":
                value = clamp(value, bits, types[0])
            if rest == ".add":
                result += value if k in mask else 0
            else:
                result |= ((value if k in mask else c >> (bits * k)) & ((1 << bits) - 1)) << (bits * k)
        return result

    return reference


@pytest.mark.parametrize("parts", [2, 4])
@pytest.mark.parametrize("name", OPERATIONS)
def test_parallel_arithmetic(name: str, parts: int) -> None:
    choice = random.Random(f"{name}{parts}")
    letter = "b" if parts == 4 else "h"
    for round_ in range(40):
        types = [choice.choice(TYPES) for _ in range(3)]
        rest = choice.choice(["", ".sat", ".add"])
        if round_ < 10:
            shown, asel, bsel, mask = (
                ["", "", ""],
                "3210"[-parts:],
                "76543210"[-2 * parts : 8 - parts],
                set(range(parts)),
            )
        else:
            asel, bsel = ("".join(str(choice.randrange(2 * parts)) for _ in range(parts)) for _ in range(2))
            mask = {k for k in range(parts) if choice.random() < 0.6} or {0}
            shown = [
                f".{letter}{s}" for s in ("".join(str(k) for k in sorted(mask, reverse=True)), asel, bsel)
            ]
        body = f"{name}{parts}.{'.'.join(types)}{rest} %o{shown[0]}, %i0{shown[1]}, %i1{shown[2]}, %i2;"
        compare(body, parallel(OPERATIONS[name], parts, types, asel, bsel, mask, rest))


@pytest.mark.parametrize("parts", [2, 4])
@pytest.mark.parametrize("name", COMPARISONS)
def test_parallel_comparison(name: str, parts: int) -> None:
    operation = lambda a, b: int(COMPARISONS[name](a, b))  # noqa: E731
    asel, bsel = ("3210", "7654") if parts == 4 else ("10", "32")
    for a_type in TYPES:
        for b_type in TYPES:
            for rest in ("", ".add"):
                reference = parallel(
                    operation, parts, ["u32", a_type, b_type], asel, bsel, set(range(parts)), rest
                )
                compare(f"vset{parts}.{a_type}.{b_type}.{name}{rest} %o, %i0, %i1, %i2;", reference)


@pytest.mark.parametrize(
    "instruction",
    [
        "vadd.u32.u32 %r0, %r1, %r2;",
        "vadd.u32.u32.u32.add %r0.b1, %r1, %r2, %r3;",
        "vadd.u32.u32.u32 %r0, %r1.b10, %r2;",
        "vshl.u32.u32.s32.wrap %r0, %r1, %r2;",
        "vshl.u32.u32.u32 %r0, %r1, %r2;",
        "vset.u32.u32 %r0, %r1, %r2;",
        "vmad.s32.s32.s32 %r0, -%r1, %r2, -%r3;",
        "vadd4.u32.u32.u32.sat.add %r0, %r1, %r2, %r3;",
        "vadd4.u32.u32.u32 %r0, %r1.b10, %r2, %r3;",
        "vadd4.u32.u32.u32 %r0.b01, %r1, %r2, %r3;",
        "vadd4.u32.u32.u32 %r0.h10, %r1, %r2, %r3;",
        "vadd2.u32.u32.u32 %r0, %r1.h0, %r2, %r3;",
        "vadd4.u32.u32.u32 %r0, %r1, %r2;",
    ],
)
def test_forms_that_do_not_exist_are_refused(instruction: str) -> None:
    with pytest.raises(PtxError, match=r"test\.ptx:4"):
        Device(f".visible .entry k() {{ .reg .b32 %r<4>; {instruction} ret; }}")
