"""mma.sync of 4- to 8-bit floats for sm_120: .kind::f8f6f4, and kinds with scale factors."""

from __future__ import annotations

import random
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from test_mma import metadata_place

from simt import _engine
from simt.cuda.ptxas import can_assemble
from simt.errors import CompileError, PtxError
from simt.sass.disassembler import is_installed
from support import tensor_memory as tm
from support.matrices import (
    EXACT,
    a_position,
    b_position,
    c_position,
    encode,
    pack,
    product,
    random_codes,
    run_registers,
    shape_of,
    unpack,
)
from support.ptx import CODE

pytestmark = pytest.mark.skipif(CODE == "sass", reason="what runs as machine code is a parameter here")
SMALL = ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1")
RTX_5090 = {"sm_version": 120}


def some_codes(rng: np.random.Generator, type_: str, shape: tuple[int, int]) -> np.ndarray:
    if type_ in tm.SMALL:
        bits = 1 + sum(tm.SMALL[type_][:2])
        return rng.integers(0, 1 << bits, shape).astype(np.uint32)
    return random_codes(rng, type_, shape)


def numbers(codes: np.ndarray, type_: str) -> np.ndarray:
    return np.vectorize(lambda code: tm.number(int(code), type_)[0], otypes=[np.float64])(codes)


def in_bytes(codes: np.ndarray, type_: str) -> np.ndarray:
    """Four bits are in the middle of a byte."""
    return codes << 2 if type_ == "e2m1" else codes


@pytest.mark.parametrize("d", ["f32", "f16"])
@pytest.mark.parametrize("b", SMALL)
@pytest.mark.parametrize("a", SMALL)
def test_products_of_small_floats(a: str, b: str, d: str) -> None:
    rng = np.random.default_rng(1)
    left, right = some_codes(rng, a, (16, 32)), some_codes(rng, b, (32, 8))
    before = random_codes(rng, d, (16, 8))
    sizes = shape_of("m16n8k32")
    places = (
        partial(a_position, sizes, "e4m3"),
        partial(b_position, sizes, "e4m3"),
        partial(c_position, sizes),
    )
    inputs = {
        "a": pack(in_bytes(left, a), "e4m3", 16, places[0]),
        "b": pack(in_bytes(right, b), "e4m3", 8, places[1]),
        "c": pack(before, d, 4, places[2]),
    }
    text = f"mma.sync.aligned.kind::f8f6f4.m16n8k32.row.col.{d}.{a}.{b}.{d} {{d}}, {{a}}, {{b}}, {{c}};"
    registers = 4 if d == "f32" else 2
    found = unpack(run_registers(text, inputs, {"d": (registers, np.uint32)})["d"], d, 4, places[2], (16, 8))
    addend = numbers(before, d)
    wanted = encode(product(numbers(left, a), numbers(right, b), addend), d)
    np.testing.assert_array_equal(found, wanted)


def test_sparse_products_are_those_of_the_same_numbers() -> None:
    """Numbers of e2m1 are numbers of e4m3 as well."""
    rng = np.random.default_rng(2)
    codes = some_codes(rng, "e2m1", (16, 32)), some_codes(rng, "e2m1", (64, 8))
    of_e4m3 = {tm.number(code, "e4m3")[0]: code for code in range(256) if code & 0x7F != 0x7F}
    same = [np.vectorize(lambda x: of_e4m3[tm.number(int(x), "e2m1")[0]])(x).astype(np.uint32) for x in codes]
    metadata = np.full((1, 32), 0x4E94_4E94, np.uint32)

    def run(kind: str, type_: str, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        inputs = {
            "a": pack(left, "e4m3", 16, partial(a_position, (16, 8, 32), "e4m3")),
            "b": pack(right, "e4m3", 16, partial(b_position, (16, 8, 64), "e4m3")),
            "c": np.zeros((4, 32), np.uint32),
            "m": metadata,
        }
        form = f"mma.sp::ordered_metadata.sync.aligned.{kind}m16n8k64.row.col.f32.{type_}.{type_}.f32"
        return run_registers(f"{form} {{d}}, {{a}}, {{b}}, {{c}}, %m0, 0x0;", inputs, {"d": (4, np.uint32)})[
            "d"
        ]

    small = run("kind::f8f6f4.", "e2m1", *(in_bytes(x, "e2m1") for x in codes))
    np.testing.assert_array_equal(small, run("", "e4m3", *same))


def scaled(
    kind: str,
    types: tuple[str, str],
    matrices: tuple[np.ndarray, np.ndarray, np.ndarray],
    scales: tuple[np.ndarray, np.ndarray],
    factors: str = "ue8m0",
    at: tuple[int, int, int, int] = (0, 0, 0, 0),
    machine: dict[str, int] = EXACT,
    selection: str = "",
    metadata: np.ndarray | None = None,
    code: str = "ptx",
) -> np.ndarray:
    """The words of D. scales: of 16 rows and 8 columns. at: byte and thread of those of A, then of B.
    metadata: of a sparse A, of which half is given.
    """
    k, sparse = matrices[1].shape[0], metadata is not None
    nibbles = kind != "mxf8f6f4"
    sizes, packed = (16, 8, k), "s4" if nibbles else "e4m3"
    stored = k // 2 if sparse else k
    left, right = matrices[:2] if nibbles else map(in_bytes, matrices[:2], types)
    rng = np.random.default_rng(3)
    words = [rng.integers(0, 1 << 32, (1, 32), np.uint64).astype(np.uint32) for _ in range(2)]
    for line in range(16):
        place(words[0], line % 8 * 4 + 2 * at[1] + line // 8, at[0], scales[0][line])
    for line in range(8):
        place(words[1], line * 4 + at[3], at[2], scales[1][line])
    inputs = {
        "a": pack(left, packed, 16 * stored // 32, partial(a_position, (16, 8, stored), packed)),
        "b": pack(right, packed, 8 * k // 32, partial(b_position, sizes, packed)),
        "c": pack(matrices[2], "f32", 4, partial(c_position, sizes)),
        **({"e": metadata} if metadata is not None else {}),
        "s": words[0],
        "t": words[1],
    }
    vector = len(scales[0][0])
    form = f"kind::{kind}.block_scale.scale_vec::{vector}X.m16n8k{k}.row.col.f32.{types[0]}.{types[1]}.f32"
    chosen = selection or f"%s0, {{{at[0]}, {at[1]}}}, %t0, {{{at[2]}, {at[3]}}}"
    chosen = f"%e0, 0x0, {chosen}" if sparse else chosen
    name = "mma.sp::ordered_metadata" if sparse else "mma"
    text = f"{name}.sync.aligned.{form}.{factors} {{d}}, {{a}}, {{b}}, {{c}}, {chosen};"
    # Braces around numbers are PTX's, not names of registers.
    header = ".version 9.2\n.target sm_120a\n.address_size 64\n" if (vector, factors) == (4, "ue8m0") else ""
    outputs = {"d": (4, np.uint32)}
    try:
        found = run_registers(text, inputs, outputs, machine=machine, code=code, header=header)["d"]
    except CompileError as error:
        if "Unsupported .version" in str(error):
            pytest.skip("no ptxas that reads PTX 9.2 is installed")
        raise
    return unpack(found, "f32", 4, partial(c_position, sizes), (16, 8))


def place(words: np.ndarray, lane: int, byte: int, codes: np.ndarray) -> None:
    for i, code in enumerate(codes):
        shift = 8 * (byte + i)
        words[0, lane] = int(words[0, lane]) & ~(0xFF << shift) | int(code) << shift


@pytest.mark.parametrize(
    ("kind", "types", "vector", "factors", "at"),
    [
        *(("mxf8f6f4", (a, b), 1, "ue8m0", (0, 0, 0, 0)) for a, b in zip(SMALL, SMALL[::-1], strict=True)),
        ("mxf8f6f4", ("e4m3", "e2m1"), 1, "ue8m0", (1, 1, 3, 2)),
        ("mxf8f6f4", ("e2m1", "e3m2"), 1, "ue8m0", (3, 0, 2, 3)),
        ("mxf4", ("e2m1", "e2m1"), 2, "ue8m0", (0, 0, 2, 1)),
        ("mxf4", ("e2m1", "e2m1"), 2, "ue8m0", (2, 1, 0, 3)),
        ("mxf4nvf4", ("e2m1", "e2m1"), 2, "ue8m0", (2, 0, 2, 2)),
        ("mxf4nvf4", ("e2m1", "e2m1"), 4, "ue4m3", (0, 1, 0, 1)),
    ],
)
def test_products_with_scale_factors(
    kind: str, types: tuple[str, str], vector: int, factors: str, at: tuple[int, int, int, int]
) -> None:
    rng = np.random.default_rng(5)
    k = 32 if kind == "mxf8f6f4" else 64
    a, b = some_codes(rng, types[0], (16, k)), some_codes(rng, types[1], (k, 8))
    c = rng.integers(-64, 64, (16, 8)).astype(np.float32)
    low, high = (125, 130) if factors == "ue8m0" else (0x30, 0x48)
    scales = rng.integers(low, high, (16, vector)), rng.integers(low, high, (8, vector))
    found = scaled(kind, types, (a, b, c.view(np.uint32)), scales, factors, at)

    expect_scaled_sum(found, (a, b, c), scales, types, factors)


def expect_scaled_sum(
    found: np.ndarray,
    matrices: tuple[np.ndarray, np.ndarray, np.ndarray],
    scales: tuple[np.ndarray, np.ndarray],
    types: tuple[str, str],
    factors: str,
) -> None:
    """What the exact sum is, rounded once. Codes of A are -1 where a sparse one stores nothing."""
    a, b, c = matrices

    def factor(code: int) -> Fraction:
        return Fraction(2) ** (code - 127) if factors == "ue8m0" else Fraction(tm.number(code, "e4m3")[0])

    k = a.shape[1]
    block = k // scales[0].shape[1]
    for i in range(16):
        for j in range(8):
            total = Fraction(float(c[i, j]))
            for x in range(k):
                if a[i, x] < 0:
                    continue
                total += (
                    Fraction(tm.number(int(a[i, x]), types[0])[0])
                    * Fraction(tm.number(int(b[x, j]), types[1])[0])
                    * factor(int(scales[0][i, x // block]))
                    * factor(int(scales[1][j, x // block]))
                )
            assert found[i, j] == np.float32(float(total)).view(np.uint32), (i, j)


@pytest.mark.parametrize("code", ["ptx", "sass"])
@pytest.mark.parametrize(
    ("kind", "types", "vector", "factors", "at"),
    [
        *(("mxf8f6f4", (a, b), 1, "ue8m0", (0, 0, 0, 0)) for a, b in zip(SMALL, SMALL[::-1], strict=True)),
        ("mxf8f6f4", ("e4m3", "e2m1"), 1, "ue8m0", (2, 1, 1, 3)),
        ("mxf4", ("e2m1", "e2m1"), 2, "ue8m0", (2, 1, 0, 3)),
        ("mxf4nvf4", ("e2m1", "e2m1"), 2, "ue8m0", (0, 0, 2, 2)),
        ("mxf4nvf4", ("e2m1", "e2m1"), 4, "ue4m3", (0, 1, 0, 2)),
        ("mxf4nvf4", ("e2m1", "e2m1"), 4, "ue8m0", (0, 0, 0, 1)),
    ],
)
def test_sparse_products_with_scale_factors(
    kind: str, types: tuple[str, str], vector: int, factors: str, at: tuple[int, int, int, int], code: str
) -> None:
    """Two of four elements are stored, or two pairs of eight. What is not stored takes no part."""
    if code == "sass" and not (can_assemble("sm_120") and is_installed()):
        pytest.skip("ptxas or nvdisasm is not installed: pip install 'simt[cuda]'")
    rng = np.random.default_rng(6)
    unit = 1 if kind == "mxf8f6f4" else 2
    k = 64 * unit
    kept, b = some_codes(rng, types[0], (16, k // 2)), some_codes(rng, types[1], (k, 8))
    c = rng.integers(-64, 64, (16, 8)).astype(np.float32)
    low, high = (125, 130) if factors == "ue8m0" else (0x30, 0x48)
    scales = rng.integers(low, high, (16, vector)), rng.integers(low, high, (8, vector))
    metadata, a = np.zeros((1, 32), np.uint32), np.full((16, k), -1, np.int64)
    for row in range(16):
        for chunk in range(16):
            first, second = sorted(rng.permutation(4)[:2])
            lane, bit = metadata_place("e4m3", row, chunk)
            metadata[0, lane] |= np.uint32((first | second << 2) << bit)
            for n, index in enumerate((first, second)):
                to, stored = (4 * chunk + index) * unit, (2 * chunk + n) * unit
                a[row, to : to + unit] = kept[row, stored : stored + unit]
    matrices = kept, b, c.view(np.uint32)
    found = scaled(kind, types, matrices, scales, factors, at, metadata=metadata, code=code)
    expect_scaled_sum(found, (a, b, c), scales, types, factors)


@pytest.mark.parametrize(
    ("kind", "count", "seed", "word"),
    [("mxf4", 2, 920, 0x46BA8000), ("mxf4nvf4", 2, 921, 0x40580000)],
)
def test_sums_are_taken_to_be_those_of_a_b200(kind: str, count: int, seed: int, word: int) -> None:
    """Of an RTX 5090 nothing is published; these are the words of tests/functional/test_tensor_memory.py."""
    rng = random.Random(seed)
    a, b = ([rng.randrange(16) for _ in range(64)] for _ in range(2))
    sa, sb = ([rng.randrange(115, 140) for _ in range(count)] for _ in range(2))
    matrices = np.tile(np.array(a, np.uint32), (16, 1)), np.tile(np.array(b, np.uint32)[:, None], 8)
    scales = np.tile(np.array(sa), (16, 1)), np.tile(np.array(sb), (8, 1))
    zeros = np.zeros((16, 8), np.uint32)
    found = scaled(kind, ("e2m1", "e2m1"), (*matrices, zeros), scales, machine=RTX_5090)
    assert {int(x) for x in found.ravel()} == {word}


@pytest.mark.parametrize(
    ("kind", "vector", "selection"),
    [("mxf4", 2, "%s0, {1, 0}, %t0, {0, 0}"), ("mxf8f6f4", 1, "%s0, {0, 2}, %t0, {0, 0}"),
     ("mxf4nvf4", 4, "%s0, {0, 0}, %t0, {2, 0}"), ("mxf8f6f4", 1, "%s0, {0, 0}, %t0, {0, 4}")],
)  # fmt: skip
def test_scale_factors_that_no_thread_has(kind: str, vector: int, selection: str) -> None:
    k = 32 if kind == "mxf8f6f4" else 64
    matrices = np.zeros((16, k), np.uint32), np.zeros((k, 8), np.uint32), np.zeros((16, 8), np.uint32)
    ones = np.full((16, vector), 127), np.full((8, vector), 127)
    with pytest.raises(_engine.functional.ProgramFault, match=r"scale factors in byte . of thread . of four"):
        scaled(
            kind, ("e2m1", "e2m1"), matrices, ones, "ue4m3" if vector == 4 else "ue8m0", selection=selection
        )


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ("kind::mxf4.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue8m0", "`.block_scale` is missing"),
        ("kind::mxf4nvf4.block_scale.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue8m0", "scale_vec::4X` is missing"),
        ("kind::mxf4.block_scale.scale_vec::4X.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue4m3", "no such scale"),
        ("kind::mxf4.block_scale.m16n8k64.row.col.f32.e2m1.e4m3.f32.ue8m0", "no such combination"),
        ("m16n8k32.row.col.f32.e2m1.e2m1.f32", "no such types of A and B"),
    ],
)
def test_forms_that_do_not_exist(form: str, message: str) -> None:
    inputs = {"a": np.zeros((4, 32), np.uint32), "b": np.zeros((2, 32), np.uint32)}
    tail = ", %a0, {0, 0}, %b0, {0, 0}" if "kind" in form else ""
    with pytest.raises(PtxError, match=message):
        run_registers(
            f"mma.sync.aligned.{form} {{d}}, {{a}}, {{b}}, {{d}}{tail};",
            inputs | {"d": np.zeros((4, 32), np.uint32)},
            {"d": (4, np.uint32)},
        )
