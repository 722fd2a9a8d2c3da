"""wmma.load, wmma.mma, wmma.store: of all shapes, types and layouts, between matrices in memory."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from simt import _engine
from simt.errors import PtxError
from support import tensor_cores
from support.matrices import (
    BITS,
    EXACT,
    a_position,
    b_position,
    c_position,
    decode,
    encode,
    product,
    random_codes,
    shape_of,
)
from support.ptx import CODE, Device, ptx_only

BYTE_SHAPES = ("m16n16k16", "m32n8k16", "m8n32k16")
# shape, type of d, of a and b, of c
CASES = [
    *[(s, d, "f16", c) for s in BYTE_SHAPES for d in ("f16", "f32") for c in ("f16", "f32")],
    *[(s, "f32", "bf16", "f32") for s in BYTE_SHAPES],
    *[(s, "s32", t, "s32") for s in BYTE_SHAPES for t in ("s8", "u8")],
    ("m16n16k8", "f32", "tf32", "f32"),
    ("m8n8k4", "f64", "f64", "f64"),
    ("m8n8k32", "s32", "s4", "s32"),
    ("m8n8k32", "s32", "u4", "s32"),
    ("m8n8k128", "s32", "b1", "s32"),
]


def registers(type_: str, elements: int, multiplicand: bool) -> int:
    if multiplicand and type_ == "f16":
        return 8
    return elements * min(32, BITS[type_]) // 1024


def to_memory(codes: np.ndarray, type_: str, layout: str, stride: int | None) -> np.ndarray:
    """Bytes of a matrix with lines `stride` elements apart; gaps are 0xEE."""
    lines = codes if layout == "row" else codes.T
    bits = BITS[type_]
    width = stride or lines.shape[1]
    if bits < 8:
        flat = np.full((len(lines), width), 0xE & ((1 << bits) - 1), np.uint8)
        flat[:, : lines.shape[1]] = lines
        one_bits = (flat[:, :, None] >> np.arange(bits, dtype=np.uint8)) & 1
        return np.packbits(one_bits.reshape(len(lines), -1), axis=1, bitorder="little")
    dtype = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}[bits]
    result = np.full((len(lines), width * bits // 8), 0xEE, np.uint8)
    result[:, : lines.shape[1] * bits // 8] = np.ascontiguousarray(lines.astype(dtype)).view(np.uint8)
    return result


def from_memory(memory: np.ndarray, type_: str, layout: str, shape: tuple[int, int]) -> np.ndarray:
    dtype = {16: np.uint16, 32: np.uint32, 64: np.uint64}[BITS[type_]]
    lines = memory.view(dtype)
    matrix = lines[:, : shape[1]] if layout == "row" else lines[:, : shape[0]].T
    rest = memory[:, (shape[1] if layout == "row" else shape[0]) * BITS[type_] // 8 :]
    assert (rest == 0xEE).all()
    return matrix.astype(np.uint64 if type_ == "f64" else np.uint32)


def run(
    case: tuple[str, str, str, str],
    codes: tuple[np.ndarray, np.ndarray, np.ndarray],
    layouts: tuple[str, str, str] = ("row", "col", "row"),
    pad: int | None = None,
    shared: bool = False,
    modifier: str = "",
    machine: dict[str, int] = EXACT,
) -> np.ndarray:
    """Loads A, B and C, multiplies, stores D in C's layout, returns D's codes. pad: gap between lines."""
    shape, d, ab, c = case
    m, n, k = shape_of(shape)
    sizes = {"a": (m, k), "b": (k, n), "c": (m, n), "d": (m, n)}
    types = {"a": ab, "b": ab, "c": c, "d": d}
    layout = dict(zip("abcd", (*layouts, layouts[2]), strict=True))
    stride = {
        p: None if pad is None else (sizes[p][1] if layout[p] == "row" else sizes[p][0]) + pad for p in "abcd"
    }
    values = dict(zip("abc", codes, strict=True)) | {"d": np.zeros((m, n), np.uint64)}
    memory = {p: to_memory(values[p], types[p], layout[p], stride[p]) for p in "abcd"}
    count = {p: registers(types[p], sizes[p][0] * sizes[p][1], p in "ab") for p in "abcd"}
    vectors = {p: "{" + ", ".join(f"%{p}{i}" for i in range(count[p])) + "}" for p in "abcd"}
    operation = ".xor.popc" if ab == "b1" else ""
    lines = [".visible .entry k(" + ", ".join(f".param .b64 p{p}" for p in "abcd") + ") {"]
    lines += [".reg .b64 %at<4>; .reg .b32 %stride;"]
    lines += [f".reg .b{max(32, BITS[types[p]])} %{p}<{count[p]}>;" for p in "abcd"]
    lines += [f"ld.param.b64 %at{i}, [p{p}];" for i, p in enumerate("abcd")]
    space = ""
    if shared:  # copied by one thread
        space = ".shared"
        lines += [".shared .align 128 .b8 room[16384]; .reg .b32 %i; .reg .b64 %from, %to; .reg .b16 %byte;"]
        lines += [".reg .pred %more;"]
        for i, p in enumerate("abc"):
            lines += [
                f"mov.u32 %i, 0; COPY{i}: cvt.u64.u32 %from, %i; mov.u64 %to, room; add.u64 %to, %from, %to;"
                f"add.u64 %to, %to, {i * 4096};"
                f"add.u64 %from, %from, %at{i}; ld.global.b8 %byte, [%from]; st.shared.b8 [%to], %byte;"
                f"add.u32 %i, %i, 1; setp.lt.u32 %more, %i, {memory[p].nbytes}; @%more bra COPY{i};"
                f"mov.u64 %at{i}, room; add.u64 %at{i}, %at{i}, {i * 4096};"
            ]
    for i, p in enumerate("abc"):
        tail = "" if stride[p] is None else f", {stride[p]}"
        lines.append(
            f"wmma.load.{p}.sync.aligned.{layout[p]}.{shape}{space}.{types[p]} {vectors[p]}, [%at{i}]{tail};"
        )
    names = f"{d}.{c}" if ab == "f16" else f"{d}.{ab}.{ab}.{c}"
    lines.append(
        f"wmma.mma{operation}.sync.aligned.{layouts[0]}.{layouts[1]}.{shape}.{names}{modifier} "
        + ", ".join(vectors[p] for p in "dabc")
        + ";"
    )
    tail = "" if stride["d"] is None else f", {stride['d']}"
    lines.append(f"wmma.store.d.sync.aligned.{layout['d']}.{shape}.global.{d} [%at3], {vectors['d']}{tail};")
    lines += ["ret; }"]
    Device("\n".join(lines)).run("k", *[memory[p] for p in "abcd"], machine=machine)
    return from_memory(memory["d"], d, layout["d"], (m, n))


def random_matrices(
    case: tuple[str, str, str, str], seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    shape, _, ab, c = case
    m, n, k = shape_of(shape)
    rng = np.random.default_rng(seed)
    return random_codes(rng, ab, (m, k)), random_codes(rng, ab, (k, n)), random_codes(rng, c, (m, n))


def reference(case: tuple[str, str, str, str], codes: tuple[np.ndarray, ...]) -> np.ndarray:
    _, d, ab, c = case
    a, b, before = codes
    if ab == "b1":
        return ((a[:, :, None] ^ b[None]).sum(axis=1) + before.astype(np.uint64)).astype(np.uint32)
    if ab == "tf32" and CODE == "sass":  # ptxas makes it of two instructions with k = 4
        before = encode(product(decode(a[:, :4], ab), decode(b[:4], ab), decode(before, c)), d)
        a, b = a[:, 4:], b[4:]
    return encode(product(decode(a, ab), decode(b, ab), decode(before, c)), d)


def layouts_of(case: tuple[str, str, str, str]) -> list[tuple[str, str, str]]:
    if BITS[case[2]] < 8:
        return [("row", "col", "row"), ("row", "col", "col")]
    return [("row", "col", "row"), ("col", "row", "col"), ("row", "row", "row"), ("col", "col", "col")]


@pytest.mark.parametrize("case", CASES, ids=".".join)
def test_products(case: tuple[str, str, str, str]) -> None:
    codes = random_matrices(case)
    wanted = reference(case, codes)
    # Rows have the alignment that PTX requires: 16 bytes.
    pads = {"b1": 128, "s4": 32, "u4": 32, "s8": 16, "u8": 16}
    for k, layouts in enumerate(layouts_of(case)):
        pad = None if k == 0 else pads.get(case[2], 8)
        if case[2] == "f64":
            found = decode(run(case, codes, layouts, pad), "f64")
            np.testing.assert_allclose(found, decode(wanted, "f64"), rtol=1e-12)
        else:
            np.testing.assert_array_equal(run(case, codes, layouts, pad, shared=k == 1), wanted)


@pytest.mark.parametrize(
    ("sm", "case", "step"),
    [
        (70, ("m16n16k16", "f32", "f16", "f32"), None),
        (70, ("m32n8k16", "f16", "f16", "f16"), None),
        (75, ("m8n32k16", "f32", "f16", "f16"), None),
        (75, ("m16n16k16", "f16", "f16", "f32"), None),
        (80, ("m16n16k16", "f16", "f16", "f16"), None),
        (80, ("m16n16k16", "f32", "bf16", "f32"), None),
        (90, ("m16n16k16", "f32", "f16", "f32"), None),
        (90, ("m16n16k8", "f32", "tf32", "f32"), 4),
    ],
    ids=str,
)
def test_adds_as_the_tensor_core(sm: int, case: tuple[str, str, str, str], step: int | None) -> None:
    """step: ptxas makes m16n16k8 of tf32 of instructions with k = 4."""
    _, d, ab, c = case
    codes = random_matrices(case)
    addition = tensor_cores.find(tensor_cores.WARP[sm], ab)
    wanted = tensor_cores.product(addition, *codes, (d, ab, ab, c), step)
    np.testing.assert_array_equal(run(case, codes, machine={"sm_version": sm}), wanted)


def test_saturation() -> None:
    case = ("m16n16k16", "s32", "s8", "s32")
    a, b, c = random_matrices(case, 1)
    c[:8] = 0x7FFFFFFF
    c[8:] = 0x80000000
    exact = product(decode(a, "s8"), decode(b, "s8"), decode(c, "s32"))
    found = run(case, (a, b, c), modifier=".satfinite")
    np.testing.assert_array_equal(found, encode(exact, "s32", saturate=True))


@pytest.mark.parametrize("d", ["f16", "f32"])
@ptx_only("ptxas takes no .satfinite from PTX 6.5 on")
def test_saturation_to_finite_numbers(d: str) -> None:
    """Before PTX 6.5."""
    largest = {"f16": 0x7BFF, "f32": 0x7F7FFFFF}[d]
    sign = {"f16": 0x8000, "f32": 0x80000000}[d]
    a, b = np.full((16, 16), 0x7BFF, np.uint32), np.full((16, 16), 0x7BFF, np.uint32)
    a[0, 0], a[1, 0], a[2] = 0x7C00, 0x7E00, 0  # infinity, NaN, zeros
    a[3] = 0xFBFF
    a[4, 0] = 0xFC00
    c = np.zeros((16, 16), np.uint32)
    found = run(("m16n16k16", d, "f16", "f32"), (a, b, c), modifier=".satfinite")
    assert (found[0] == largest).all() and (found[1] == 0).all() and (found[2] == 0).all()
    assert (found[4] == largest | sign).all()
    assert (found[3] == largest | sign).all() == (d == "f16")


@pytest.mark.parametrize(
    ("case", "part"),
    [
        (("m16n16k16", "f32", "f16", "f32"), "a"),
        (("m16n16k16", "f32", "bf16", "f32"), "b"),
        (("m16n16k16", "s32", "s8", "s32"), "a"),
        (("m16n16k8", "f32", "tf32", "f32"), "b"),
        (("m16n16k16", "f32", "f16", "f32"), "c"),
    ],
    ids=str,
)
def test_fragments_are_those_of_mma(case: tuple[str, str, str, str], part: str) -> None:
    """From 16 x 16 matrices: m16n8's fragments, B and accumulators twice; the remaining registers of f16's A
    and B are copies.
    """
    shape, _, ab, c = case
    m, n, k = shape_of(shape)
    type_ = c if part == "c" else ab
    rows, columns = {"a": (m, k), "b": (k, n), "c": (m, n)}[part]
    codes = random_codes(np.random.default_rng(5), type_, (rows, columns))
    count = registers(type_, rows * columns, part != "c")
    vector = "{" + ", ".join(f"%d{i}" for i in range(count)) + "}"
    out = np.zeros((count, 32), np.uint32)
    memory = to_memory(codes, type_, "row", None)
    stores = "".join(f"st.global.b32 [%out+{128 * i}], %d{i};" for i in range(count))
    Device(
        f""".visible .entry k(.param .b64 p, .param .b64 o) {{
        .reg .b64 %at, %out; .reg .b32 %lane, %d<{count}>; ld.param.b64 %at, [p]; ld.param.b64 %out, [o];
        mov.u32 %lane, %tid.x; mad.wide.u32 %out, %lane, 4, %out;
        wmma.load.{part}.sync.aligned.row.{shape}.global.{type_} {vector}, [%at];
        {stores} ret; }}"""
    ).run("k", memory, out)
    per_register = 32 // BITS[type_]
    sizes = (16, 8, k)
    position = {
        "a": partial(a_position, sizes, ab),
        "b": partial(b_position, sizes, ab),
        "c": partial(c_position, sizes),
    }
    half = rows * columns // 32 // (1 if part == "a" else 2)
    for lane in range(32):
        for i in range(count * per_register):
            e = i % (rows * columns // 32)
            row, column = position[part](lane, e % half)
            code = int(out[i // per_register, lane]) >> (i % per_register * BITS[type_]) & (
                (1 << BITS[type_]) - 1
            )
            assert code == codes[row, column + 8 * (e // half)], (lane, i)


def test_a_matrix_that_is_not_all_there_is_a_fault() -> None:
    text = """.global .align 16 .b8 kept[32];
    .visible .entry k(.param .b64 p) { .reg .b64 %at; .reg .b32 %d<8>; ld.param.b64 %at, [p];
    wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%d0,%d1,%d2,%d3,%d4,%d5,%d6,%d7}, [%at], 24;
    st.global.v4.b32 [kept], {%d0,%d1,%d2,%d3}; st.global.v4.b32 [kept+16], {%d4,%d5,%d6,%d7}; ret; }"""
    enough = 15 * 24 + 16
    Device(text).run("k", np.zeros(enough, np.uint16))
    with pytest.raises(_engine.functional.ProgramFault, match="illegal address"):
        Device(text).run("k", np.zeros(enough - 1, np.uint16))
    with pytest.raises(_engine.functional.ProgramFault, match="misaligned"):
        Device(text.replace("[%at], 24", "[%at+1], 24")).run("k", np.zeros(enough + 8, np.uint16))


@pytest.mark.parametrize(
    "instruction",
    [
        "wmma.mma.sync.aligned.row.col.m16n16k16.s32.s8.u8.s32 {%d0}, {%d0}, {%d0}, {%d0};",
        "wmma.mma.sync.aligned.row.col.m16n16k8.f32.bf16.bf16.f32 {%d0}, {%d0}, {%d0}, {%d0};",
        "wmma.load.a.sync.aligned.col.m8n8k32.s4 {%d0}, [%at];",
        "wmma.load.a.sync.aligned.row.m16n16k16.f16 {%d0}, [%at];",
    ],
)
def test_what_does_not_exist_is_refused(instruction: str) -> None:
    with pytest.raises(PtxError, match=r"wmma\..*: "):
        Device(f".visible .entry k() {{ .reg .b32 %d<8>; .reg .b64 %at; {instruction} ret; }}")
