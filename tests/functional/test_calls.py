"""Calls: results, parameters by value and in registers, recursion, indirect calls, brx.idx, alloca."""

from __future__ import annotations

import numpy as np
import pytest

from simt import _engine
from simt.errors import PtxError
from support.ptx import CODE, Device, per_lane, ptx_only

LANES = np.arange(32, dtype=np.uint32)


def test_a_result_and_two_parameters() -> None:
    out = np.zeros(32, np.uint32)
    Device("""
    .func (.param .b32 result) subtract(.param .b32 a, .param .b32 b)
    {
      .reg .b32 %r<4>;
      ld.param.b32 %r1, [a]; ld.param.b32 %r2, [b];
      sub.u32 %r3, %r1, %r2;
      st.param.b32 [result], %r3;
      ret;
    }
    .visible .entry k(.param .b64 out)
    {
      .reg .b32 %r<4>; .reg .b64 %a<3>;
      mov.u32 %r1, %tid.x; mov.u32 %r2, 100;
      { .param .b32 p0; .param .b32 p1; .param .b32 r0;
        st.param.b32 [p0], %r2; st.param.b32 [p1], %r1;
        call.uni (r0), subtract, (p0, p1);
        ld.param.b32 %r3, [r0]; }
      ld.param.b64 %a1, [out]; mad.wide.u32 %a2, %r1, 4, %a1; st.global.b32 [%a2], %r3;
      ret;
    }""").run("k", out)
    assert (out == 100 - LANES).all()


REGISTERS = """
.func (.reg .b32 %sum, .reg .b64 %wide) both(.reg .b32 %x, .reg .b64 %y, .reg .f32 %z)
{
  .reg .b64 %t;
  cvt.rzi.u32.f32 %sum, %z;
  add.u32 %sum, %sum, %x;
  cvt.u64.u32 %t, %x;
  mul.lo.u64 %wide, %t, %y;
  ret;
}
"""


def test_parameters_and_results_in_registers() -> None:
    """As passed in PTX ISA 1 and 2, and still in hand-written PTX."""
    out = np.zeros(64, np.uint64)
    Device(
        REGISTERS
        + """
    .visible .entry k(.param .b64 out)
    {
      .reg .b32 %r<4>; .reg .b64 %a<5>;
      mov.u32 %r1, %tid.x;
      call (%r2, %a3), both, (%r1, 1000000007, 0f40F00000);
      cvt.u64.u32 %a4, %r2;
      ld.param.b64 %a1, [out]; mad.wide.u32 %a2, %r1, 16, %a1;
      st.global.b64 [%a2], %a4; st.global.b64 [%a2+8], %a3;
      ret;
    }"""
    ).run("k", out)
    assert (out[0::2] == LANES + 7).all()
    assert (out[1::2] == LANES.astype(np.uint64) * 1000000007).all()


def test_a_guarded_call_leaves_other_lanes_alone() -> None:
    got = per_lane(
        "setp.lt.u32 %odd, %i0, 10; mov.b32 %o, 77; @%odd call (%o, _), both, (%i0, 1, 0f00000000);",
        LANES,
        registers=".reg .pred %odd;",
        functions=REGISTERS,
    )
    assert (got == np.where(LANES < 10, LANES, 77)).all()


def test_structures_by_value() -> None:
    """A 24-byte structure is passed and returned; the callee's changes do not affect the caller's copy."""
    out = np.zeros(64, np.uint32)
    Device("""
    .func (.param .align 8 .b8 result[24]) twice(.param .align 8 .b8 s[24])
    {
      .reg .b32 %r<3>; .reg .b64 %d<3>;
      ld.param.b32 %r1, [s+4]; add.u32 %r1, %r1, %r1; st.param.b32 [result+4], %r1;
      ld.param.b64 %d1, [s+16]; add.u64 %d1, %d1, %d1; st.param.b64 [result+16], %d1;
      ret;
    }
    .visible .entry k(.param .b64 out)
    {
      .reg .b32 %r<6>; .reg .b64 %a<5>;
      mov.u32 %r1, %tid.x; cvt.u64.u32 %a3, %r1; add.u64 %a3, %a3, 5;
      .param .align 8 .b8 p[24]; .param .align 8 .b8 q[24];
      st.param.b32 [p+4], %r1; st.param.b64 [p+16], %a3;
      call (q), twice, (p);
      ld.param.b32 %r2, [q+4]; ld.param.b64 %a4, [q+16]; cvt.u32.u64 %r3, %a4;
      ld.param.b64 %a1, [out]; mad.wide.u32 %a2, %r1, 8, %a1;
      st.global.v2.b32 [%a2], {%r2, %r3};
      ret;
    }""").run("k", out)
    assert (out[0::2] == 2 * LANES).all()
    assert (out[1::2] == 2 * (LANES + 5)).all()


FACTORIAL = """
.func (.param .b64 result) factorial(.param .b32 n)
{
  .reg .b32 %r<3>; .reg .b64 %d<4>; .reg .pred %p;
  ld.param.b32 %r1, [n];
  setp.gt.u32 %p, %r1, 1;
  @%p bra MORE;
  mov.b64 %d1, 1;
  st.param.b64 [result], %d1;
  ret;
MORE:
  sub.u32 %r2, %r1, 1;
  .param .b32 m; .param .b64 f;
  st.param.b32 [m], %r2;
  call (f), factorial, (m);
  ld.param.b64 %d2, [f]; cvt.u64.u32 %d3, %r1; mul.lo.u64 %d1, %d2, %d3;
  st.param.b64 [result], %d1;
  ret;
}
"""


def test_recursion_whose_depth_differs_between_lanes() -> None:
    got = per_lane(
        ".param .b32 n; .param .b64 f; st.param.b32 [n], %i0;call (f), factorial, (n); ld.param.b64 %o, [f];",
        LANES % 21,
        output=np.uint64,
        functions=FACTORIAL,
    )
    assert got.tolist() == [int(np.prod(np.arange(1, n + 1, dtype=object))) for n in LANES % 21]


@pytest.mark.slow
def test_recursion_without_end_is_a_stack_overflow() -> None:
    endless = """
    .func f(.param .b32 n) { .reg .b32 %r; ld.param.b32 %r, [n]; .param .b32 m; st.param.b32 [m], %r;
      call f, (m); ret; }
    .func g() { call g; ret; }
    .visible .entry deep() { .param .b32 n; st.param.b32 [n], 1; call f, (n); ret; }
    .visible .entry bare() { call g; ret; }"""
    for kernel in ("deep", "bare"):
        with pytest.raises(_engine.functional.ProgramFault, match="bytes of stack") as error:
            Device(endless).run(kernel)
        assert error.value.kind == "stack overflow"
        place = "in function `" if CODE == "ptx" else f"{kernel}+0x"
        assert place in str(error.value)


def test_calls_of_known_depth_have_the_stack_that_they_need() -> None:
    """Two functions with 12,000 bytes each, where calls of unknown depth have 16 KiB."""
    body = ".local .align 4 .b8 room[12000]; .reg .b32 %r, %a, %n; ld.param.b32 %n, [n]; mov.u32 %a, room;"
    functions = f"""
    .func (.param .b32 r) inner(.param .b32 n) {{
      {body} mad.lo.u32 %a, %n, 4, %a; st.local.u32 [%a], %n; ld.local.u32 %r, [%a];
      st.param.b32 [r], %r; ret; }}
    .func (.param .b32 r) outer(.param .b32 n) {{
      {body} mad.lo.u32 %a, %n, 4, %a; st.local.u32 [%a], 7;
      .param .b32 m, s; st.param.b32 [m], %n; call (s), inner, (m); ld.param.b32 %r, [s];
      ld.local.u32 %n, [%a]; add.u32 %r, %r, %n; st.param.b32 [r], %r; ret; }}
    """
    last = np.full(32, 2999, np.uint32) - LANES.astype(np.uint32)
    call = ".param .b32 n, r; st.param.b32 [n], %i0; call (r), outer, (n); ld.param.b32 %o, [r];"
    got = per_lane(call, last, output=np.uint32, functions=functions)
    assert got.tolist() == (last + 7).tolist()


POINTERS = """
.func (.param .b32 r) plus(.param .b32 a, .param .b32 b)
{ .reg .b32 %r<4>; ld.param.b32 %r1, [a]; ld.param.b32 %r2, [b]; add.u32 %r3, %r1, %r2;
  st.param.b32 [r], %r3; ret; }
.func (.param .b32 r) times(.param .b32 a, .param .b32 b)
{ .reg .b32 %r<4>; ld.param.b32 %r1, [a]; ld.param.b32 %r2, [b]; mul.lo.u32 %r3, %r1, %r2;
  st.param.b32 [r], %r3; ret; }
.func (.param .b32 r) lone(.param .b32 a)
{ .reg .b32 %r; ld.param.b32 %r, [a]; st.param.b32 [r], %r; ret; }
.global .align 8 .u64 table[3] = {plus, times, lone};
"""
CALL_BY_POINTER = """
  proto: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b32 _);
  .param .b32 x; .param .b32 y; .param .b32 z;
  st.param.b32 [x], %i0; st.param.b32 [y], 3;
  call (z), %f, (x, y), proto;
  ld.param.b32 %o, [z];"""


@pytest.mark.parametrize("by", ["table", "mov"])
def test_lanes_call_different_functions_through_pointers(by: str) -> None:
    if by == "table":
        choose = """and.b32 %w, %i0, 1; mov.u64 %t, table; mad.wide.u32 %t, %w, 8, %t;
                    ld.global.u64 %f, [%t];"""
    else:
        choose = """and.b32 %w, %i0, 1; setp.eq.u32 %odd, %w, 1; mov.u64 %t, plus; mov.u64 %f, times;
                    @!%odd mov.u64 %f, %t;"""
    got = per_lane(
        choose + CALL_BY_POINTER,
        LANES,
        registers=".reg .b64 %t, %f; .reg .b32 %w; .reg .pred %odd;",
        functions=POINTERS,
    )
    assert (got == np.where(LANES % 2, LANES * 3, LANES + 3)).all()


@pytest.mark.parametrize(
    ("pointer", "message"),
    [
        ("mov.b64 %f, 0;", "through a null pointer"),
        ("mov.b64 %f, 4096;", "not the address of a function"),
        pytest.param(
            "mov.b64 %f, lone;",
            "another number of parameters",
            marks=ptx_only("machine code does not know a function's parameters"),
        ),
    ],
)
def test_wrong_pointers(pointer: str, message: str) -> None:
    with pytest.raises(_engine.functional.ProgramFault, match=message):
        per_lane(pointer + CALL_BY_POINTER, LANES, registers=".reg .b64 %f;", functions=POINTERS)


def test_call_targets_and_alias() -> None:
    got = per_lane(
        "targets: .calltargets plus, times; .param .b32 x, y, z; mov.u64 %f, product;"
        "st.param.b32 [x], %i0; st.param.b32 [y], 3; call (z), %f, (x, y), targets; ld.param.b32 %o, [z];",
        LANES,
        registers=".reg .b64 %f;",
        functions=POINTERS
        + ".func (.param .b32 r) product(.param .b32 a, .param .b32 b);\n.alias product, times;\n",
    )
    assert (got == LANES * 3).all()


BRANCHES = """
{{ ts: .branchtargets A, B, C, B;
  {guard} brx.idx %i0, ts;
  mov.b32 %o, 5; bra.uni E; }}
A: mov.b32 %o, 10; bra.uni E;
B: mov.b32 %o, 20; bra.uni E;
C: mov.b32 %o, 30;
E: bar.warp.sync 0xffffffff; add.u32 %o, %o, %i0;"""


def test_branch_by_index() -> None:
    got = per_lane(BRANCHES.format(guard=""), LANES % 4)
    assert (got == np.array([10, 20, 30, 20])[LANES % 4] + LANES % 4).all()


def test_guarded_branch_by_index() -> None:
    got = per_lane(
        "setp.lt.u32 %few, %i0, 4;" + BRANCHES.format(guard="@%few"), LANES % 6, registers=".reg .pred %few;"
    )
    assert (got == np.array([10, 20, 30, 20, 5, 5])[LANES % 6] + LANES % 6).all()


@ptx_only("machine code reads the address of its target, without a check, behind the list")
def test_branch_by_index_beyond_the_list() -> None:
    with pytest.raises(_engine.functional.ProgramFault, match="target 4 of 4"):
        per_lane(BRANCHES.format(guard=""), LANES % 5)


def test_two_lists_of_one_name() -> None:
    got = per_lane(
        """mov.b32 %o, 0;
        { ts: .branchtargets A, B; brx.idx %i0, ts; A: add.u32 %o, %o, 1; B: }
        { ts: .branchtargets A, B; brx.idx %i0, ts; A: add.u32 %o, %o, 2; B: }""",
        LANES % 2,
    )
    assert (got == np.where(LANES % 2, 0, 3)).all()


def test_functions_without_instructions() -> None:
    got = per_lane("call nothing; mov.b32 %o, %i0;", LANES, functions=".func nothing() { }")
    assert (got == LANES).all()


def test_exit_in_a_function_ends_the_thread() -> None:
    got = per_lane(
        "mov.b32 %o, 1; .param .b32 x; st.param.b32 [x], %i0; call leave, (x);",
        LANES,
        functions=".func leave(.param .b32 a) { .reg .b32 %r; .reg .pred %p; ld.param.b32 %r, [a];"
        "setp.lt.u32 %p, %r, 5; @%p exit; ret; }",
    )
    assert (got == (LANES >= 5)).all()


ALLOCA = """
.func (.param .b32 r) reverse_sum(.param .b32 n)
{
  .reg .b32 %r<6>; .reg .b64 %a<8>; .reg .pred %p;
  ld.param.b32 %r1, [n];
  cvt.u64.u32 %a1, %r1; shl.b64 %a1, %a1, 2;
  alloca.u64 %a2, %a1, 16;
  and.b64 %a3, %a2, 15; cvt.u32.u64 %r5, %a3;
  cvta.local.u64 %a4, %a2;
  mov.b32 %r2, 0;
FILL:
  setp.ge.u32 %p, %r2, %r1; @%p bra SUM;
  mad.wide.u32 %a5, %r2, 4, %a4; st.u32 [%a5], %r2; add.u32 %r2, %r2, 1; bra FILL;
SUM:
  setp.eq.u32 %p, %r2, 0; @%p bra DONE;
  sub.u32 %r2, %r2, 1; mad.wide.u32 %a5, %r2, 4, %a2; ld.local.u32 %r3, [%a5]; add.u32 %r5, %r5, %r3;
  bra SUM;
DONE:
  st.param.b32 [r], %r5;
  ret;
}
"""


def test_alloca_is_aligned_and_freed_by_the_return() -> None:
    """200 calls take at most 124 bytes each; together they would overflow the stack."""
    got = per_lane(
        """.param .b32 x; .param .b32 y; mov.b32 %o, 0; mov.b32 %count, 0;
        LOOP: st.param.b32 [x], %i0; call (y), reverse_sum, (x); ld.param.b32 %part, [y];
        add.u32 %o, %o, %part; add.u32 %count, %count, 1; setp.lt.u32 %more, %count, 200; @%more bra LOOP;""",
        LANES,
        registers=".reg .b32 %count, %part; .reg .pred %more;",
        functions=ALLOCA,
    )
    assert (got == 200 * LANES * (LANES - 1) // 2).all()


def test_stackrestore_gives_back_what_alloca_took() -> None:
    loop = """mov.b32 %o, 0;
        LOOP: {save} alloca.u64 %a, 256; cvt.u32.u64 %o, %a; {restore}
        add.u32 %count, %count, 1; setp.lt.u32 %more, %count, 100; @%more bra LOOP;"""
    registers = ".reg .b32 %count; .reg .b64 %a, %s; .reg .pred %more;"
    got = per_lane(
        "mov.b32 %count, 0;" + loop.format(save="stacksave.u64 %s;", restore="stackrestore.u64 %s;"),
        LANES,
        registers=registers,
    )
    assert (got == got[0]).all()
    if CODE == "sass":
        return  # it moves the stack pointer, without a check: the first access below the stack is the fault
    with pytest.raises(_engine.functional.ProgramFault, match="alloca of 256 bytes"):
        per_lane("mov.b32 %count, 0;" + loop.format(save="", restore=""), LANES, registers=registers)
    with pytest.raises(_engine.functional.ProgramFault, match="no stacksave has given"):
        per_lane("mov.b32 %o, 0; stackrestore.u64 16;", LANES)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("call (%o), vprintf, (%i0);", "takes 2 arguments"),
        ("call (%o), cudaLaunchDeviceV2, (%i0, %i0);", "kernels that launch kernels"),
        ("call (%o), somewhere, (%i0);", "`somewhere` is not defined"),
        ("call (%o), mine, (%i0, %i0);", "takes 1 arguments and gives 1 results"),
    ],
)
def test_calls_that_are_refused_when_loading(call: str, message: str) -> None:
    declarations = """
    .extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
    .extern .func (.param .b32 r) cudaLaunchDeviceV2(.param .b64 p, .param .b64 s);
    .extern .func (.param .b32 r) somewhere(.param .b32 p);
    .func (.reg .b32 %r) mine(.reg .b32 %p) { mov.b32 %r, %p; ret; }"""
    with pytest.raises(PtxError, match=message):
        per_lane(call, LANES, functions=declarations)


def test_lanes_that_part_keep_their_registers() -> None:
    """A 64-bit register written by some lanes must not overlap 32-bit ones of others."""
    got = per_lane(
        """setp.lt.u32 %low, %i0, 16; add.u32 %v, %i0, 7; @!%low bra HIGH;
        mov.b64 %w, -1; st.shared.b64 [buffer], %w; mov.b32 %o, 1; bra MEET;
        HIGH: add.u32 %o, %v, 1;
        MEET:""",
        LANES,
        registers=".reg .b32 %v; .reg .b64 %w; .reg .pred %low; .shared .b64 buffer;",
    )
    assert (got == np.where(LANES < 16, 1, LANES + 8)).all()


def test_lanes_in_different_functions_keep_their_registers() -> None:
    """The lower lanes wait in one function, with live registers, for the others in another."""
    functions = """
    .shared .b32 flag;
    .func (.param .b32 r) waits(.param .b32 n)
    { .reg .b32 %a<9>; .reg .pred %p; ld.param.b32 %a1, [n];
      add.u32 %a2, %a1, 1; add.u32 %a3, %a1, 2; add.u32 %a4, %a1, 3;
      LOOP: ld.volatile.shared.b32 %a5, [flag]; setp.eq.u32 %p, %a5, 0; @%p bra LOOP;
      add.u32 %a6, %a2, %a3; add.u32 %a6, %a6, %a4; st.param.b32 [r], %a6; ret; }
    .func (.param .b32 r) sets(.param .b32 n)
    { .reg .b64 %w<9>; .reg .b32 %x; ld.param.b32 %x, [n];
      mov.b64 %w1, -1; mov.b64 %w2, -2; mov.b64 %w3, -3; add.u64 %w4, %w1, %w2; add.u64 %w4, %w4, %w3;
      st.volatile.shared.b32 [flag], 1; cvt.u32.u64 %x, %w4; st.param.b32 [r], %x; ret; }
    """
    got = per_lane(
        """st.shared.b32 [flag], 0; setp.ge.u32 %low, %i0, 16; @%low bra LOW;
        { .param .b32 x; .param .b32 y; st.param.b32 [x], %i0; call (y), sets, (x); ld.param.b32 %o, [y]; }
        bra MEET;
        LOW:
        { .param .b32 x; .param .b32 y; st.param.b32 [x], %i0; call (y), waits, (x); ld.param.b32 %o, [y]; }
        MEET:""",
        LANES,
        registers=".reg .pred %low;",
        functions=functions,
    )
    assert (got == np.where(LANES >= 16, 3 * LANES + 6, np.uint32(2**32 - 6))).all()


VECTORS = """
.func (.reg .v2 .u32 swapped) swap(.reg .v2 .u32 pair)
{
  mov.u32 swapped.x, pair.y; mov.u32 swapped.y, pair.x; ret;
}
.func (.reg .v4 .f32 product, .reg .u32 count) scale(.reg .u32 before, .reg .v4 .f32 a, .reg .f32 b)
{
  mul.f32 product.x, a.x, b; mul.f32 product.y, a.y, b; mul.f32 product.z, a.z, b; mul.f32 product.w, a.w, b;
  add.u32 count, before, 1; ret;
}
.func (.reg .v2 .f64 o) doubles(.reg .v2 .f64 a) { sub.f64 o.x, a.x, a.y; mov.f64 o.y, a.x; ret; }
.func (.reg .v2 .b16 o) halves(.reg .v2 .b16 a) { mov.b16 o.x, a.y; add.u16 o.y, a.x, 1; ret; }
"""


def test_vector_registers_as_parameters_and_results() -> None:
    body = """
    { .reg .v2 .u32 p; .reg .v4 .f32 f; .reg .v2 .f64 d; .reg .v2 .b16 h; .reg .u32 n, x;
      mov.u32 p.x, %lane0; add.u32 p.y, %lane0, 100;
      call (p), swap, (p);
      cvt.rn.f32.u32 f.x, p.x; cvt.rn.f32.u32 f.y, p.y; mov.f32 f.z, 0f40000000; mov.f32 f.w, 0f40800000;
      call (f, n), scale, (p.y, f, 0f40400000);
      cvt.f64.f32 d.x, f.x; cvt.f64.f32 d.y, f.y; call (d), doubles, (d);
      cvt.u16.u32 h.x, n; mov.b16 h.y, 7; call (h), halves, (h);
      cvt.rzi.u32.f64 x, d.x; mov.u32 %o, x; cvt.rzi.u32.f64 x, d.y; mad.lo.u32 %o, x, 1000, %o;
      cvt.rzi.u32.f32 x, f.w; mad.lo.u32 %o, x, 1000000, %o;
      cvt.u32.u16 x, h.y; mad.lo.u32 %o, x, 16777216, %o; cvt.u32.u16 x, h.x; add.u32 %o, %o, x; }
    """
    found = per_lane(body, functions=VECTORS, target="80")
    # swapped: (lane + 100, lane); times 3; difference 300; count = lane + 1, and one more.
    x, y = 3 * (LANES + 100), 3 * LANES
    wanted = (x - y) + 1000 * x + 1_000_000 * 12 + 16777216 * (LANES + 2) + 7
    assert (found == wanted.astype(np.uint32)).all()


def test_a_vector_result_that_is_discarded_and_an_indirect_call() -> None:
    body = """
    { .reg .v2 .u32 p; .reg .b64 f;
      mov.u32 p.x, %lane0; mov.u32 p.y, 5; call (_), swap, (p);
      mov.u64 f, swap; P: .callprototype (.reg .v2 .u32 _) _ (.reg .v2 .u32 _); call (p), f, (p), P;
      mad.lo.u32 %o, p.x, 100, p.y; }
    """
    assert (per_lane(body, functions=VECTORS, target="80") == 500 + LANES).all()


@ptx_only("ptxas passes no register of 128 bits on sm_80")
def test_registers_of_128_bits_as_parameters() -> None:
    functions = ".func (.reg .b128 o) same(.reg .b128 a) { mov.b128 o, a; ret; }"
    body = """{ .reg .b128 q; .reg .b64 x, y;
      cvt.u64.u32 x, %lane0; mov.b64 y, 0x100000007; mov.b128 q, {x, y};
      call (q), same, (q); mov.b128 {x, y}, q; shr.u64 y, y, 30; add.u64 x, x, y; cvt.u32.u64 %o, x; }"""
    assert (per_lane(body, functions=functions) == LANES + 4).all()
