"""Opcodes that few programs use compute what the PTX computes that ptxas makes them of."""

from __future__ import annotations

import importlib.util
from functools import lru_cache

import numpy as np
import pytest

from simt.cuda import compile_cuda, machine_code
from simt.sass import Cubin, disassemble
from support import floats
from support.floats import F16, F32, assert_same
from support.ptx import Device, per_lane, per_lane_kernel, run_per_lane

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("elftools") is None,
    reason="pyelftools is not installed: pip install 'simt[sass]'",
)


def words(seed: int) -> np.ndarray:
    """Bits of f32 numbers and of pairs of f16 numbers, with all their edges."""
    rng = np.random.default_rng(seed)
    singles = np.array(floats.edges(F32), np.uint32)
    halves = np.array(floats.edges(F16), np.uint32)
    pairs = halves | rng.permutation(halves) << 16
    result = np.concatenate([singles, pairs, rng.integers(0, 2**32, 512, np.uint32)])
    return rng.permutation(result).astype(np.uint32)


CASES = [
    ("86", "min.xorsign.abs.f32 %o, %i0, %i1;"),
    ("86", "max.NaN.xorsign.abs.f32 %o, %i0, %i1;"),
    ("86", "min.xorsign.abs.f16x2 %o, %i0, %i1;"),
    ("86", "max.NaN.xorsign.abs.bf16x2 %o, %i0, %i1;"),
    ("86", "min.ftz.f16x2 %o, %i0, %i1;"),
    ("86", "set.lt.ftz.f16x2.f16x2 %o, %i0, %i1;"),
    (
        "86",
        "{ .reg .pred p, q; setp.ge.ftz.f16x2 p|q, %i0, %i1; selp.b32 %o, 1, 0, p; @q add.u32 %o, %o, 2; }",
    ),
    ("75", "{ .reg .b16 h; cvt.rz.f16.f32 h, %i0; cvt.u32.u16 %o, h; }"),
    ("75", "{ .reg .b16 h; cvt.rz.f16.f32 h, %i0; cvt.f32.f16 %o, h; }"),
    ("80", "cvt.rz.f16x2.f32 %o, %i0, %i1;"),
    ("80", "cvt.rn.relu.bf16x2.f32 %o, %i0, %i1;"),
    *(
        (
            target,
            "{ .reg .b16 x, y; "
            f"cvt.rn.satfinite{relu}.{f8}.f32 x, %i0, %i1; cvt.rn.satfinite{relu}.{f8}.f16x2 y, %i1; "
            "mov.b32 %o, {x, y}; }",
        )
        for target in ("89", "90")
        for f8 in ("e4m3x2", "e5m2x2")
        for relu in ("", ".relu")
    ),
    *(
        (
            target,
            "{ .reg .b16 x, y; .reg .b32 u, v; mov.b32 {x, y}, %i0; "
            f"cvt.rn.f16x2.{f8} u, x; cvt.rn.relu.f16x2.{f8} v, y; prmt.b32 u, u, %i1, 0x1032; "
            "xor.b32 %o, u, v; }",
        )
        for target in ("89", "90")
        for f8 in ("e4m3x2", "e5m2x2")
    ),
    *(
        (
            "80",
            "{ .reg .b64 x; .reg .b32 m; .reg .pred p; setp.eq.u32 p, 0, 0; "
            "cvt.u64.u32 x, %i0; and.b64 x, x, 1; "
            f"shl.b64 x, x, 32; match.{mode}.sync.b64 {to}, x, 0xffffffff; selp.b32 %o, m, 7, p; }}",
        )
        for mode, to in (("any", "m"), ("all", "m|p"))
    ),
    *(
        (
            "90",
            "{ .reg .b32 c; shf.l.wrap.b32 c, %i0, %i1, 7; "
            f"{one}.{type_} %o, %i0, %i1; {two}.{type_} %o, %o, c; }}",
        )
        for type_ in ("s16x2", "u16x2", "s32", "u32")
        for one, two in (("min", "min"), ("max", "max"), ("add", "min"), ("add", "max"))
    ),
    ("90", "{ add.s16x2 %o, %i0, %i1; max.relu.s16x2 %o, %o, %i0; }"),
    ("75", "tanh.approx.f32 %o, %i0;"),
    ("80", "{ .reg .pred p; testp.normal.f32 p, %i0; selp.b32 %o, 1, 0, p; }"),
    ("80", "{ .reg .pred p; testp.subnormal.f32 p, %i0; selp.b32 %o, 1, 0, p; }"),
]


@lru_cache
def device_of(target: str, code: str) -> Device:
    """With a kernel for each case, k_NUMBER."""
    a, b = words(1), words(2)
    kernels = [
        per_lane_kernel(f"k_{number}", body, a, b, output=a)
        for number, (of, body) in enumerate(CASES)
        if of == target
    ]
    return Device("".join(kernels), target, code=code)


@pytest.mark.parametrize(("target", "body"), CASES)
def test_same_as_ptx(target: str, body: str) -> None:
    a, b = words(1), words(2)
    wanted, found = np.zeros_like(a), np.zeros_like(a)
    kernel = f"k_{CASES.index((target, body))}"
    run_per_lane(device_of(target, "ptx"), kernel, wanted, a, b)
    run_per_lane(device_of(target, "sass"), kernel, found, a, b)
    assert_same(found, wanted, a, b)


def test_absolute_values_are_not_negative_for_ptxas() -> None:
    """The remainder of |a|, where |-2^31| is itself: ptxas leaves out the step for negative dividends."""
    a, b = np.array([-(2**31), -7], np.int32), np.array([131603, 5], np.int32)
    body = "{ .reg .b32 x; abs.s32 x, %i0; rem.s32 %o, x, %i1; }"
    of_ptx = per_lane(body, a, b, output=np.int32, code="ptx")
    of_code = per_lane(body, a, b, output=np.int32, code="sass")
    assert of_ptx.tolist() == [-(2**31 % 131603), 2]
    assert of_code.tolist() == [2**31 % 131603, 2]


def test_ptxas_saturates_differences_from_a_negated_number_by_other_signs() -> None:
    """-(-10) - 12 is taken for an overflow: the tables of PLOP3 are those of another pair of signs."""
    a, b = np.array([-10, 10], np.int32), np.array([12, 12], np.int32)
    body = "{ .reg .b32 x; neg.s32 x, %i0; sub.sat.s32 %o, x, %i1; }"
    assert per_lane(body, a, b, output=np.int32, code="ptx").tolist() == [-2, -22]
    assert per_lane(body, a, b, output=np.int32, code="sass").tolist() == [2**31 - 1, -22]


def test_ptxas_loses_cnot_before_a_saturation_to_a_byte() -> None:
    """From -O1 on, the result comes from a register that nothing has written; no operand is loaded."""
    source = """extern "C" __global__ void k(unsigned* out, const unsigned* in) {
      unsigned zero, byte;
      asm("cnot.b32 %0, %1;" : "=r"(zero) : "r"(in[threadIdx.x]));
      asm("cvt.sat.u8.u32 %0, %1;" : "=r"(byte) : "r"(zero));
      out[threadIdx.x] = byte;
    }"""
    module = compile_cuda(source, arch="sm_80")
    loads = [
        any(x.opcode.startswith("LDG") for x in disassemble(cubin)["k"])
        for cubin in (Cubin.parse(machine_code(module, "sm_80", level), "k") for level in ("-O0", "-O1"))
    ]
    assert loads == [True, False]
