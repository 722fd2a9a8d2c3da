"""Products of matrices, sparse or of elements of 8 bits or one: machine code gives the bits of PTX."""

from __future__ import annotations

import numpy as np
import pytest

from simt.cuda import PtxModule, machine_code
from simt.errors import ImageError
from simt.sass import Cubin, disassemble
from simt.sass.disassembler import is_installed
from support.ptx import HEADER, Device

pytestmark = pytest.mark.skipif(
    not is_installed(),
    reason="nvdisasm is not installed: pip install 'simt[cuda]'",
)

# Of mma: what follows the layouts, registers of A and B, selectors, machine instruction.
DENSE = [
    ("m16n8k32.row.col.f32.e4m3.e5m2.f32", 4, 2, "QMMA.16832.F32.E4M3.E5M2"),
    ("m16n8k32.row.col.f16.e5m2.e5m2.f16", 4, 2, "QMMA.16832.F16.E5M2.E5M2"),
    ("m16n8k16.row.col.f32.e5m2.e4m3.f32", 2, 1, "QMMA.16816.F32.E5M2.E4M3"),
    ("m16n8k16.row.col.f16.e4m3.e4m3.f16", 2, 1, "QMMA.16816.F16.E4M3.E4M3"),
]
SPARSE = [
    ("m16n8k16.row.col.f32.f16.f16.f32", 2, 2, 4, "HMMA.SP.16816.F32"),
    ("m16n8k32.row.col.f16.f16.f16.f16", 4, 4, 2, "HMMA.SP.16832.F16"),
    ("m16n8k32.row.col.f32.bf16.bf16.f32", 4, 4, 2, "HMMA.SP.16832.F32.BF16"),
    ("m16n8k8.row.col.f32.tf32.tf32.f32", 2, 2, 4, "HMMA.SP.1688.F32.TF32"),
    ("m16n8k16.row.col.f32.tf32.tf32.f32", 4, 4, 2, "HMMA.SP.16816.F32.TF32"),
    ("m16n8k32.row.col.s32.s8.u8.s32", 2, 2, 2, "IMMA.SP.16832.S8.U8"),
    ("m16n8k64.row.col.satfinite.s32.u8.s8.s32", 4, 4, 1, "IMMA.SP.16864.U8.S8.SAT"),
    ("m16n8k64.row.col.s32.u4.s4.s32", 2, 2, 2, "IMMA.SP.16864.U4.S4"),
    ("m16n8k128.row.col.s32.s4.s4.s32", 4, 4, 1, "IMMA.SP.168128.S4.S4"),
    ("m16n8k64.row.col.f32.e4m3.e5m2.f32", 4, 4, 1, "QMMA.SP.16864.F32.E4M3.E5M2"),
]
CASES = [(f"mma.sync.aligned.{form}", a, b, "", opcode) for form, a, b, opcode in DENSE] + [
    (f"mma.sp::ordered_metadata.sync.aligned.{form}", a, b, f", w14, {selector}", opcode)
    for form, a, b, selectors, opcode in SPARSE
    for selector in range(selectors)
]


def kernel(instruction: str, count_a: int, count_b: int, rest: str) -> str:
    """Words of each lane: A, B from 4 on, C from 8 on, metadata in 14; D replaces C."""
    halves = instruction.endswith(".f16")
    floats = ".f32" in instruction[-10:]
    names = [f"f{k}" if floats else f"w{8 + k}" for k in range(2 if halves else 4)]
    type_ = "f32" if floats else "b32"
    lines = [".visible .entry k(.param .b64 words) { .reg .b32 w<16>, t; .reg .f32 f<4>; .reg .b64 p;"]
    lines += ["ld.param.b64 p, [words]; mov.u32 t, %tid.x; mad.wide.u32 p, t, 64, p;"]
    lines += [f"ld.global.b32 w{k}, [p+{4 * k}];" for k in range(16)]
    lines += [f"mov.b32 {name}, w{8 + k};" for k, name in enumerate(names) if floats]
    a, b, d = (", ".join(x) for x in (_registers(0, count_a), _registers(4, count_b), names))
    lines += [f"{instruction} {{{d}}}, {{{a}}}, {{{b}}}, {{{d}}}{rest};"]
    lines += [f"st.global.{type_} [p+{32 + 4 * k}], {name};" for k, name in enumerate(names)]
    return "\n".join([*lines, "ret; }"])


def _registers(first: int, count: int) -> list[str]:
    return [f"w{first + k}" for k in range(count)]


@pytest.mark.parametrize(
    ("instruction", "count_a", "count_b", "rest", "opcode"), CASES, ids=lambda x: str(x) if str(x) else "-"
)
def test_same_bits(instruction: str, count_a: int, count_b: int, rest: str, opcode: str) -> None:
    sm = 89 if opcode.startswith("QMMA") else 80
    text = HEADER.format(target=sm) + kernel(instruction, count_a, count_b, rest)
    code = disassemble(Cubin.parse(machine_code(PtxModule.from_text(text, "k"), f"sm_{sm}"), "k"))["k"]
    assert [x.opcode for x in code if "MMA" in x.opcode] == [opcode]
    words = np.random.default_rng(len(instruction)).integers(0, 2**32, (32, 16), np.uint32)
    words[:, 14] = _metadata(words[:, 14], pairs="tf32" in instruction)
    found = {}
    for form in ("ptx", "sass"):
        found[form] = words.copy()
        Device(text, code=form).run("k", found[form], machine={"sm_version": sm})
    np.testing.assert_array_equal(found["sass"], found["ptx"])
    assert (found["ptx"][:, 8:10] != words[:, 8:10]).any()


@pytest.mark.parametrize("code", ["ptx", "sass"])
@pytest.mark.parametrize("selector", [2, 3])
def test_sparsity_selectors_that_there_are_not(selector: int, code: str) -> None:
    """ptxas accepts them, against the PTX ISA."""
    instruction = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32"
    text = HEADER.format(target=80) + kernel(instruction, 4, 4, f", w14, {selector}")
    with pytest.raises(ImageError, match=f"sparsity selector {selector}, expected less than 2"):
        Device(text, code=code)


SMALL = [
    ("kind::f8f6f4.m16n8k32.row.col.f32.e3m2.e2m1.f32", "", "QMMA.16832.F32.E3M2.E2M1"),
    ("kind::f8f6f4.m16n8k32.row.col.f16.e2m3.e4m3.f16", "", "QMMA.16832.F16.E2M3.E4M3"),
    *(
        (
            "kind::mxf8f6f4.block_scale.m16n8k32.row.col.f32.e2m1.e5m2.f32.ue8m0",
            f", {{w14}}, {{{byte}, {thread}}}, {{w15}}, {{{3 - byte}, {byte}}}",
            "QMMA.SF.16832.F32.E2M1.E5M2.E8",
        )
        for byte, thread in ((0, 0), (1, 1), (3, 1))
    ),
    (
        "kind::mxf4.block_scale.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue8m0",
        ", {w14}, {2, 1}, {w15}, {0, 3}",
        "OMMA.SF.16864.F32.E2M1.E2M1.E8",
    ),
    (
        "kind::mxf4nvf4.block_scale.scale_vec::4X.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue4m3",
        ", {w14}, {0, 1}, {w15}, {0, 2}",
        "OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X",
    ),
]


@pytest.mark.parametrize(("form", "rest", "opcode"), SMALL)
def test_small_floats(form: str, rest: str, opcode: str) -> None:
    text = HEADER.format(target="120a").replace("8.7", "9.0")
    text += kernel(f"mma.sync.aligned.{form}", 4, 2, rest)
    code = disassemble(Cubin.parse(machine_code(PtxModule.from_text(text, "k"), "sm_120a"), "k"))["k"]
    assert [x.opcode for x in code if "MMA" in x.opcode] == [opcode]
    words = np.random.default_rng(len(rest)).integers(0, 2**32, (32, 16), np.uint32)
    words[:, 8:12] = np.arange(128, dtype=np.float32).reshape(32, 4).view(np.uint32)
    words[:, 14:] = words[:, 14:] & 0x07070707 | 0x78787878  # finite factors
    found = {}
    for kind in ("ptx", "sass"):
        found[kind] = words.copy()
        Device(text, code=kind).run("k", found[kind], machine={"sm_version": 120})
    np.testing.assert_array_equal(found["sass"], found["ptx"])
    assert (found["ptx"][:, 8:10] != words[:, 8:10]).any()


@pytest.mark.parametrize("operation", ["xor", "and"])
@pytest.mark.parametrize(("shape", "count_a", "count_b"), [("m16n8k128", 2, 1), ("m16n8k256", 4, 2)])
@pytest.mark.parametrize("sm", [100, 120])
def test_products_of_bits_that_are_products_of_bytes(
    sm: int, shape: str, count_a: int, count_b: int, operation: str
) -> None:
    """On Blackwell, ptxas widens bits: MOVM.U4TO8.M832 and IMMA."""
    instruction = f"mma.sync.aligned.{shape}.row.col.s32.b1.b1.s32.{operation}.popc"
    text = HEADER.format(target=sm)
    text += kernel(instruction, count_a, count_b, "")
    code = disassemble(Cubin.parse(machine_code(PtxModule.from_text(text, "k"), f"sm_{sm}"), "k"))["k"]
    assert {x.opcode for x in code if "MMA" in x.opcode or "MOVM" in x.opcode} == {
        "MOVM.U4TO8.M832",
        "IMMA.16832.U8.U8",
    }
    words = np.random.default_rng(sm).integers(0, 2**32, (32, 16), np.uint32)
    found = {}
    for form in ("ptx", "sass"):
        found[form] = words.copy()
        Device(text, code=form).run("k", found[form], machine={"sm_version": sm})
    np.testing.assert_array_equal(found["sass"], found["ptx"])
    assert (found["ptx"][:, 8:12] != words[:, 8:12]).all()


def _metadata(words: np.ndarray, pairs: bool) -> np.ndarray:
    """Two different positions in order in each four bits; of tf32, both halves of one element."""
    allowed = (0x4, 0xE) if pairs else (0x4, 0x8, 0xC, 0x9, 0xD, 0xE)
    return sum(
        np.choose((words >> (4 * k)) % len(allowed), np.uint32(allowed)) << np.uint32(4 * k) for k in range(8)
    ).astype(np.uint32)
