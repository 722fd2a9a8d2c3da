"""mma.sync: every shape and type, against products of the matrices in its fragments."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from simt import _engine
from simt.errors import PtxError
from support import floats, tensor_cores
from support.floats import F32, F64
from support.matrices import (
    BITS,
    EXACT,
    FORMATS,
    a_position,
    b_position,
    c_position,
    decode,
    encode,
    pack,
    product,
    random_codes,
    run_registers,
    shape_of,
    unpack,
)
from support.ptx import CODE

CASES = [
    *[(s, "f32", a, a, "f32") for s in ("m16n8k8", "m16n8k16") for a in ("f16", "bf16")],
    *[(s, "f16", "f16", "f16", "f16") for s in ("m16n8k8", "m16n8k16")],
    *[(s, "f32", "tf32", "tf32", "f32") for s in ("m16n8k4", "m16n8k8")],
    *[
        (s, d, a, b, d)
        for s in ("m16n8k16", "m16n8k32")
        for a in ("e4m3", "e5m2")
        for b in ("e4m3", "e5m2")
        for d in ("f32", "f16")
    ],
    *[(s, "f64", "f64", "f64", "f64") for s in ("m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16")],
    *[
        (s, "s32", a, b, "s32")
        for s in ("m8n8k16", "m16n8k16", "m16n8k32")
        for a in ("s8", "u8")
        for b in ("s8", "u8")
    ],
    *[
        (s, "s32", a, b, "s32")
        for s in ("m8n8k32", "m16n8k32", "m16n8k64")
        for a in ("s4", "u4")
        for b in ("s4", "u4")
    ],
]


def multiply(
    shape: str,
    d: str,
    a: str,
    b: str,
    c: str,
    matrices: tuple[np.ndarray, ...],
    modifier: str = "",
    tail: str = "",
    machine: dict[str, int] = EXACT,
) -> np.ndarray:
    """The codes of D that mma.sync computes for codes of A, B and C."""
    sizes = m, n, k = shape_of(shape)
    place_a, place_b, place_c = (
        partial(a_position, sizes, a),
        partial(b_position, sizes, b),
        partial(c_position, sizes),
    )
    inputs = {
        "a": pack(matrices[0], a, m * k // 32, place_a),
        "b": pack(matrices[1], b, n * k // 32, place_b),
        "c": pack(matrices[2], c, m * n // 32, place_c),
    }
    count = m * n // 32
    registers = count * BITS[d] // 32 if d == "f16" else count
    dtype = np.uint64 if d == "f64" else np.uint32
    text = f"mma.sync.aligned.{shape}.row.col{modifier}.{d}.{a}.{b}.{c}{tail} {{d}}, {{a}}, {{b}}, {{c}};"
    found = run_registers(text, inputs, {"d": (registers, dtype)}, machine=machine)
    return unpack(found["d"], d, count, place_c, (m, n))


def random_matrices(shape: str, a: str, b: str, c: str, seed: int = 0) -> tuple[np.ndarray, ...]:
    m, n, k = shape_of(shape)
    rng = np.random.default_rng(seed)
    return random_codes(rng, a, (m, k)), random_codes(rng, b, (k, n)), random_codes(rng, c, (m, n))


@pytest.mark.parametrize("case", CASES, ids=".".join)
def test_products(case: tuple[str, str, str, str, str]) -> None:
    shape, d, a, b, c = case
    matrices = random_matrices(shape, a, b, c)
    found = multiply(*case, matrices)
    if d == "f64":
        return check_f64(found, matrices, "rn")
    numbers = [decode(x, t) for x, t in zip(matrices, (a, b, c), strict=True)]
    np.testing.assert_array_equal(found, encode(product(*numbers), d))
    return None


def check_f64(found: np.ndarray, matrices: tuple[np.ndarray, ...], mode: str) -> None:
    """A chain of fused multiply-adds in ascending order of k."""
    a, b, c = matrices
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            total = int(c[i, j])
            for k in range(a.shape[1]):
                total = floats.fma(
                    F64, mode, F64.decode(int(a[i, k])), F64.decode(int(b[k, j])), F64.decode(total)
                )
            assert int(found[i, j]) == total, (i, j)


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
def test_f64_rounds_as_asked(mode: str) -> None:
    matrices = random_matrices("m16n8k8", "f64", "f64", "f64", 3)
    found = multiply("m16n8k8", *["f64"] * 4, matrices, tail=f".{mode}")
    check_f64(found, matrices, mode)


@pytest.mark.parametrize("types", [("s8", "u8"), ("u4", "s4")])
def test_integers_saturate_or_wrap(types: tuple[str, str]) -> None:
    shape = "m16n8k32"
    a, b, c = random_matrices(shape, *types, "s32", 1)
    c[:8] = 0x7FFFFFFF - np.arange(64, dtype=np.uint32).reshape(8, 8)
    c[8:] = 0x80000000 + np.arange(64, dtype=np.uint32).reshape(8, 8)
    exact = product(*[decode(x, t) for x, t in zip((a, b, c), (*types, "s32"), strict=True)])
    assert (exact > 2**31 - 1).any() and (exact < -(2**31)).any()
    for modifier in ("", ".satfinite"):
        found = multiply(shape, "s32", *types, "s32", (a, b, c), modifier)
        np.testing.assert_array_equal(found, encode(exact, "s32", saturate=bool(modifier)))


@pytest.mark.parametrize("shape", ["m8n8k128", "m16n8k128", "m16n8k256"])
@pytest.mark.parametrize("operation", ["xor", "and"])
def test_bits(shape: str, operation: str) -> None:
    a, b, c = random_matrices(shape, "b1", "b1", "s32", 2)
    pairs = a[:, :, None] ^ b[None] if operation == "xor" else a[:, :, None] & b[None]
    wanted = (pairs.sum(axis=1) + c.astype(np.uint64)).astype(np.uint32)
    found = multiply(shape, "s32", "b1", "b1", "s32", (a, b, c), tail=f".{operation}.popc")
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("type_", ["f16", "bf16", "tf32", "e4m3", "e5m2"])
@pytest.mark.parametrize("seed", range(3))
def test_any_bits(type_: str, seed: int) -> None:
    """Numbers of every magnitude, infinities and NaN; sums that overflow."""
    shape = {"tf32": "m16n8k8", "e4m3": "m16n8k32", "e5m2": "m16n8k32"}.get(type_, "m16n8k16")
    m, n, k = shape_of(shape)
    rng = np.random.default_rng(seed)
    a, b = (rng.integers(0, 1 << BITS[type_], size, np.uint64).astype(np.uint32) for size in ((m, k), (k, n)))
    c = rng.integers(0, 1 << 32, (m, n), np.uint64).astype(np.uint32)
    # A NaN affects a whole row or column, so most matrices contain only numbers: their exponents lack the
    # lowest bit.
    f = F32 if type_ == "tf32" else FORMATS[type_]
    a[4:] &= ~np.uint32(1 << f.mantissa_bits)
    b[:, 2:] &= ~np.uint32(1 << f.mantissa_bits)
    c[:, 2:] &= ~np.uint32(1 << F32.mantissa_bits)
    found = multiply(shape, "f32", type_, type_, "f32", (a, b, c))
    wanted = encode(product(decode(a, type_), decode(b, type_), decode(c, "f32")), "f32")
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("type_", ["f16", "bf16", "e5m2"])
def test_infinities_and_nan(type_: str) -> None:
    shape = "m16n8k16"
    f = FORMATS[type_]
    one, infinity = f.encode(1.0), f.infinity
    a, b = np.full((16, 16), one, np.uint32), np.full((16, 8), one, np.uint32)
    c = np.zeros((16, 8), np.uint32)
    a[0, 3] = infinity  # inf
    a[1, 3], a[1, 4] = infinity, infinity | f.sign  # inf - inf
    a[2, 5] = f.nan
    a[3, 6], b[6, 2] = infinity, 0  # inf * 0 in column 2
    c[4, 0] = 0xFF800000
    a[4, 0] = infinity
    c[5, 1] = 0x7FC12345
    found = multiply(shape, "f32", type_, type_, "f32", (a, b, c))
    assert (found[0] == 0x7F800000).all()
    assert (found[1:3] == 0x7FFFFFFF).all()
    assert found[3].tolist() == [0x7FFFFFFF if j == 2 else 0x7F800000 for j in range(8)]
    assert found[4].tolist() == [0x7FFFFFFF if j == 0 else 0x7F800000 for j in range(8)]
    assert found[5, 1] == 0x7FFFFFFF and found[5, 0] == np.float32(16).view(np.uint32)


def test_f16_results_overflow_and_underflow() -> None:
    a = np.zeros((16, 8), np.uint32)
    b = np.zeros((8, 8), np.uint32)
    c = np.zeros((16, 8), np.uint32)
    a[0, 0], a[1, 0], a[2, 0], a[3, 0] = 0x7BFF, 0xFBFF, 0x0001, 0x0400  # largest, its negative, least, 2^-14
    b[0] = [0x3C00, 0x4000, 0x3800, 0x0001, 0x3801, 0x1400, 0x0000, 0x8000]
    c[3] = 0x0001
    exact = product(decode(a, "f16"), decode(b, "f16"), decode(c, "f16"))
    found = multiply("m16n8k8", "f16", "f16", "f16", "f16", (a, b, c))
    np.testing.assert_array_equal(found, encode(exact, "f16"))
    assert found[0, 1] == 0x7C00 and found[1, 1] == 0xFC00  # infinities
    assert found[2, 2] == 0 and found[2, 4] == 1  # half of the least number: to even; more: up


def test_the_low_bits_of_tf32_are_ignored() -> None:
    a, b, c = random_matrices("m16n8k8", "tf32", "tf32", "f32", 5)
    first = multiply("m16n8k8", "f32", "tf32", "tf32", "f32", (a, b, c))
    again = multiply(
        "m16n8k8", "f32", "tf32", "tf32", "f32", (a ^ np.uint32(0x1FFF), b | np.uint32(0x1FFF), c)
    )
    np.testing.assert_array_equal(first, again)


SPARSE = [
    *[(s, d, "f16", "f16") for s in ("m16n8k16", "m16n8k32") for d in ("f16", "f32")],
    *[(s, "f32", "bf16", "bf16") for s in ("m16n8k16", "m16n8k32")],
    *[(s, "f32", "tf32", "tf32") for s in ("m16n8k8", "m16n8k16")],
    *[(s, "s32", "s8", "u8") for s in ("m16n8k32", "m16n8k64")],
    *[(s, "s32", "u4", "s4") for s in ("m16n8k64", "m16n8k128")],
    ("m16n8k64", "f32", "e4m3", "e5m2"),
]


def metadata_place(type_: str, row: int, chunk: int) -> tuple[int, int]:
    """(first lane of those in each group of four that provide metadata, bit) of a chunk's two indices. Two
    16-bit units per lane and row, with rows 8 apart in one word; or a whole word per lane and row.
    """
    if BITS[type_] >= 16:
        return row % 8 * 4 + chunk // 4, row // 8 * 16 + chunk % 4 * 4
    return row % 8 * 4 + row // 8 + chunk // 8 * 2, chunk % 8 * 4


@pytest.mark.parametrize("case", SPARSE, ids=".".join)
@pytest.mark.parametrize("sm", [None, 80, 89, 90])
def test_sparse(case: tuple[str, str, str, str], sm: int | None) -> None:
    """sm: of the tensor core that adds."""
    shape, d, a, b = case
    if sm is not None and not any(a in types for types in tensor_cores.WARP[sm]):
        return
    m, n, k = shape_of(shape)
    rng = np.random.default_rng(13)
    elements = {32: 2, 4: 8}.get(BITS[a], 4)  # of a chunk
    lanes = k // elements // 4  # of four, that give metadata
    kept = random_codes(rng, a, (m, k // 2))
    codes_b, codes_c = random_codes(rng, b, (k, n)), random_codes(rng, d, (m, n))
    for selector in range(4 // lanes):
        dense, present = np.zeros((m, k), np.uint32), np.zeros((m, k), bool)
        metadata = rng.integers(0, 1 << 32, 32, np.uint64)  # unused values do not matter
        for row in range(m):
            for chunk in range(k // elements):
                first, second = rng.permutation(4)[:2] if selector == 0 else sorted(rng.permutation(4)[:2])
                if a == "tf32":
                    first, second = [(0, 1), (2, 3)][rng.integers(0, 2)]
                lane, bit = metadata_place(a, row, chunk)
                lane += selector * lanes
                metadata[lane] &= np.uint64(0xFFFFFFFF ^ (15 << bit))
                metadata[lane] |= np.uint64((first | second << 2) << bit)
                at, of = chunk * elements, chunk * elements // 2
                if a == "tf32":
                    dense[row, at + first // 2] = kept[row, of]
                    present[row, at + first // 2] = True
                elif elements == 8:
                    dense[row, at + 2 * first : at + 2 * first + 2] = kept[row, of : of + 2]
                    dense[row, at + 2 * second : at + 2 * second + 2] = kept[row, of + 2 : of + 4]
                else:
                    dense[row, at + first], dense[row, at + second] = kept[row, of], kept[row, of + 1]
                    present[row, at + first] = present[row, at + second] = True
        place_c = partial(c_position, (m, n, k))
        half = (m, n, k // 2)
        inputs = {
            "a": pack(kept, a, m * k // 64, partial(a_position, half, a)),
            "b": pack(codes_b, b, n * k // 32, partial(b_position, (m, n, k), b)),
            "c": pack(codes_c, d, 4, place_c),
            "e": metadata.astype(np.uint32)[None],
        }
        variant = "sp" if selector == 0 else "sp::ordered_metadata"
        found = run_registers(
            f"mma.{variant}.sync.aligned.{shape}.row.col.{d}.{a}.{b}.{d} "
            f"{{d}}, {{a}}, {{b}}, {{c}}, %e0, {selector};",
            inputs,
            {"d": (2 if d == "f16" else 4, np.uint32)},
            machine=EXACT if sm is None else {"sm_version": sm},
        )["d"]
        if sm is None:
            wanted = encode(product(decode(dense, a), decode(codes_b, b), decode(codes_c, d)), d)
        else:
            addition = tensor_cores.find(tensor_cores.WARP[sm], a)
            types = (d, a, b, d)
            wanted = tensor_cores.product(addition, dense, codes_b, codes_c, types, present=present)
        np.testing.assert_array_equal(unpack(found, d, 4, place_c, (m, n)), wanted)


def quad_pair_position(part: str, by_column: bool, lane: int, i: int) -> tuple[int, int]:
    """(row, column) of m8n8k4's f16 fragments, as defined by the PTX ISA."""
    high = 4 if lane >= 16 else 0
    if part == "a":
        return (i % 4 + high, lane % 4) if by_column else (lane % 4 + high, i)
    if part == "b":
        return (i, lane % 4 + high) if by_column else (lane % 4, i + high)
    if part == "f16":
        return lane % 4 + high, i
    return (lane & 1) + (i & 2) + high, (i & 4) + (lane & 2) + (i & 1)


@pytest.mark.parametrize("layout", ["row.row", "row.col", "col.row", "col.col"])
@pytest.mark.parametrize("d", ["f16", "f32"])
@pytest.mark.parametrize("c", ["f16", "f32"])
@pytest.mark.parametrize("sm", [None, 70, 75, 80])
def test_quad_pairs(layout: str, d: str, c: str, sm: int | None) -> None:
    """sm: of the tensor core that adds; later than 75, they are made of other instructions."""
    if (sm is not None or CODE == "sass") and (d, c) == ("f16", "f32"):
        return  # ptxas refuses it
    rng = np.random.default_rng(7)
    matrices = {
        "a": random_codes(rng, "f16", (4, 8, 4)),
        "b": random_codes(rng, "f16", (4, 4, 8)),
        c: random_codes(rng, c, (4, 8, 8)),
    }
    by_column = {"a": layout[:3] == "col", "b": layout[4:] == "col", "f16": False, "f32": False}

    def fill(part: str, count: int) -> np.ndarray:
        bits = 32 if part == "f32" else 16
        registers = np.zeros((count * bits // 32, 32), np.uint32)
        for lane in range(32):
            for i in range(count):
                code = int(matrices[part][lane % 16 // 4][quad_pair_position(part, by_column[part], lane, i)])
                registers[i * bits // 32, lane] |= np.uint32(code << (i * bits % 32))
        return registers

    found = run_registers(
        f"mma.sync.aligned.m8n8k4.{layout}.{d}.f16.f16.{c} {{d}}, {{a}}, {{b}}, {{c}};",
        {"a": fill("a", 4), "b": fill("b", 4), "c": fill(c, 8)},
        {"d": (8 if d == "f32" else 4, np.uint32)},
        machine=EXACT if sm is None else {"sm_version": sm},
    )["d"]
    for quad in range(4):
        codes = matrices["a"][quad], matrices["b"][quad], matrices[c][quad]
        types = (d, "f16", "f16", c)
        if sm is None:
            wanted = encode(product(*[decode(x, t) for x, t in zip(codes, types[1:], strict=True)]), d)
        elif sm <= 75:
            wanted = tensor_cores.product(tensor_cores.find(tensor_cores.WARP[sm], "f16"), *codes, types)
        else:
            wanted = tensor_cores.product_in_f32(*codes, types)
        for lane in (*range(4 * quad, 4 * quad + 4), *range(4 * quad + 16, 4 * quad + 20)):
            for i in range(8):
                register = found[i if d == "f32" else i // 2, lane]
                code = int(register) if d == "f32" else int(register) >> (i % 2 * 16) & 0xFFFF
                assert code == wanted[quad_pair_position(d, False, lane, i)]


def test_results_may_lie_in_any_register_of_the_operands() -> None:
    a, b, c = random_matrices("m16n8k16", "f16", "f16", "f32", 9)
    sizes = (16, 8, 16)
    wanted = multiply("m16n8k16", "f32", "f16", "f16", "f32", (a, b, c))
    inputs = {
        "a": pack(a, "f16", 8, partial(a_position, sizes, "f16")),
        "b": pack(b, "f16", 4, partial(b_position, sizes, "f16")),
        "c": pack(c, "f32", 4, partial(c_position, sizes)),
    }
    for d in (["c1", "c0", "c3", "c2"], ["a3", "b1", "a0", "c0"], ["c0", "c1", "c2", "c3"]):
        places = ", ".join(f"%{r}" for r in d)
        found = run_registers(
            f"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{{places}}}, {{a}}, {{b}}, {{c}};"
            + "".join(f"mov.b32 %d{i}, %{r};" for i, r in enumerate(d)),
            inputs,
            {"d": (4, np.uint32)},
        )["d"]
        np.testing.assert_array_equal(unpack(found, "f32", 4, partial(c_position, sizes), (16, 8)), wanted)


def test_accumulators_stay_while_other_registers_come_and_go() -> None:
    """Allocation: c is read, d is written; both are live across other instructions."""
    a, b, c = random_matrices("m16n8k8", "f16", "f16", "f32", 11)
    sizes = (16, 8, 8)
    text = "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"
    found = run_registers(
        ".reg .b32 %t<8>; .reg .b32 %e<4>;\n"
        f"{text} {{%e0, %e1, %e2, %e3}}, {{a}}, {{b}}, {{c}};\n"
        "mov.b32 %t0, 7; add.u32 %t1, %t0, %lane; add.u32 %t2, %t1, %t0; xor.b32 %t3, %t2, %t1;\n"
        f"{text} {{d}}, {{a}}, {{b}}, {{%e0, %e1, %e2, %e3}};\n"
        "st.local.b32 [junk], %t3;",
        {
            "a": pack(a, "f16", 4, partial(a_position, sizes, "f16")),
            "b": pack(b, "f16", 2, partial(b_position, sizes, "f16")),
            "c": pack(c, "f32", 4, partial(c_position, sizes)),
        },
        {"d": (4, np.uint32)},
        setup=".local .align 4 .b8 junk[4];",
    )["d"]
    once = encode(product(decode(a, "f16"), decode(b, "f16"), decode(c, "f32")), "f32")
    twice = encode(product(decode(a, "f16"), decode(b, "f16"), decode(once, "f32")), "f32")
    np.testing.assert_array_equal(unpack(found, "f32", 4, partial(c_position, sizes), (16, 8)), twice)


@pytest.mark.parametrize(
    "instruction",
    [
        "mma.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {d}, {a}, {b}, {c};",
        "mma.sync.aligned.m16n8k16.col.col.f32.f16.f16.f32 {d}, {a}, {b}, {c};",
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32 {d}, {a}, {b}, {c};",
        "mma.sync.aligned.m16n8k16.row.col.satfinite.f32.f16.f16.f32 {d}, {a}, {b}, {c};",
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {d}, {b}, {b}, {c};",
        "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {d}, {a}, {a}, {c}, %lane, 2;",
        "mma.sp.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {d}, {a}, {a}, {c}, %lane, 0;",
    ],
)
def test_what_does_not_exist_is_refused(instruction: str) -> None:
    inputs = {
        "a": np.zeros((4, 32), np.uint32),
        "b": np.zeros((2, 32), np.uint32),
        "c": np.zeros((4, 32), np.uint32),
    }
    with pytest.raises(PtxError, match=r"mma\..*sync.*: "):
        run_registers(instruction, inputs, {"d": (4, np.uint32)})


def test_a_warp_that_is_not_whole_is_a_fault() -> None:
    instruction = (
        "setp.lt.u32 %p, %lane, 16; @%p mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {d}, {a}, {a}, {d};"
    )
    with pytest.raises(_engine.functional.ProgramFault, match="all 32 lanes"):
        run_registers(
            instruction,
            {"a": np.zeros((1, 32), np.uint64), "d": np.zeros((2, 32), np.uint64)},
            {"d": (2, np.uint64)},
        )
