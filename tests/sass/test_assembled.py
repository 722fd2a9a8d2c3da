"""Machine code from text: opcodes of each family compute what their definition says, without ptxas."""

from __future__ import annotations

import numpy as np
import pytest

import simt
from simt.errors import SassError
from simt.sass import Control, Cubin, assemble, disassemble
from support.sass import per_lane

A = np.array([0, 1, 7, 2**31 - 1, 2**31, 2**32 - 1, 0x12345678, 0xDEADBEEF] * 4, np.uint32)
B = np.arange(32, dtype=np.uint32) * np.uint32(0x01010101)
X = np.linspace(-3, 5, 32, dtype=np.float32)
Y = np.linspace(7, 0.25, 32, dtype=np.float32)
LANE = np.arange(32, dtype=np.uint32)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("IADD R12, R4, R5", A + B),
        ("IADD R12, R4, -R5", A - B),
        ("IADD R12, R4, 0x10", A + np.uint32(16)),
        ("IADD3 R12, R4, -R5, RZ", A - B),
        ("IADD3 R12, R4, -1, RZ", A - np.uint32(1)),
        ("IADD3 R12, R4, 0x10, R5", A + B + np.uint32(16)),
        ("IMAD R12, R4, R5, R0", A * B + LANE),
        ("ISCADD R12, R4, R5, 0x3", (A << np.uint32(3)) + B),
        ("ISCADD R12, R4, R5, 0x1f", (A << np.uint32(31)) + B),
        ("ISCADD R12, R4, R5, 0x0", A + B),
        ("LEA R12, R4, R5, 0x3", (A << np.uint32(3)) + B),
        ("LOP3.LUT R12, R4, R5, RZ, 0x3c, !PT", A ^ B),
        ("SHF.R.U32.HI R12, RZ, 0x4, R4", A >> np.uint32(4)),
        ("POPC R12, R4", np.array([int(a).bit_count() for a in A], np.uint32)),
        ("ISETP.GT.U32.AND P0, PT, R4, R5, PT\nSEL R12, R4, R5, P0", np.maximum(A, B)),
        ("MOV R12, R5\nISETP.EQ.AND P1, PT, R0, 0x3, PT\n@!P1 IADD3 R12, R4, R5, RZ",
         np.where(LANE == 3, B, A + B)),
    ],
)  # fmt: skip
def test_integers(body: str, expected: np.ndarray) -> None:
    assert (per_lane(body, A, B) == expected).all()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("FADD R12, R4, 1.5", X + np.float32(1.5)),
        ("FADD R12, |R4|, -R5", abs(X) - Y),
        ("FMUL R12, R4, R5", X * Y),
        ("FFMA R12, R4, 2, R5", (X.astype(float) * 2 + Y).astype(np.float32)),
        ("FMNMX R12, R4, R5, PT", np.minimum(X, Y)),
        ("DADD R8, RZ, 1.5\nF2F.F32.F64 R12, R8", np.full(32, 1.5, np.float32)),
    ],
)
def test_floats(body: str, expected: np.ndarray) -> None:
    assert (per_lane(body, X, Y).view(np.float32) == expected).all()


WIDE_A = A | np.uint64(0xFFFFFF) << np.uint64(40)
WIDE_B = B.astype(np.uint64) << np.uint64(33) | A


def of_pairs(
    body: str, a: np.ndarray, b: np.ndarray, *, high: bool = False, arch: str = "sm_120"
) -> np.ndarray:
    """What the body leaves in R12, or R13 for the upper half, of 64-bit values in R4 and R6."""
    words = [
        part
        for pair in (a, b)
        for part in (pair.astype(np.uint32), (pair >> np.uint64(32)).astype(np.uint32))
    ]
    return per_lane(body + ("\nMOV R12, R13" if high else ""), *words, arch=arch)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("IADD.64 R12, R4, R6", WIDE_A + WIDE_B),
        ("IADD.64 R12, R4, -R6", WIDE_A - WIDE_B),
        ("IADD.64 R12, R4, -0x1", WIDE_A - np.uint64(1)),
        ("MOV.64 R12, R6", WIDE_B),
        ("IMNMX.U64 PT, PT, R12, R4, R6, PT, !PT", np.minimum(WIDE_A, WIDE_B)),
        ("IMNMX.S64 PT, PT, R12, R4, R6, !PT, !PT",
         np.maximum(WIDE_A.view(np.int64), WIDE_B.view(np.int64)).view(np.uint64)),
        ("ISETP.GT.U64.AND P0, PT, R4, R6, PT\nSEL.64 R12, R4, R6, P0", np.maximum(WIDE_A, WIDE_B)),
        ("ISETP.GE.S64.AND P0, PT, R4, R6, PT\nSEL.64 R12, R6, R4, P0",
         np.minimum(WIDE_A.view(np.int64), WIDE_B.view(np.int64)).view(np.uint64)),
    ],
)  # fmt: skip
def test_pairs(body: str, expected: np.ndarray) -> None:
    assert (of_pairs(body, WIDE_A, WIDE_B) == expected.astype(np.uint32)).all()
    assert (of_pairs(body, WIDE_A, WIDE_B, high=True) == (expected >> np.uint64(32)).astype(np.uint32)).all()


def test_carries_of_pairs() -> None:
    """The carry of a + b, as 1 or 0, and what .X adds of it."""
    carry = (WIDE_A + WIDE_B < WIDE_A).astype(np.uint32)
    assert 0 < carry.sum() < 32
    found = of_pairs("IADD.64 R8, P0, R4, R6\nSEL R12, R1, RZ, P0", WIDE_A, WIDE_B) // 4
    assert (found == carry).all()
    found = of_pairs("IADD.64 RZ, P0, R4, R6\nIADD.64.X R12, R4, R6, P0", WIDE_A, WIDE_B)
    assert (found == (WIDE_A + WIDE_B + carry).astype(np.uint32)).all()
    # A difference is the sum with the complement and one: a carry where nothing is borrowed.
    found = of_pairs("IADD.64 RZ, P0, R4, -R6\nSEL R12, R1, RZ, P0", WIDE_A, WIDE_B) // 4
    assert (found == (WIDE_A >= WIDE_B)).all()


def test_results_in_predicates_are_refused() -> None:
    with pytest.raises(SassError, match="a result in a predicate"):
        of_pairs("IMNMX.U64 P0, PT, R12, R4, R6, PT, !PT", WIDE_A, WIDE_B)
    with pytest.raises(SassError, match="its last operand"):
        of_pairs("IMNMX.U64 PT, PT, R12, R4, R6, PT, PT", WIDE_A, WIDE_B)


BYTES_A, BYTES_B = A.view(np.uint8), B.view(np.uint8)
SIGNED_A, SIGNED_B = A.view(np.int32).astype(np.int64), B.view(np.int32).astype(np.int64)


def saturated(x: np.ndarray) -> np.ndarray:
    return np.clip(x, -(2**31), 2**31 - 1).astype(np.uint32)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("IADD R12, R4, -0x1", A - np.uint32(1)),
        ("IADD R12, R4, -R5", A - B),
        ("IADD RZ, P0, R4, R4\nIADD.X R12, R5, 0x3, P0", B + np.uint32(3) + (A >> np.uint32(31))),
        ("VIMNMX R12, PT, PT, R4, R5, PT", np.minimum(A.view(np.int32), B.view(np.int32)).view(np.uint32)),
        ("VIMNMX.U8x4 R12, R4, R5, !PT", np.maximum(BYTES_A, BYTES_B).view(np.uint32)),
        ("VIMNMX.S8x4 R12, R4, R5, PT",
         np.minimum(BYTES_A.view(np.int8), BYTES_B.view(np.int8)).view(np.uint32)),
        ("VIADD.U8x4 R12, R4, -R5", (BYTES_A - BYTES_B).view(np.uint32)),
        ("VIADD.S32.ISAT R12, R4, R5",
         saturated(SIGNED_A + SIGNED_B)),
        ("VIADD.S32.ISAT R12, R4, -R5",
         saturated(SIGNED_A - SIGNED_B)),
        ("UMOV UR4, 0x7\nUVIMNMX.U32 UR5, UR4, 0x3, UPT\nIADD3 R12, PT, PT, R4, UR5, RZ", A + np.uint32(3)),
        ("CREDUX.MAX UR4, R5\nMOV R12, UR4", np.full(32, B.max(), np.uint32)),
        ("CREDUX.MIN.S32 UR4, R4\nMOV R12, UR4", np.full(32, 2**31, np.uint32)),
    ],
)  # fmt: skip
def test_integers_of_blackwell(body: str, expected: np.ndarray) -> None:
    assert (per_lane(body, A, B, arch="sm_120") == expected.astype(np.uint32)).all()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("FMNMX3 R12, R4, R5, 0.5, PT", np.minimum(np.minimum(X, Y), np.float32(0.5))),
        ("FMNMX3 R12, |R4|, -R5, R4, !PT", np.maximum(abs(X), -Y)),
        ("MOV R6, R5\nMOV R7, R4\nFADD2 R12, R4.F32x2.HI_LO, -R6.F32x2.HI_LO\nMOV R12, R12", X - Y),
        ("MOV R6, R5\nMOV R7, R4\nFMUL2 R8, R4.F32x2.HI_LO, R6.F32x2.HI_LO\nMOV R12, R9", Y * X),
        ("MOV R6, R5\nMOV R7, R4\nFFMA2 R8, R4.F32x2.HI_LO, R6.F32x2.HI_LO, R4.F32x2.HI_LO\nMOV R12, R9",
         (Y.astype(float) * X + Y).astype(np.float32)),
        ("MOV R6, R5\nMOV R7, R4\nFMUL2 R8, R6.F32x2.HI_LO, R4.F32\nFADD R12, R8, R9", Y * X + X * X),
        ("MOV R8, R5\nMOV R9, R4\nFMUL2 R8, R8.F32x2.HI_LO, R8.F32\nFADD R12, R8, R9", Y * Y + X * Y),
        ("CREDUX.MAX.F32 UR4, R5\nMOV R12, UR4", np.full(32, Y.max(), np.float32)),
        ("CREDUX.MAXABS.F32 UR4, R4\nMOV R12, UR4", np.full(32, abs(X).max(), np.float32)),
        ("UMOV UR4, 0x5\nUI2F.U32.RP UR4, UR4\nUMOV UR5, 0x40000000\nUMOV UR6, 0x3f800000\n"
         "UFFMA UR4, UR4, UR5, UR6\nFADD R12, R4, UR4", X + np.float32(11)),
    ],
)  # fmt: skip
def test_floats_of_blackwell(body: str, expected: np.ndarray) -> None:
    assert (per_lane(body, X, Y, arch="sm_120").view(np.float32) == expected).all()


def test_accesses_of_32_bytes() -> None:
    """The upper 16 bytes are a load's first register and a store's last; a mask leaves words out."""
    base = 0x380
    body = f"""
        IMAD.WIDE R2, R0, 0x0, c[0x0][{base + 8:#x}]
        LDG.E.ENL2.256 R20, R16, [R2.64]
        IADD3 R12, PT, PT, R16, R23, RZ
        LDG.E.ENL2.256 R24, R28, [R2.64], 0x21
        IADD3 R12, PT, PT, R12, R28, RZ
        IMAD R12, R24, 0x100, R12
    """
    found = per_lane(body, LANE * np.uint32(3), arch="sm_100")
    assert (found == 0 + 3 * 7 + 0 + 256 * 3 * 5).all()


SHARED = """
    SHF.L.U32 R8, R0, 0x2, RZ
    STS [R8], R4
    BAR.SYNC.DEFER_BLOCKING 0x0
    IADD3 R9, -R8, 0x7c, RZ
    LDS R12, [R9]
"""
LOOP = """
    MOV R12, RZ
    MOV R8, R0
again:
    IADD3 R12, R12, R8, RZ
    IADD3 R8, R8, -0x1, RZ
    ISETP.GT.AND P0, PT, R8, RZ, PT
    @P0 BRA again
"""
SHUFFLE = "SHFL.BFLY PT, R12, R4, 0x1, 0x1f"


@pytest.mark.parametrize("timed", [False, True])
@pytest.mark.parametrize(
    ("body", "expected"), [(SHARED, A[::-1]), (SHUFFLE, A[LANE ^ 1]), (LOOP, LANE * (LANE + 1) // 2)]
)
def test_memory_lanes_and_branches(body: str, expected: np.ndarray, timed: bool) -> None:
    assert (per_lane(body, A, timed=timed) == expected).all()


def test_tensor_products() -> None:
    """All elements are 1, so each of the 16x8 sums over 16 is 16, plus c."""
    ones = np.full(32, 0x3C003C00, np.uint32)
    c = np.full(32, 0.5, np.float32)
    body = "\n".join(
        [
            *(f"MOV R{r}, R4" for r in range(16, 22)),
            *(f"MOV R{r}, R5" for r in range(24, 28)),
            "HMMA.16816.F32 R28, R16, R20, R24",
            "FADD R12, R28, R31",
        ]
    )
    assert (per_lane(body, ones, c).view(np.float32) == 33).all()


@pytest.mark.parametrize(("shape", "arch"), [("884", "sm_80"), ("8x8x4", "sm_90")])
def test_fp64_products(shape: str, arch: str) -> None:
    """sm_80 names the shape in another way than sm_90. Sums of four products, plus c."""
    body = "\n".join(
        [
            "DADD R16, RZ, 3\nDADD R18, RZ, 2\nDADD R20, RZ, 0.5\nDADD R22, RZ, 0.25",
            f"DMMA.{shape} R24, R16, R18, R20",
            "DADD R24, R24, R26\nF2F.F32.F64 R12, R24",
        ]
    )
    assert (per_lane(body, arch=arch).view(np.float32) == 48.75).all()


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90"])
def test_parameters_lie_where_the_architecture_has_them(arch: str) -> None:
    assert (per_lane("IADD3 R12, R4, R5, RZ", A, B, arch=arch) == A + B).all()


def test_a_printed_instruction_is_read_back() -> None:
    text = ".target sm_80\n.kernel f\n0050  01----:R2:W0:Y:S05  @!P0 IMAD R2, R2, c[0x0][0x0], R3\nEXIT"
    (line, _) = disassemble(assemble(text))["f"]
    assert line.text == "@!P0 IMAD R2, R2, c[0x0][0x0], R3"
    assert line.control == Control(5, True, 0, 2, (0, 1), ())
    assert str(line.control) == "01----:R2:W0:Y:S05"


def test_control_bits_are_kept_in_full() -> None:
    for control in (Control(15, False, None, None, (), ()), Control(0, True, 5, 1, (2, 5), (0, 3))):
        assert Control.of(control.high) == control


def test_its_data_make_it_again() -> None:
    """Checkpoints keep a program as its data."""
    cubin = assemble(".target sm_80\n.kernel f\n.parameters 4 8\nEXIT")
    assert Cubin.parse(cubin.data, cubin.name) == cubin
    assert [(x.offset, x.bytes) for x in cubin["f"].parameters] == [(0, 4), (8, 8)]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (".kernel f\nEXIT", r"f\.sass: it has no \.target"),
        (".target sm_80", r"f\.sass: it has no \.kernel"),
        (".target sm_60\n.kernel f", r"f\.sass:1: \.target is 'sm_60', expected sm_70 or later"),
        (".target sm_80\nEXIT", r"f\.sass:2: 'EXIT' before a \.kernel"),
        (".target sm_80\n.shared 4", r"f\.sass:2: \.shared before a \.kernel"),
        (".target sm_80\n.kernel f\n.shared many", r"f\.sass:3: \.shared is 'many', expected a number"),
        (".target sm_80\n.kernel f\n.parameters 3", r"f\.sass:3: \.parameters are 3, expected 1, 2, 4, 8"),
        (".target sm_80\n.kernel f\n.align 4", r"f\.sass:3: directive '\.align', expected one of \.kernel"),
        (".target sm_80\n.kernel f", r"f\.sass: f ends with no instruction, expected an EXIT or a branch"),
        (".target sm_80\n.kernel f\n@P0 EXIT", r"f\.sass: f ends with @P0 EXIT, expected"),
        (".target sm_80\n.kernel f\n.kernel f", r"f\.sass:3: kernel 'f' a second time"),
        (".target sm_80\n.kernel f\nMOV R1, 4294967296", r"f\.sass:3: the immediate 4294967296, expected"),
        (".target sm_80\n.kernel f\na:\na:", r"f\.sass:4: label 'a' a second time"),
        (".target sm_80\n.kernel f\niadd3 R1", r"f\.sass:3: 'iadd3 R1' is no instruction"),
        (".target sm_80\n.kernel f\nIADD4 R1, R2", r"f\.sass:3: opcode 'IADD4' is not known; did you mean"),
        (".target sm_80\n.kernel f\nFADD R1, R2, 0.1", r"f\.sass:3: .* the immediate 0\.1 exactly"),
        (".target sm_80\n.kernel f\nHADD2 R1, R2, 1, 1", r"f\.sass:3: .* 1, 1 is in the encoding only"),
        (".target sm_80\n.kernel f\nIADD3 R1, R2, 1.5, RZ", r"f\.sass:3: the immediate 1\.5 of an integer"),
    ],
)  # fmt: skip
def test_what_is_no_program(text: str, why: str) -> None:
    with pytest.raises(SassError, match=why):
        assemble(text, "f.sass")


def test_what_is_not_executed_is_refused_when_loaded() -> None:
    cubin = assemble(".target sm_80\n.kernel f\nISCADD R1, R2, R3, 0x20\nEXIT", "f.sass")
    with pytest.raises(SassError, match=r"f\.sass: f\+0x0000: ISCADD .*: a shift beyond 31"):
        simt.GPU("a100").load(cubin)
