"""`simt.debug.compare`: the first launch, then the first instruction, whose result differs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simt
from simt.debug import compare, record
from simt.debug.executors import MachineCode, Ours
from simt.errors import DebugError, DriverError
from simt.sass.disassembler import is_installed
from support.debug_programs import AXPY, HEADER, axpy, gpu_with
from support.fake_cuda import no_driver, replacing

ROUNDED_UP = replacing(r"fma\.rn\.f32", "fma.rp.f32")
N = 1000
X, Y = np.random.default_rng(1).random((2, N), np.float32)
FUSED = (np.float64(np.float32(1.1)) * X + Y).astype(
    np.float32
)  # exact before the single rounding, except for ties


def test_a_right_gpu_computes_the_same() -> None:
    result = compare(axpy(launches=3), gpu_with())
    assert result.same
    assert (result.launches, result.reference) == (3, "Fake GPU (compute capability 8.0)")


def test_the_instruction_that_rounds_otherwise() -> None:
    result = compare(axpy(), gpu_with(ROUNDED_UP))
    difference = result.difference
    assert difference is not None
    assert (difference.launch, difference.kernel, difference.kind) == (1, "axpy", "memory")
    (memory,) = difference.memory
    assert (memory.parameter, memory.dtype, memory.elements, memory.ulps) == (2, "float32", N, 1)
    exact = np.float64(np.float32(1.1)) * X + Y
    up = np.where(exact > FUSED, np.nextafter(FUSED, np.float32(np.inf)), FUSED)
    wrong = np.flatnonzero(up != FUSED)
    assert memory.differing == len(wrong)
    assert memory.element == (wrong[0],)
    assert memory.ours is not None
    assert memory.ours.text == str(FUSED[wrong[0]])
    assert memory.writer is not None
    assert memory.writer.thread == (wrong[0], 0, 0)
    assert memory.writer.instruction == "st.global.f32 [%rd5], %f3"
    found = difference.instruction
    assert found is not None
    assert found.instruction == "fma.rn.f32 %f3, %f1, %f2, %f3"
    assert AXPY.splitlines()[found.ptx_line - 1].strip().startswith("fma")
    assert (found.kind, found.register, found.type, found.ulps) == ("value", "%f3", "f32", 1)
    assert (found.block, found.thread) == ((0, 0, 0), (wrong[0], 0, 0))
    # Before it: 5 parameters, 4 for the index, its test, 3 addresses, 2 loads, the counter.
    assert found.count == 16
    assert found.threads == len(wrong)
    assert found.reference is not None
    assert found.reference.text == str(up[wrong[0]])
    values = {i.register: i for i in found.inputs}
    assert values.keys() == {"%f1", "%f2", "%f3"}
    assert values["%f3"].ours == values["%f3"].reference
    assert values["%f3"].ours is not None
    assert values["%f3"].ours.text == str(Y[wrong[0]])
    assert values["%f2"].ours is not None
    assert values["%f2"].ours.text == str(X[wrong[0]])


@pytest.mark.parametrize("rounds", [341, 342, 5000])
def test_a_wrong_instruction_late_in_a_long_thread(rounds: int) -> None:
    """The wrong result appears once, after tens of thousands of registers: the search narrows down to it."""
    late = replacing(
        r"(fma\.rn\.f32 (%f3), %f1, %f2, %f3;)",
        rf"\1 setp.eq.u32 %p0, %r7, {rounds - 2}; @%p0 add.f32 \2, \2, 0f3F800000;",
    )
    difference = compare(axpy(n=300, rounds=rounds), gpu_with(late)).difference
    assert difference is not None
    found = difference.instruction
    assert found is not None
    assert found.instruction.startswith("fma.rn.f32")
    assert found.count == 16 + 3 * (rounds - 2)
    assert all(i.ours == i.reference for i in found.inputs)


def test_the_first_launch_that_differs() -> None:
    """A bug that only shows with the values of the third launch."""
    limited = replacing(r"(st\.global\.f32 \[%rd5\], (%f3);)", r"min.f32 \2, \2, 0f40E00000; \1")
    result = compare(axpy(launches=4), gpu_with(limited))
    x, y = X.copy(), Y.copy()
    for k in range(4):
        y = (np.float64(np.float32(1.1 + k)) * x + y).astype(np.float32)
        if (y > 7).any():
            break
    assert result.difference is not None
    assert result.difference.launch == k + 1
    assert result.launches == k + 1
    assert result.difference.memory[0].differing == (y > 7).sum()
    # No instruction that both programs have is wrong: the other one stores a different value.
    assert result.difference.instruction is None
    assert "no register that could be compared" in result.difference.note


def changed(old: str, new: str) -> str:
    assert old in AXPY
    return AXPY.replace(old, new)


def test_a_recording_of_another_program(tmp_path: Path) -> None:
    """fma instead of mul and add: the bug described by Lew et al."""
    split = changed(
        "fma.rn.f32 %f3, %f1, %f2, %f3;",
        "mul.rn.f32 %f4, %f1, %f2;\nadd.rn.f32 %f5, %f4, %f3;\nmov.f32 %f3, %f5;",
    )
    recording = record(axpy(split), tmp_path / "split")
    assert compare(axpy(split), recording).same
    difference = compare(axpy(), tmp_path / "split").difference
    assert difference is not None
    split_result = np.float32(1.1) * X + Y
    assert difference.memory[0].differing == (split_result != FUSED).sum()
    found = difference.instruction
    assert found is not None
    assert found.instruction == "fma.rn.f32 %f3, %f1, %f2, %f3"
    assert found.reference_instruction == "mov.f32 %f3, %f5"
    assert found.replaced == ("fma.rn.f32 %f3, %f1, %f2, %f3",)
    assert found.replacement == (
        "mul.rn.f32 %f4, %f1, %f2",
        "add.rn.f32 %f5, %f4, %f3",
        "mov.f32 %f3, %f5",
    )
    at = int(np.flatnonzero(split_result != FUSED)[0])
    assert found.ours is not None and found.reference is not None
    assert (found.ours.text, found.reference.text) == (str(FUSED[at]), str(split_result[at]))
    assert [i.register for i in found.inputs if i.ours is None] == ["%f5"]


BITS = (
    HEADER
    + """.visible .entry bits(.param .u64 in, .param .u64 out)
{
  .reg .b32 %r<6>; .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out];
  mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 4; add.u64 %rd4, %rd1, %rd3; add.u64 %rd5, %rd2, %rd3;
  ld.global.u32 %r2, [%rd4];
  OPERATION
  st.global.u32 [%rd5], %r3;
  ret;
}
"""
)


@pytest.mark.parametrize(
    ("right", "wrong", "reference"),
    [
        ("bfe.s32", "bfe.u32", lambda v: (v.astype(np.int64) << 32 + 20 >> 32 + 24).astype(np.int32)),
        ("rem.u32", "rem.s32", None),
        ("shr.s32", "shr.u32", None),
    ],
)
def test_signed_against_unsigned(
    right: str, wrong: str, reference: Callable[[np.ndarray], np.ndarray] | None
) -> None:
    """Bugs that Lew et al. found in GPGPU-Sim: bfe and rem of values with the highest bit set."""
    last = ", 4, 8" if "bfe" in right else ", 3"
    text = BITS.replace("OPERATION", f"{right} %r3, %r2{last};")
    values = np.arange(32, dtype=np.uint32) * np.uint32(0x08010101)

    def program(gpu: simt.GPU) -> None:
        gpu.load(text).bits[1, 32](values, np.zeros(32, np.uint32))

    difference = compare(program, gpu_with(replacing(re.escape(right), wrong))).difference
    assert difference is not None
    found = difference.instruction
    assert found is not None
    assert found.instruction == f"{right} %r3, %r2{last}"
    first = int(values[found.thread[0]])
    assert found.inputs[0].ours is not None
    assert found.inputs[0].ours.bits == f"{first:#010x}"
    if "bfe" in right:
        assert first >> 11 & 1, "the field's highest bit"
    else:
        assert first >> 31


SHARED = (
    HEADER
    + """.visible .entry reduce(.param .u64 in, .param .u64 out)
{
  .reg .pred %p<2>; .reg .b32 %r<8>; .reg .f32 %f<6>; .reg .b64 %rd<6>;
  .shared .align 4 .b8 partial[512];
  ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out];
  mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 4; add.u64 %rd4, %rd1, %rd3;
  ld.global.f32 %f1, [%rd4];
  mul.rn.f32 %f2, %f1, 0f3F99999A;
  mov.u32 %r2, partial; shl.b32 %r3, %r1, 2; add.u32 %r4, %r2, %r3;
  st.shared.f32 [%r4], %f2;
  mov.u32 %r5, 64;
AGAIN:
  bar.sync 0;
  setp.lt.u32 %p1, %r1, %r5;
  shl.b32 %r6, %r5, 2; add.u32 %r7, %r4, %r6;
  @%p1 ld.shared.f32 %f3, [%r7];
  @%p1 ld.shared.f32 %f4, [%r4];
  @%p1 add.rn.f32 %f5, %f3, %f4;
  @%p1 st.shared.f32 [%r4], %f5;
  shr.u32 %r5, %r5, 1;
  setp.ne.u32 %p1, %r5, 0;
  @%p1 bra AGAIN;
  setp.eq.u32 %p1, %r1, 0;
  @%p1 st.global.f32 [%rd2], %f5;
  ret;
}
"""
)


def test_a_wrong_value_that_came_through_shared_memory() -> None:
    """Thread 0 writes the result, but thread 77 is at fault: its instruction is reported, not a load of
    thread 0.
    """
    values = np.random.default_rng(3).random(128, np.float32)

    def program(gpu: simt.GPU) -> None:
        gpu.load(SHARED).reduce[1, 128](values, np.zeros(1, np.float32))

    wrong = replacing(
        r"(mul\.rn\.f32 (%f2), %f1, 0f3F99999A;)",
        r"\1 setp.eq.u32 %p0, %r1, 77; @%p0 add.f32 \2, \2, 0f3F800000;",
    )
    difference = compare(program, gpu_with(wrong)).difference
    assert difference is not None
    assert difference.memory[0].writer is not None
    assert difference.memory[0].writer.thread == (0, 0, 0)
    assert difference.instruction is not None
    assert difference.instruction.thread == (77, 0, 0)
    assert difference.instruction.instruction.startswith("mul.rn.f32")


def test_tolerances() -> None:
    assert compare(axpy(), gpu_with(ROUNDED_UP), rtol=1e-6).same
    result = compare(
        axpy(), gpu_with(replacing(r"fma\.rn\.f32 (\S+) %f1, %f2", r"fma.rn.f32 \1 %f1, %f1")), rtol=1e-6
    )
    assert result.difference is not None
    assert result.difference.instruction is not None
    assert result.difference.instruction.instruction.startswith("fma.rn.f32")
    with pytest.raises(DebugError, match="expected 0 or more"):
        compare(axpy(), gpu_with(), rtol=-1)


def test_a_block_of_ones_choice() -> None:
    difference = compare(axpy(), gpu_with(ROUNDED_UP), block=(5, 0, 0)).difference
    assert difference is not None and difference.instruction is not None
    assert difference.instruction.block == (5, 0, 0)
    with pytest.raises(DebugError, match=r"has no block \(8, 0, 0\): its grid is \(8, 1, 1\)"):
        compare(axpy(), gpu_with(ROUNDED_UP), block=(8, 0, 0))


def test_a_fault_of_one_of_them() -> None:
    outside = replacing(r"st\.global\.f32 \[%rd5\], %f3", "st.global.f32 [%rd3], %f3")
    difference = compare(axpy(), gpu_with(outside)).difference
    assert difference is not None
    assert difference.kind == "fault"
    assert "the reference's execution faults" in difference.message
    assert "ILLEGAL_ADDRESS" in difference.message


def test_no_gpu_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cuda.bindings.driver.cuInit", no_driver)
    with pytest.raises(DriverError, match="no CUDA driver on this machine"):
        compare(axpy(), "cuda")
    with pytest.raises(DebugError, match="expected cuda or cuda:N"):
        compare(axpy(), "cuda:x")
    with pytest.raises(DebugError, match="not a reference"):
        compare(axpy(), "/nowhere/at/all")


def test_module_variables_with_addresses_in_them() -> None:
    """Variables have other addresses on the other GPU; a table of their addresses is valid there, and counts
    as equal.
    """
    text = (
        HEADER
        + """.global .f32 first = 0f3F800000; .global .f32 second = 0f40000000;
.global .u64 table[2] = {first, second};
.visible .entry look(.param .u64 out)
{
  .reg .b32 %r<3>; .reg .f32 %f<3>; .reg .b64 %rd<7>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 8; mov.u64 %rd3, table; add.u64 %rd4, %rd3, %rd2;
  ld.global.u64 %rd5, [%rd4]; ld.global.f32 %f1, [%rd5]; add.f32 %f2, %f1, 0f3F800000;
  st.global.f32 [%rd5], %f2;
  mul.wide.u32 %rd6, %r1, 4; add.u64 %rd6, %rd6, %rd1; st.global.f32 [%rd6], %f2;
  ret;
}
"""
    )

    def program(gpu: simt.GPU) -> None:
        module, out = gpu.load(text), gpu.zeros(2)
        for _ in range(2):
            module.look[1, 2](out)
        assert out.numpy().tolist() == [3, 4]

    assert compare(program, gpu_with()).same
    assert compare(program, Ours()).same
    difference = compare(
        program, gpu_with(replacing(r"add\.f32 %f2, %f1, 0f3F800000", "sub.f32 %f2, %f1, 0f3F800000"))
    ).difference
    assert difference is not None
    assert [m.allocation for m in difference.memory] == ["first", "second", "array (2,) of float32"]
    assert difference.memory[0].dtype == "float32"
    assert difference.instruction is not None
    assert difference.instruction.instruction.startswith("add.f32")


needs_disassembler = pytest.mark.skipif(
    not is_installed(),
    reason="nvdisasm is not installed: pip install 'simt[cuda]'",
)


@needs_disassembler
def test_machine_code_computes_the_same() -> None:
    result = compare(axpy(launches=2), "sass", gpu="a100")
    assert result.same
    assert (result.launches, result.reference) == (2, "machine code of sm_80")


@needs_disassembler
def test_the_line_in_which_machine_code_differs() -> None:
    class WrongMachineCode(MachineCode):
        def _load(self, ptx: str, name: str, memory: Any, places: Mapping[str, int]) -> Any:
            return super()._load(ROUNDED_UP(ptx), name, memory, places)

    difference = compare(axpy(), WrongMachineCode("sm_80"), gpu="a100").difference
    assert difference is not None
    found = difference.instruction
    assert found is not None
    assert found.instruction == "fma.rn.f32 %f3, %f1, %f2, %f3"
    assert AXPY.splitlines()[found.ptx_line - 1].strip().startswith("fma")
