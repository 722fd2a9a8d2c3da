"""Execution as a whole: a kernel's values, divergence, barriers, faults, independence of host threads."""

from __future__ import annotations

import numpy as np
import pytest

from simt import _engine
from support.ptx import CODE, Device

VECADD = """
.visible .entry vecadd(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)
{
  .reg .pred %p<2>; .reg .f32 %f<4>; .reg .b32 %r<6>; .reg .b64 %rd<11>;
  ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [c]; ld.param.u32 %r2, [n];
  mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mov.u32 %r5, %tid.x;
  mad.lo.s32 %r1, %r3, %r4, %r5;
  setp.ge.s32 %p1, %r1, %r2;
  @%p1 bra DONE;
  cvta.to.global.u64 %rd4, %rd1; mul.wide.s32 %rd5, %r1, 4; add.s64 %rd6, %rd4, %rd5;
  cvta.to.global.u64 %rd7, %rd2; add.s64 %rd8, %rd7, %rd5;
  ld.global.f32 %f1, [%rd8]; ld.global.f32 %f2, [%rd6]; add.f32 %f3, %f2, %f1;
  cvta.to.global.u64 %rd9, %rd3; add.s64 %rd10, %rd9, %rd5;
  st.global.f32 [%rd10], %f3;
DONE:
  ret;
}
"""


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("n", [1, 31, 32, 33, 1000, 4096])
def test_vector_addition(n: int, threads: int) -> None:
    rng = np.random.default_rng(n)
    a, b = rng.random((2, n), np.float32)
    c = np.full(n + 7, -1, np.float32)
    Device(VECADD).run(
        "vecadd", a, b, c, n, grid=((n + 127) // 128, 1, 1), block=(128, 1, 1), threads=threads
    )
    assert (c[:n] == a + b).all()
    assert (c[n:] == -1).all()


def test_an_address_beyond_the_array_is_reported_with_its_place() -> None:
    a = np.zeros(128, np.float32)
    with pytest.raises(_engine.functional.ProgramFault, match="illegal address") as error:
        Device(VECADD).run("vecadd", a, a, a, 1000, grid=(8, 1, 1), block=(128, 1, 1))
    fault = error.value
    assert (fault.kernel, fault.block, fault.thread) == ("vecadd", (1, 0, 0), (0, 0, 0))
    assert fault.instruction.startswith("ld.global.f32 %f1, [%rd8]" if CODE == "ptx" else "LDG.E R")
    assert "0 bytes behind the end of" in str(fault)


@pytest.mark.parametrize("wide_jumps", [False, True])
def test_lanes_that_have_parted_keep_values_of_other_widths(wide_jumps: bool) -> None:
    """Even lanes keep a 64-bit value across a branch in which the odd lanes hold many 32-bit ones."""
    wide = "mul.wide.u32 %rd4, %r1, 0x10000001;"
    many = "".join(f"add.u32 %n{k}, %r1, {k};" for k in range(16))
    many += "".join(f"add.u32 %n0, %n0, %n{k};" for k in range(1, 16)) + "cvt.u64.u32 %rd4, %n0;"
    first, second = (many, wide) if wide_jumps else (wide, many)
    out = np.zeros(32, np.uint64)
    Device(
        ".visible .entry parted(.param .u64 out)"
        "{ .reg .pred %p; .reg .b32 %r<9>; .reg .b32 %n<16>; .reg .b64 %rd<6>;"
        "mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 1; setp.eq.u32 %p, %r2, 0;"
        f"@{'' if wide_jumps else '!'}%p bra OTHER; {first} bra DONE; OTHER: {second} DONE:"
        "ld.param.u64 %rd1, [out]; mul.wide.u32 %rd2, %r1, 8; add.u64 %rd3, %rd1, %rd2;"
        "st.global.u64 [%rd3], %rd4; ret; }"
    ).run("parted", out)
    lane = np.arange(32, dtype=np.uint64)
    assert (out == np.where(lane % 2 == 0, lane * 0x10000001, 16 * lane + 120)).all()


def test_addresses_of_parameters() -> None:
    """In .param they fit into 32 bits, as Triton assumes; cvta.param makes them generic."""
    text = """
    .visible .entry k(.param .b64 out, .param .align 16 .b8 s[32])
    {
      .reg .b64 %o, %a, %b, %v; .reg .b32 %l, %g, %x; .reg .pred %p;
      ld.param.b64 %o, [out]; mov.u32 %l, %tid.x; mad.wide.u32 %o, %l, 32, %o;
      mov.b32 %g, -1; mov.b32 %x, s; cvt.u64.u32 %a, %x; cvta.param.u64 %b, %a;
      ld.u64 %v, [%b+8]; st.global.u64 [%o], %v;
      and.b32 %x, %l, 3; mad.wide.u32 %b, %x, 8, %b; ld.global.u64 %v, [%b]; st.global.u64 [%o+8], %v;
      mad.wide.u32 %a, %x, 8, %a; ld.param.u64 %v, [%a]; st.global.u64 [%o+16], %v;
      cvta.to.param.u64 %a, %b; ld.param::entry.u64 %v, [%a]; isspacep.param %p, %b;
      selp.u64 %v, %v, 0, %p; st.global.u64 [%o+24], %v;
      setp.ne.s32 %p, %g, -1; @%p trap;
      ret;
    }
    """
    s = np.arange(11, 15, dtype=np.uint64)
    out = np.zeros((32, 4), np.uint64)
    Device(text).run("k", out, np.void(s.tobytes()))
    mine = s[np.arange(32) % 4]
    assert (out[:, 0] == 12).all()
    for column in (1, 2, 3):
        assert (out[:, column] == mine).all()
