"""Tensor memory and tcgen05: allocation, moves, copies, and products of all kinds, against NumPy and B200."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from simt import _engine
from simt.cuda.ptxas import can_assemble
from simt.errors import CompileError, PtxError
from simt.sass.disassembler import is_installed
from support import tensor_memory as tm
from support.matrices import BITS, decode, encode, product, random_codes
from support.shared_matrices import Image, k_major, mn_major
from support.tensor_operands import A_AT, B_AT, ROOM, VERSION, k_rows, lanes_of, numbers, some_codes, words


@pytest.fixture(params=["ptx", "sass"], autouse=True)
def code(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What the kernels of a test run."""
    if request.param == "sass" and not (can_assemble("sm_100") and is_installed()):
        pytest.skip("ptxas or nvdisasm is not installed: pip install 'simt[cuda]'")
    monkeypatch.setattr(tm, "code", request.param)
    return str(request.param)


ProgramFault = _engine.functional.ProgramFault


# --- allocation -------------------------------------------------------------------------------------------


def allocate(body: str, machine: dict[str, int] = tm.B200, threads: int = 32) -> None:
    """Runs `body` in a warp; %r0 is an address in shared memory."""
    text = f""".version 8.8
.target sm_100a
.address_size 64
.shared .align 8 .b32 place[4];
.visible .entry k() {{ .reg .b32 %r<8>; .reg .b64 %l; .reg .pred %p;
mov.u32 %r0, place; mov.b64 %l, 0; {body} ret; }}"""
    tm.Device(text, target="100a", code=tm.code).run("k", block=(threads, 1, 1), machine=machine)


ALLOC = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r0], {}; ld.shared.b32 %r1, [%r0];"
FREE = "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, {};"
RELINQUISH = "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;"


TRAP = "the program stopped itself"
MISUSE = [
    (ALLOC.format(48), "48 columns, expected a power of two from 32 to 512", "value must be power of 2"),
    (ALLOC.format(16), "16 columns, expected", "value '16' out of range"),
    (ALLOC.format(32), "ends with 32 columns of tensor memory allocated; tcgen05.dealloc is missing", ""),
    (ALLOC.format(512) + ALLOC.format(32), "would wait for ever: the CTA holds 512 of 512", ""),
    (ALLOC.format(64) + FREE.format(32), "dealloc of 32 columns at 0x0, where 64 are allocated", ""),
    (ALLOC.format(64) + "add.u32 %r1, %r1, 32;" + FREE.format(32), "where no allocation begins", TRAP),
    (RELINQUISH + ALLOC.format(32), "after tcgen05.relinquish_alloc_permit", TRAP),
    (
        ALLOC.format(32) + "tcgen05.st.sync.aligned.32x32b.x2.b32 [%r1+31], {%r2, %r3};",
        "column 32 is not allocated",
        "",
    ),
    (
        ALLOC.format(32) + "tcgen05.cp.cta_group::2.4x256b [%r1], %l;",
        r"have \.cta_group::1 and \.cta_group::2; all must have the same|in a cluster of 1 CTAs",
        "",
    ),
    ("tcgen05.alloc.cta_group::2.sync.aligned.b32 [%r0], 32;", r"\.cta_group::2 in a cluster of 1 CTAs", ""),
]


@pytest.mark.parametrize(("body", "message", "in_machine_code"), MISUSE)
def test_misuse_is_a_fault(body: str, message: str, in_machine_code: str, code: str) -> None:
    """in_machine_code: where ptxas refuses the program, or makes code that finds the fault itself."""
    expected = in_machine_code if code == "sass" and in_machine_code else message
    with pytest.raises((ProgramFault, CompileError), match=expected):
        allocate(body)


def test_a_group_of_its_own_is_a_fault(code: str) -> None:
    """Machine code does not say for how many CTAs columns are deallocated."""
    if code == "sass":
        pytest.skip("machine code does not say it")
    with pytest.raises(ProgramFault, match=r"have \.cta_group::1 and \.cta_group::2; all must have the same"):
        allocate(ALLOC.format(32) + "tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r1, 32;")


def test_columns_are_used_again() -> None:
    """The kernel traps, which is a fault, at any other address than the expected one."""
    first = ALLOC.format(256) + "mov.b32 %r2, %r1;" + ALLOC.format(128) + "mov.b32 %r3, %r1;"
    allocate(
        first
        + "mov.b32 %r1, %r2;"
        + FREE.format(256)
        + ALLOC.format(64)
        + "setp.ne.u32 %p, %r1, 0; @%p trap; setp.ne.u32 %p, %r3, 256; @%p trap;"
        + FREE.format(64)
        + "mov.b32 %r1, %r3;"
        + FREE.format(128)
    )


def test_other_gpus_have_no_tensor_memory() -> None:
    with pytest.raises(ProgramFault, match="sm_120 has no tensor memory"):
        allocate(ALLOC.format(32), {"sm_version": 120})


def test_a_warp_reaches_its_own_lanes() -> None:
    body = (
        "mov.u32 %r4, %tid.x; setp.ge.u32 %p, %r4, 32; @%p bra NEXT;"
        + ALLOC.format(32)
        + "NEXT: bar.sync 0; mov.u32 %r1, 0; @!%p bra END;"
        + "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r1], {%r2}; END:"
    )
    with pytest.raises(
        ProgramFault, match="at lane 0 by warp 1, which reaches lanes 32 to 63; expected lane 32"
    ):
        allocate(body, threads=64)


# --- moves ------------------------------------------------------------------------------------------------


def position(shape: str, thread: int, r: int) -> tuple[int, int]:
    """Lane and column of a register's word, as CUTLASS's layouts (copy_traits_sm100) number bits: rows are
    64, 128 or 256 bits wide for one repetition.
    """
    if shape == "32x32b":
        return thread, r
    if shape == "16x64b":
        bit = (thread & 1) * 512 + (thread >> 1 & 1) * 32 + (thread >> 2) * 64
        return bit // 64, bit % 64 // 32 + 2 * r
    if shape == "16x128b":
        bit = thread % 4 * 32 + thread // 4 * 128 + (r & 1) * 1024
        return bit // 128, bit % 128 // 32 + 4 * (r >> 1)
    if shape == "16x256b":
        bit = thread % 4 * 64 + thread // 4 * 256 + (r & 1) * 32 + (r >> 1 & 1) * 2048
        return bit // 256, bit % 256 // 32 + 8 * (r >> 2)
    assert shape == "16x32bx2"
    return thread % 16, r + (20 if thread >= 16 else 0)


SHAPES = [("32x32b", 1), ("16x64b", 1), ("16x128b", 2), ("16x256b", 4), ("16x32bx2", 1)]


def move(
    shape: str, times: int, halves: bool, loads: bool, lane: int, columns: int = 64
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Tensor memory before and after, and the registers of warp 0, of a load or store."""
    count = dict(SHAPES)[shape] * times
    before, values = words((128, columns), 2), words((32, count), 3)
    names = "{" + ", ".join(f"%e{i}" for i in range(count)) + "}"
    offset = ", 20" if shape == "16x32bx2" else ""
    if loads:
        pack = ".pack::16b" if halves else ""
        moves = f"tcgen05.ld.sync.aligned.{shape}.x{times}{pack}.b32 {names}, [%t+{lane << 16}]{offset};"
    else:
        pack = ".unpack::16b" if halves else ""
        moves = f"tcgen05.st.sync.aligned.{shape}.x{times}{pack}.b32 [%t+{lane << 16}]{offset}, {names};"
    access = "\n".join(
        f"{'st' if loads else 'ld'}.global.b32 "
        + (f"[%g+{4 * i}], %e{i};" if loads else f"%e{i}, [%g+{4 * i}];")
        for i in range(count)
    )
    after, out = tm.run_warp(moves + access if loads else access + moves, before, values)
    return before, after, out


@pytest.mark.parametrize("halves", [False, True])
@pytest.mark.parametrize("loads", [False, True])
@pytest.mark.parametrize(("shape", "each"), SHAPES)
@pytest.mark.parametrize("times", [1, 4])
def test_moves(shape: str, each: int, times: int, loads: bool, halves: bool) -> None:
    lane = 0 if shape == "32x32b" else 16
    before, after, registers = move(shape, times, halves, loads, lane)
    expected = before.copy()
    for thread in range(32):
        for r in range(each * times):
            row, column = position(shape, thread, r)
            row += lane
            if halves:
                split = 20 if shape == "16x32bx2" and thread >= 16 else 0
                column = split + 2 * (column - split)
                if loads:
                    low, high = int(before[row, column]), int(before[row, column + 1])
                    assert registers[thread, r] == (low & 0xFFFF | high << 16) & 0xFFFFFFFF
                else:
                    expected[row, column : column + 2] = (
                        registers[thread, r] & 0xFFFF,
                        registers[thread, r] >> 16,
                    )
            elif loads:
                assert registers[thread, r] == before[row, column]
            else:
                expected[row, column] = registers[thread, r]
    np.testing.assert_array_equal(after, expected)


@pytest.mark.parametrize("shape", ["32x32b", "16x32bx2"])
@pytest.mark.parametrize("operation", ["min", "max"])
@pytest.mark.parametrize("kind", ["u32", "s32", "f32", "NaN.f32", "abs.f32", "abs.NaN.f32"])
def test_loads_with_reduction(kind: str, operation: str, shape: str) -> None:
    """The least or greatest of the words that each lane loads, as `min` and `max` of PTX have it."""
    before = words((128, 64), 4)
    before[0, :4] = before[1, 1] = 0x7FC00000  # NaN: all and some of a row
    before[2, :4] = [0x80000000, 0, 0x80000000, 0]
    least = "{%e4}" if "f32" in kind else "%e4"  # Triton writes it as a vector
    lines = f"tcgen05.ld.red.sync.aligned.{shape}.x4.{operation}.{kind} {{%e0, %e1, %e2, %e3}}, {least}, [%t]"
    lines += ", 20;" if shape == "16x32bx2" else ";"
    lines += "".join(f"st.global.b32 [%g+{4 * i}], %e{i};" for i in range(5))
    _, out = tm.run_warp(lines, before, words((32, 5), 5), target="103a")
    for lane in range(32):
        row = before[lane, :4]
        if shape == "16x32bx2":
            row = before[lane % 16, 20:24] if lane >= 16 else before[lane, :4]
        assert (out[lane, :4] == row).all()
        if not kind.endswith("f32"):
            integers = row.view(np.int32 if kind == "s32" else np.uint32)
            assert out[lane, 4] == getattr(integers, operation)().view(np.uint32)
            continue
        # Numbers in the order of their bits, in which -0 precedes +0.
        values = [int(w) & 0x7FFFFFFF if "abs" in kind else int(w) for w in row]
        numbers = [w for w in values if w & 0x7FFFFFFF <= 0x7F800000]
        order = sorted(numbers, key=lambda w: -(w & 0x7FFFFFFF) - 1 if w >> 31 else w)
        nan = not order or ("NaN" in kind and len(order) < len(values))
        assert out[lane, 4] == (0x7FFFFFFF if nan else order[0 if operation == "min" else -1])


@pytest.mark.parametrize("loads", [False, True])
@pytest.mark.parametrize(("shape", "each"), SHAPES)
def test_longest_moves(shape: str, each: int, loads: bool) -> None:
    """128 registers, or as many as leave the parts of `.16x32bx2` apart."""
    times = 16 if shape == "16x32bx2" else 128 // each
    before, after, registers = move(shape, times, False, loads, 0, columns=256)
    expected = before.copy()
    for thread in range(32):
        for r in range(each * times):
            row, column = position(shape, thread, r)
            if loads:
                assert registers[thread, r] == before[row, column]
            else:
                expected[row, column] = registers[thread, r]
    np.testing.assert_array_equal(after, expected)


# --- copies -----------------------------------------------------------------------------------------------

LANES_OF = {
    "128x256b": lambda row: [row],
    "4x256b": lambda row: [32 * row],
    "128x128b": lambda row: [row],
    "64x128b.warpx2::02_13": lambda row: [row, row + 64],
    "64x128b.warpx2::01_23": lambda row: [64 * (row // 32) + row % 32 + k for k in (0, 32)],
    "32x128b.warpx4": lambda row: [row, row + 32, row + 64, row + 96],
}


@pytest.mark.parametrize("shape", LANES_OF)
@pytest.mark.parametrize("unpacked", ["", ".b8x16.b4x16_p64", ".b8x16.b6x16_p32"])
def test_copies_from_shared_memory(shape: str, unpacked: str) -> None:
    rows, width = int(shape.split("x")[0]), 32 if "256b" in shape else 16
    raw = np.random.default_rng(4).integers(0, 256, (max(rows, 8), width), np.uint8)
    image = Image(ROOM)
    image.put_bytes(raw, 0, "none")
    place = len(raw) * 16 >> 4 << 16 | 128 >> 4 << 32 | VERSION
    before = words((128, 32), 5)
    found = tm.run(
        tm.here(0) + f"tcgen05.cp.cta_group::1.{shape}{unpacked} [%t+4], %v0;", image, before, [place]
    )
    if unpacked:
        bits, shift = (4, 2) if "b4" in unpacked else (6, 0)
        chunks = np.unpackbits(raw.reshape(-1, 16), axis=1, bitorder="little")[:, : 16 * bits]
        codes = chunks.reshape(-1, 16, bits) @ (1 << np.arange(bits))
        raw = (codes << shift).astype(np.uint8).reshape(raw.shape)
    expected = before.copy()
    for row in range(rows):
        for lane in LANES_OF[shape](row):
            expected[lane, 4 : 4 + width // 4] = raw[row].view(np.uint32)
    np.testing.assert_array_equal(found, expected)


# --- products ---------------------------------------------------------------------------------------------


def mma(form: str, a: str, values: int, tail: str = "%q") -> str:
    """One product of operand `a` (%v0 or a place in tensor memory) and %v1 by the descriptor %v2."""
    return tm.here(values) + f"cvt.u32.u64 %r0, %v2; tcgen05.mma{form} [%t], {a}, %v1, %r0, {tail};"


def multiply(
    codes_a: np.ndarray,
    codes_b: np.ndarray,
    before: np.ndarray,
    types: tuple[str, str, str],
    machine: dict[str, int] = tm.EXACT,
    form: str = "",
    tail: str = "%q",
    columns: int | None = None,
    mask: int = 0,
    **instruction: object,
) -> np.ndarray:
    """D's codes. codes_a: m x k, codes_b: k x n, or more than `columns`. mask: %v3."""
    d, a, b = types
    (m, _), n = codes_a.shape, columns or codes_b.shape[1]
    image = Image(ROOM)
    left, right = k_rows(image, codes_a, a, A_AT), k_rows(image, codes_b.T, b, B_AT)
    word = tm.instruction(m, n, a, b, d, **instruction)  # type: ignore[arg-type]
    place = lanes_of(m, n, ws="ws" in form)
    memory = words((128, max(32, n)), 6)
    memory[place[..., 1], place[..., 2]] = before
    body = mma(f"{form}.cta_group::1.kind::{tm.KINDS[a][0]}", "%v0", 2, tail)
    values = [left, right, word] + ([mask] if "%v3" in tail else [])
    found = tm.run(body, image, memory, values, machine=machine)
    result = found[place[..., 1], place[..., 2]]
    found[place[..., 1], place[..., 2]] = memory[place[..., 1], place[..., 2]]
    np.testing.assert_array_equal(found, memory)  # nothing else was written
    return result


def wanted(a: np.ndarray, b: np.ndarray, before: np.ndarray, types: tuple[str, str, str]) -> np.ndarray:
    d, ta, tb = types
    return encode(product(numbers(a, ta), numbers(b, tb), decode(before, d)), d)


TYPES = [
    ("f32", "f16", "f16"),
    ("f16", "f16", "f16"),
    ("f32", "bf16", "bf16"),
    ("f32", "tf32", "tf32"),
    ("f32", "e4m3", "e5m2"),
    ("f16", "e5m2", "e4m3"),
    ("f32", "e2m3", "e3m2"),
    ("f32", "e2m1", "e4m3"),
    ("s32", "s8", "u8"),
    ("s32", "u8", "s8"),
]


@pytest.mark.parametrize("m", [64, 128])
@pytest.mark.parametrize("types", TYPES, ids=".".join)
def test_kinds(types: tuple[str, str, str], m: int) -> None:
    d, a, b = types
    k, n = tm.step_of(a), 16
    rng = np.random.default_rng(m)
    codes_a, codes_b = some_codes(rng, a, (m, k)), some_codes(rng, b, (k, n))
    before = random_codes(rng, d, (m, n), 3)
    np.testing.assert_array_equal(
        multiply(codes_a, codes_b, before, types), wanted(codes_a, codes_b, before, types)
    )


@pytest.mark.parametrize("m", [32, 64, 128])
def test_weight_stationary_products(m: int) -> None:
    rng = np.random.default_rng(m)
    codes_a, codes_b = random_codes(rng, "f16", (m, 16), 3), random_codes(rng, "f16", (16, 64), 3)
    before, types = random_codes(rng, "f32", (m, 64), 3), ("f32", "f16", "f16")
    found = multiply(codes_a, codes_b, before, types, form=".ws")
    np.testing.assert_array_equal(found, wanted(codes_a, codes_b, before, types))


def zero_columns(
    starts: tuple[int, ...], firsts: tuple[int, ...], skip: int, use: int, shift: int = 0, masks: int = 1
) -> int:
    """A zero-column mask descriptor. starts, firsts: from part 0 on."""
    word = masks << 39 | skip << 40 | use << 48 | shift << 56
    for part, (start, first) in enumerate(zip(starts, firsts, strict=True)):
        word |= start << 8 * part | first << (32 + part)
    return word


@pytest.mark.parametrize(
    ("m", "descriptor", "patterns"),
    [
        (128, zero_columns((0,), (0,), 4, 3, masks=0), ["0"]),
        (128, zero_columns((0,), (0,), 2, 3), ["111 0000 111 0000"]),
        (64, zero_columns((0, 0), (1, 0), 2, 3), ["111 0000 111 0000 111", "0000 111 0000 111 0000"]),
        (
            32,
            zero_columns((0, 1, 2, 1), (1, 1, 0, 0), 2, 3, 2),
            ["0000 111 0000 111", "0000 111 0000 11", "111 0000 111 00", "111 0000 111 000"],
        ),
    ],
)
def test_columns_of_zeros(m: int, descriptor: int, patterns: list[str]) -> None:
    """The examples of the PTX ISA, which write column 0 last; the last one begins at column 2 of B."""
    n, shift = 128, descriptor >> 56
    rng = np.random.default_rng(m)
    codes_a, codes_b = random_codes(rng, "f16", (m, 16), 3), random_codes(rng, "f16", (16, n + 8), 3)
    before, types = random_codes(rng, "f32", (m, n), 3), ("f32", "f16", "f16")
    found = multiply(
        codes_a, codes_b, before, types, form=".ws", tail="%q, %v3", columns=n, mask=descriptor, most_shift=1
    )
    used = codes_b[:, shift : shift + n].copy()
    width = n // len(patterns)
    for part, pattern in enumerate(patterns):
        # The published bits, and the same again after a period of seven.
        bits = pattern.replace(" ", "")[::-1]
        for column in range(width):
            at = column if column < len(bits) else len(bits) - 7 + (column - len(bits)) % 7
            if len(bits) > 1 and bits[at] == "1":
                used[:, part * width + column] = 0
    np.testing.assert_array_equal(found, wanted(codes_a, used, before, types))


@pytest.mark.parametrize(
    ("descriptor", "message"),
    [
        (zero_columns((0,), (0,), 2, 3, 9), "shifts columns by 9, expected 8 at most"),
        (zero_columns((4,), (0,), 2, 3), "skips the whole first span"),
    ],
)
def test_zero_column_masks_that_do_not_fit(descriptor: int, message: str) -> None:
    codes = np.zeros((128, 16), np.uint32), np.zeros((16, 64), np.uint32)
    before, types = np.zeros((128, 64), np.uint32), ("f32", "f16", "f16")
    with pytest.raises(ProgramFault, match=message):
        multiply(*codes, before, types, form=".ws", tail="%q, %v3", mask=descriptor, most_shift=1)


def test_what_the_instruction_says_of_d() -> None:
    """Without its input, scaled, and some lanes not written."""
    rng = np.random.default_rng(8)
    codes_a, codes_b = random_codes(rng, "f16", (128, 16), 3), random_codes(rng, "f16", (16, 16), 3)
    before, types = random_codes(rng, "f32", (128, 16), 3), ("f32", "f16", "f16")
    nothing, plain = np.zeros_like(before), wanted(codes_a, codes_b, before, types)
    found = multiply(codes_a, codes_b, before, types, tail="!%q")
    np.testing.assert_array_equal(found, wanted(codes_a, codes_b, nothing, types))
    found = multiply(codes_a, codes_b, before, types, tail="%q, 3")
    eighth = encode(decode(before, "f32") / 8, "f32")
    np.testing.assert_array_equal(found, wanted(codes_a, codes_b, eighth, types))
    lanes = "mov.b32 %r1, 0; mov.b32 %r2, 5;"
    image, n = Image(ROOM), 32
    left, right = k_rows(image, codes_a, "f16", A_AT), k_rows(image, np.tile(codes_b, 2).T, "f16", B_AT)
    body = lanes + mma(".cta_group::1.kind::f16", "%v0", 2, "{%r1, %r2, %r1, %r1}, %q")
    memory = np.tile(before, 2)
    out = tm.run(body, image, memory, [left, right, tm.instruction(128, n, "f16", "f16")])
    expected = np.tile(plain, 2)
    expected[[32, 34]] = memory[[32, 34]]
    np.testing.assert_array_equal(out, expected)


def test_negated_and_saturated() -> None:
    rng = np.random.default_rng(9)
    codes_a, codes_b = random_codes(rng, "f16", (64, 16), 3), random_codes(rng, "f16", (16, 8), 3)
    before, types = random_codes(rng, "f32", (64, 8), 3), ("f32", "f16", "f16")
    for negate in ((True, False), (False, True), (True, True)):
        a = codes_a ^ 0x8000 if negate[0] != negate[1] else codes_a
        found = multiply(codes_a, codes_b, before, types, negate=negate)
        np.testing.assert_array_equal(found, wanted(a, codes_b, before, types))
    codes_a, codes_b = random_codes(rng, "s8", (64, 32)), random_codes(rng, "s8", (32, 16))
    limits = np.where(np.arange(16) % 2, 0x7FFFFFFF, 0x80000000) * np.ones((64, 1), np.uint32)
    exact = product(decode(codes_a, "s8"), decode(codes_b, "s8"), decode(limits.astype(np.uint32), "s32"))
    for saturate in (False, True):
        found = multiply(codes_a, codes_b, limits.astype(np.uint32), ("s32", "s8", "s8"), saturate=saturate)
        np.testing.assert_array_equal(found, encode(exact, "s32", saturate=saturate))


@pytest.mark.parametrize("type_", ["f16", "tf32", "e4m3"])
@pytest.mark.parametrize("swizzle", ["32", "64", "128"])
def test_swizzled_operands_along_k(type_: str, swizzle: str) -> None:
    step = tm.step_of(type_)
    rng = np.random.default_rng(10)
    codes_a, codes_b = (
        random_codes(rng, type_, (64, 4 * step), 3),
        random_codes(rng, type_, (4 * step, 16), 3),
    )
    image, d = Image(ROOM), "f32"
    left = k_major(image, codes_a, type_, A_AT, swizzle)
    right = k_major(image, codes_b.T, type_, B_AT, swizzle)
    values, total = [v | VERSION for v in left + right], np.zeros((64, 16), np.uint32)
    body = tm.here(8) + "cvt.u32.u64 %r0, %v8; setp.ne.u32 %q, 0, 0;"
    for i in range(4):
        kind = tm.KINDS[type_][0]
        body += (
            f"tcgen05.mma.cta_group::1.kind::{kind} [%t], %v{i}, %v{4 + i}, %r0, %q; setp.eq.u32 %q, 0, 0;"
        )
        part = slice(i * step, (i + 1) * step)
        total = wanted(codes_a[:, part], codes_b[part], total, (d, type_, type_))
    out = tm.run(body, image, words((128, 32)), [*values, tm.instruction(64, 16, type_, type_)])
    place = lanes_of(64, 16)
    np.testing.assert_array_equal(out[place[..., 1], place[..., 2]], total)


@pytest.mark.parametrize("type_", ["bf16", "e5m2", "u8"])
@pytest.mark.parametrize("swizzle", ["none", "32", "64", "128"])
def test_transposed_operands(type_: str, swizzle: str) -> None:
    k, d = tm.step_of(type_), "s32" if type_ == "u8" else "f32"
    rng = np.random.default_rng(11)
    codes_a, codes_b = random_codes(rng, type_, (128, k), 3), random_codes(rng, type_, (k, 128), 3)
    image = Image(ROOM)
    left = mn_major(image, codes_a.T, type_, A_AT, swizzle, k)[0] | VERSION
    right = mn_major(image, codes_b, type_, B_AT, swizzle, k)[0] | VERSION
    word = tm.instruction(128, 128, type_, type_, d, transpose=(True, True))
    zero = np.zeros((128, 128), np.uint32)
    out = tm.run(mma(f".cta_group::1.kind::{tm.KINDS[type_][0]}", "%v0", 2), image, zero, [left, right, word])
    np.testing.assert_array_equal(out, wanted(codes_a, codes_b, zero, (d, type_, type_)))


def test_transposed_tf32_has_atoms_of_32_bytes() -> None:
    rng = np.random.default_rng(12)
    codes_a, codes_b = random_codes(rng, "tf32", (128, 8), 3), random_codes(rng, "tf32", (8, 32), 3)
    image = Image(ROOM)

    def place(lines: np.ndarray, start: int) -> int:
        """Lines of one k, in patterns of four lines of 128 bytes whose columns of 32 bytes are exchanged."""
        boxes = lines.shape[1] // 32
        raw = np.ascontiguousarray(lines.astype(np.uint32)).view(np.uint8)
        for k in range(8):
            for column in range(4 * boxes):
                box, c = divmod(column, 4)
                at = start + box * 1024 + k * 128 + (c ^ k % 4) * 32
                image.bytes[at : at + 32] = raw[k, 32 * column : 32 * column + 32]
        return start >> 4 | 1024 >> 4 << 16 | 512 >> 4 << 32 | 1 << 61 | VERSION

    left, right = place(codes_a.T, A_AT), place(codes_b, B_AT)
    zero = np.zeros((128, 32), np.uint32)
    word = tm.instruction(128, 32, "tf32", "tf32", transpose=(True, True))
    out = tm.run(mma(".cta_group::1.kind::tf32", "%v0", 2), image, zero, [left, right, word])
    np.testing.assert_array_equal(out, wanted(codes_a, codes_b, zero, ("f32", "tf32", "tf32")))


@pytest.mark.parametrize("m", [64, 128])
@pytest.mark.parametrize("type_", ["f16", "tf32", "s8", "e3m2", "e2m1"])
def test_a_in_tensor_memory(type_: str, m: int) -> None:
    k, d, n = tm.step_of(type_), "s32" if type_ == "s8" else "f32", 16
    rng = np.random.default_rng(13)
    codes_a, codes_b = some_codes(rng, type_, (m, k)), some_codes(rng, type_, (k, n))
    image = Image(ROOM)
    right = k_rows(image, codes_b.T, type_, B_AT)
    size = max(1, BITS.get(type_, 8) // 8)
    raw = codes_a << 2 if type_ == "e2m1" else codes_a  # 4 bits are in the middle of a byte
    packed = np.ascontiguousarray(raw.astype({1: np.uint8, 2: np.uint16, 4: np.uint32}[size])).view(np.uint32)
    place = lanes_of(m, n)
    memory = np.zeros((128, 32), np.uint32)
    memory[place[:, 0, 1], 16:24] = packed
    body = mma(f".cta_group::1.kind::{tm.KINDS[type_][0]}", "[%t+16]", 2)
    out = tm.run(body, image, memory, [0, right, tm.instruction(m, n, type_, type_, d)])
    zero = np.zeros((m, n), np.uint32)
    expected = wanted(codes_a, codes_b, zero, (d, type_, type_))
    np.testing.assert_array_equal(out[place[..., 1], place[..., 2]], expected)


@pytest.mark.parametrize("m", [128, 256])
def test_two_ctas(m: int) -> None:
    """Each has half of A's rows and of B's columns; B is shared."""
    n = 64
    rng = np.random.default_rng(14)
    codes_a, codes_b = random_codes(rng, "f16", (m, 16), 3), random_codes(rng, "f16", (16, n), 3)
    before = random_codes(rng, "f32", (m, n), 3)
    images = [Image(ROOM), Image(ROOM)]
    for rank, image in enumerate(images):
        left = k_rows(image, codes_a[rank * m // 2 : (rank + 1) * m // 2], "f16", A_AT)
        right = k_rows(image, codes_b[:, rank * n // 2 : (rank + 1) * n // 2].T, "f16", B_AT)
    place = lanes_of(m, n, group=2)
    memory = words((2, 128, n))
    memory[place[..., 0], place[..., 1], place[..., 2]] = before
    word = tm.instruction(m, n, "f16", "f16")
    body = mma(".cta_group::2.kind::f16", "%v0", 2)
    out = tm.run(body, images[0], memory, [left, right, word], group=2, images=images)
    found = out[place[..., 0], place[..., 1], place[..., 2]]
    np.testing.assert_array_equal(found, wanted(codes_a, codes_b, before, ("f32", "f16", "f16")))


# --- arithmetic to the bit --------------------------------------------------------------------------------


@pytest.mark.parametrize("types", [t for t in TYPES if t[0] != "s32"], ids=".".join)
def test_adds_as_a_b200(types: tuple[str, str, str]) -> None:
    d, a, b = types
    k = tm.step_of(a)
    rng = np.random.default_rng(15)
    codes_a, codes_b = some_codes(rng, a, (64, k), 8), some_codes(rng, b, (k, 8), 8)
    codes_a[::3, ::2] = 0
    before = random_codes(rng, d, (64, 8), 8)
    found = multiply(codes_a, codes_b, before, types, machine=tm.B200)
    expected = [
        [tm.dot(codes_a[i], codes_b[:, j], int(before[i, j]), (a, b), d) for j in range(8)] for i in range(64)
    ]
    np.testing.assert_array_equal(found, np.array(expected, np.uint32))


def test_zeros_do_not_choose_the_window() -> None:
    """Of tiny products beside a zero times a huge number, nothing is cut off."""
    a, b = np.zeros((64, 8), np.uint32), np.zeros((8, 8), np.uint32)
    tiny, huge = 0x0F000000, 0x7E000000  # 2^-97, 2^125
    a[:, 0], b[0], b[1] = 0x3F800000, tiny, huge
    before = np.zeros((64, 8), np.uint32)
    found = multiply(a, b, before, ("f32", "tf32", "tf32"), machine=tm.B200)
    np.testing.assert_array_equal(found, np.full_like(before, tiny))


def finite_f32(rng: random.Random) -> int:
    bits = rng.getrandbits(32)
    return bits & 0x807FFFFF if bits & 0x7F800000 == 0x7F800000 else bits


# Words that a B200 returned (sf-tensor/tcgen05, frozen vectors): type, K, seed of Python's generator, how
# each element is drawn, results of consecutive cases (A's row, B's column, C).
UNSCALED = [
    ("tf32", 8, 104, finite_f32, (0xFF800000, 0xFC347E7C)),
    ("bf16", 16, 104, finite_f32, (0x7F800000, 0x7F800000)),
    ("f16", 16, 103, lambda rng: rng.getrandbits(16), (0x7FFFFFFF, 0x49776BBA)),
    ("e4m3", 32, 104, lambda rng: rng.randrange(0x7F), (0xEC63D12A, 0x452AF963)),
    ("e5m2", 32, 300, lambda rng: rng.randrange(0x7C), (0x4D92B09A, 0x4C9C1102)),
    ("e2m3", 32, 301, lambda rng: rng.randrange(0x40), (0xC29DD800, 0x449D14C1)),
    ("e3m2", 32, 302, lambda rng: rng.randrange(0x40), (0x52C9EC63, 0xC33B7700)),
    ("e2m1", 32, 303, lambda rng: rng.randrange(0x10), (0xC1FE0000, 0xDC3B62A3)),
]


@pytest.mark.parametrize(("type_", "k", "seed", "draw", "results"), UNSCALED, ids=[x[0] for x in UNSCALED])
def test_words_of_a_b200(type_: str, k: int, seed: int, draw: object, results: Sequence[int]) -> None:
    rng = random.Random(seed)
    for result in results:
        a, b = ([draw(rng) for _ in range(k)] for _ in range(2))  # type: ignore[operator]
        c = finite_f32(rng)
        shift = 16 if type_ == "bf16" else 0
        codes_a = np.tile(np.array(a, np.uint32) >> shift, (64, 1))
        codes_b = np.tile(np.array(b, np.uint32)[:, None] >> shift, (1, 8))
        before = np.full((64, 8), c, np.uint32)
        found = multiply(codes_a, codes_b, before, ("f32", type_, type_), machine=tm.B200)
        assert {int(x) for x in found.ravel()} == {result}
        if not any(np.isnan(numbers(codes_a[:1], type_)).ravel()):
            assert tm.dot(codes_a[0], codes_b[:, 0], c, (type_, type_)) == result


INTEGERS = [
    ("u8", "u8", False, 500, 0x078A5C64),
    ("s8", "u8", False, 501, 0xF66E2FA6),
    ("u8", "s8", False, 502, 0xD73F1A46),
    ("s8", "s8", True, 503, 0x8063D12F),
    ("s8", "s8", False, 504, 0xA4679E93),
    ("u8", "u8", True, 505, 0x55DB8BB8),
]


@pytest.mark.parametrize(("a", "b", "saturate", "seed", "result"), INTEGERS)
def test_integers_of_a_b200(a: str, b: str, saturate: bool, seed: int, result: int) -> None:
    rng = random.Random(seed)
    x, y = ([rng.randrange(256) for _ in range(32)] for _ in range(2))
    codes_a, codes_b = np.tile(np.array(x, np.uint32), (64, 1)), np.tile(np.array(y, np.uint32)[:, None], 16)
    before = np.full((64, 16), finite_f32(rng), np.uint32)
    found = multiply(codes_a, codes_b, before, ("s32", a, b), machine=tm.B200, saturate=saturate)
    assert {int(v) for v in found.ravel()} == {result}


# --- scale factors ----------------------------------------------------------------------------------------


def scaled(
    kind: str,
    vector: str,
    codes: tuple[np.ndarray, np.ndarray],
    scales: tuple[np.ndarray, np.ndarray],
    before: np.ndarray,
    types: tuple[str, str],
    exponents_only: bool = True,
    ids: tuple[int, int] = (0, 0),
    machine: dict[str, int] = tm.B200,
) -> np.ndarray:
    """codes: A m x k, B k x n. scales: m x count, n x count, as codes."""
    a, b = codes
    nibbles = kind != "mxf8f6f4"
    image = Image(ROOM)
    if nibbles:

        def place(rows: np.ndarray, start: int) -> int:
            image.put_bytes((rows[:, 0::2] | rows[:, 1::2] << 4).astype(np.uint8), start, "none")
            return start >> 4 | len(rows) << 16 | 128 >> 4 << 32 | VERSION

        left, right = place(a, A_AT), place(b.T, B_AT)
    else:
        left, right = k_rows(image, a, types[0], A_AT), k_rows(image, b.T, types[1], B_AT)
    n = b.shape[1]
    memory = words((128, 64 + max(32, n)), 7)
    memory[:, :n] = before
    for lines, first, at in ((scales[0], ids[0], n), (scales[1], ids[1], n + 16)):
        for line, factors in enumerate(lines):
            for k, code in enumerate(factors):
                shift = 8 * (first + k)
                for lane in range(line % 32, 128, 32):
                    word = int(memory[lane, at + line // 32]) & ~(0xFF << shift)
                    memory[lane, at + line // 32] = word | int(code) << shift
    word = tm.scaled_instruction(128, n, *types, nibbles, exponents_only, ids)
    form = f".cta_group::1.kind::{kind}.block_scale.scale_vec::{vector}"
    body = tm.here(2) + (
        f"cvt.u32.u64 %r0, %v2; tcgen05.mma{form} [%t], %v0, %v1, %r0, [%t+{n}], [%t+{n + 16}], %q;"
    )
    memory = np.pad(memory, ((0, 0), (0, -memory.shape[1] % 32)))
    out = tm.run(body, image, memory, [left, right, word], machine=machine)
    return out[:, :n]


def scale_number(code: int, exponents_only: bool) -> Fraction:
    return Fraction(2) ** (code - 127) if exponents_only else Fraction(tm.number(code & 0x7F, "e4m3")[0])


@pytest.mark.parametrize(
    ("kind", "vector", "exponents_only", "types", "ids"),
    [
        ("mxf8f6f4", "1X", True, ("e4m3", "e4m3"), (0, 0)),
        ("mxf8f6f4", "1X", True, ("e2m1", "e5m2"), (3, 1)),
        ("mxf8f6f4", "1X", True, ("e3m2", "e2m3"), (2, 0)),
        ("mxf4", "2X", True, ("e2m1", "e2m1"), (2, 0)),
        ("mxf4nvf4", "2X", True, ("e2m1", "e2m1"), (0, 2)),
        ("mxf4nvf4", "4X", True, ("e2m1", "e2m1"), (0, 0)),
        ("mxf4nvf4", "4X", False, ("e2m1", "e2m1"), (0, 0)),
    ],
)
def test_block_scaled_kinds(
    kind: str, vector: str, exponents_only: bool, types: tuple[str, str], ids: tuple[int, int]
) -> None:
    """Against exact sums: terms are cut off at least 25 bits below the largest."""
    count, k, n = int(vector[0]), 32 if kind == "mxf8f6f4" else 64, 40
    rng = np.random.default_rng(16)
    a, b = some_codes(rng, types[0], (128, k), 1), some_codes(rng, types[1], (k, n), 1)
    low, high = (124, 131) if exponents_only else (0x30, 0x48)
    scales = rng.integers(low, high, (128, count)), rng.integers(low, high, (n, count))
    before = np.zeros((128, n), np.uint32)
    found = scaled(kind, vector, (a, b), scales, before, types, exponents_only, ids)
    block = k // count
    for i in range(0, 128, 9):
        for j in range(n):
            terms = []
            for x in range(k):
                terms.append(
                    Fraction(tm.number(int(a[i, x]), types[0])[0])
                    * Fraction(tm.number(int(b[x, j]), types[1])[0])
                    * scale_number(int(scales[0][i, x // block]), exponents_only)
                    * scale_number(int(scales[1][j, x // block]), exponents_only)
                )
            exact, value = sum(terms), Fraction(float(found[i, j : j + 1].view(np.float32)[0]))
            unit = max(map(abs, terms)) * Fraction(2) ** -24
            assert abs(value - exact) <= abs(exact) / 2**23 + k * unit, (i, j)


def test_scaled_words_of_a_b200() -> None:
    def case(kind, vector, a, b, c, sa, sb, exponents_only, result):  # type: ignore[no-untyped-def]
        codes = np.tile(np.array(a, np.uint32), (128, 1)), np.tile(np.array(b, np.uint32)[:, None], 16)
        factors = np.tile(np.array(sa), (128, 1)), np.tile(np.array(sb), (16, 1))
        before = np.full((128, 16), c, np.uint32)
        found = scaled(kind, vector, codes, factors, before, ("e2m1", "e2m1"), exponents_only)
        assert {int(x) for x in found.ravel()} == {result}, (kind, vector)

    rng = random.Random(700)
    for result in (0x4429730B, 0xC30545D3):
        a, b = ([rng.randrange(16) for _ in range(64)] for _ in range(2))
        c = finite_f32(rng)
        sa, sb = ([rng.randrange(0x77) for _ in range(4)] for _ in range(2))
        case("mxf4nvf4", "4X", a, b, c, sa, sb, False, result)
    rng = random.Random(910)
    a, b = ([rng.randrange(16) for _ in range(32)] for _ in range(2))
    case("mxf8f6f4", "1X", a, b, 0, [rng.randrange(115, 140)], [rng.randrange(115, 140)], True, 0x3F094000)
    for kind, count, seed, result in (
        ("mxf4", 2, 920, 0x46BA8000),
        ("mxf4nvf4", 2, 921, 0x40580000),
        ("mxf4nvf4", 4, 922, 0xC6A88896),
    ):
        rng = random.Random(seed)
        a, b = ([rng.randrange(16) for _ in range(64)] for _ in range(2))
        sa, sb = ([rng.randrange(115, 140) for _ in range(count)] for _ in range(2))
        case(kind, f"{count}X", a, b, 0, sa, sb, True, result)
    # One quantum below a boundary of f32 unless products are first added by fours.
    a = bytes.fromhex(
        "0e0e0b0600080f090a0b03090f070e00020601050a080604070c060b010c060d"
        "0b0b08060c080c050004010f01060f05020406050a070b0700010a0d0b0f0e07"
    )
    b = bytes.fromhex(
        "060c0b0208090b04030d0209090c010807020603 0d02090a05090f050a080600"
        "080d0d020c0c05020803040f0f01010a0b0a050b0f030b0e0a0507010107080a".replace(" ", "")
    )
    sa, sb = (0x09, 0x7C, 0x6D, 0x44), (0x07, 0x78, 0x26, 0x79)
    case("mxf4nvf4", "4X", list(a), list(b), 0x094E5986, sa, sb, False, 0x49FCAFB7)
    case("mxf4nvf4", "4X", [1] * 64, [1] * 64, 0, (0x7F, 56, 56, 56), (56,) * 4, False, 0x7FFFFFFF)
    case("mxf8f6f4", "1X", [1] * 32, [1] * 32, 0, (0xFF,), (127,), True, 0x7FFFFFFF)


# --- what is refused --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "message"),
    [
        (tm.instruction(128, 24, "f16", "f16"), "M = 128 and N = 24, which this kind does not have"),
        (tm.instruction(96, 16, "f16", "f16"), "M = 96"),
        (tm.instruction(128, 16, "tf32", "tf32"), "2 as the type of A or B"),
        (tm.instruction(128, 16, "f16", "bf16"), "A and B of different types"),
    ],
)
def test_instruction_descriptors_that_do_not_fit(word: int, message: str, code: str) -> None:
    if code == "sass" and "2 as the type" in message:
        pytest.skip("in machine code, the type decides between .kind::f16 and .kind::tf32")
    with pytest.raises(ProgramFault, match=message):
        tm.run(mma(".cta_group::1.kind::f16", "%v0", 2), Image(ROOM), words((128, 32)), [0, 0, word])


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("tcgen05.shift.cta_group::1 [%t];", r"`\.down` is missing"),
        ("tcgen05.mma.cta_group::1.kind::f16.ashift [%t], %v0, %v0, %r0, %q;", r"`\.ashift` with"),
        (
            "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale [%t], %v0, %v0, %r0, [%t], [%t], %q;",
            "scale_vec",
        ),
        ("tcgen05.mma.cta_group::1.kind::i8 [%t], %v0, %v0, %r0, %q, 1;", "scale-input-d"),
        ("tcgen05.cp.cta_group::1.32x128b [%t], %v0;", r"\.32x128b needs \.warpx4"),
    ],
)
def test_what_is_not_executed_is_refused_by_name(body: str, message: str) -> None:
    with pytest.raises(PtxError, match=message):
        tm.run(body, Image(ROOM), words((128, 32)), [0])
