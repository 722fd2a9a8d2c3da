"""The registers that instructions read and write, and that no two live ones share a place."""

from __future__ import annotations

import random
from typing import Any

import pytest

from simt import _engine
from support.ptx_dump import HEADER, check_allocation

REGISTERS = (
    ".reg .pred %p<4>; .reg .b32 %r<12>; .reg .b64 %rd<6>; .reg .f32 %f<6>; .reg .b128 %q<2>;"
    " .reg .v4 .f32 %v;"
)


@pytest.mark.parametrize(
    ("text", "reads", "writes"),
    [
        ("add.s32 %r1, %r2, %r1;", "%r2 %r1", "%r1"),
        ("@!%p1 mov.u32 %r1, %tid.x;", "%p1", "%r1"),
        ("setp.lt.and.s32 %p1|%p2, %r1, %r2, !%p3;", "%r1 %r2 %p3", "%p1 %p2"),
        ("st.global.v2.b32 [%rd1+8], {%r1, %r2};", "%rd1 %r1 %r2", ""),
        ("ld.global.v2.b32 {%r1, _}, [%rd1], %rd2;", "%rd1 %rd2", "%r1"),
        ("red.global.add.u32 [%rd1], %r1;", "%rd1 %r1", ""),
        ("atom.global.cas.b32 %r1, [%rd1], %r2, %r3;", "%rd1 %r2 %r3", "%r1"),
        ("atom.add.u32 _, [%rd1], %r2;", "%rd1 %r2", ""),
        ("bar.sync %r1, %r2;", "%r1 %r2", ""),
        ("barrier.cta.red.popc.aligned.u32 %r1, %r2, %r3, !%p1;", "%r2 %r3 %p1", "%r1"),
        ("bar.warp.sync %r1;", "%r1", ""),
        ("bra X; X:", "", ""),
        ("T: .branchtargets X; X: brx.idx %r1, T;", "%r1", ""),
        ("call (%r1, %f1), f, (%r2, %rd1);", "%r2 %rd1", "%r1 %f1"),
        ("call f, (%r2);", "%r2", ""),
        ("call (%r1), %rd1, (%r2), f;", "%rd1 %r2", "%r1"),
        ("call %rd1;", "%rd1", ""),
        ("cp.async.ca.shared.global [%r1], [%rd1], 16, %r2;", "%r1 %rd1 %r2", ""),
        ("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd1, {%r1, %r2}], [%r3];",
         "%rd1 %r1 %r2 %r3", ""),
        ("mbarrier.arrive.shared.b64 %rd1, [%r1], %r2;", "%r1 %r2", "%rd1"),
        ("mbarrier.arrive.shared.b64 _, [%r1];", "%r1", ""),
        ("mbarrier.init.shared.b64 [%r1], %r2;", "%r1 %r2", ""),
        ("mbarrier.try_wait.parity.shared.b64 %p1, [%r1], %r2;", "%r1 %r2", "%p1"),
        ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1,%f2}, {%r1}, {%r2}, {%f1,%f3};",
         "%r1 %r2 %f1 %f3", "%f1 %f2"),
        ("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1,%f2}, %rd1, %rd2, %p1, 1, 1, 0, 0;",
         "%f1 %f2 %rd1 %rd2 %p1", "%f1 %f2"),
        ("wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%rd1], {%f1,%f2}, %r1;",
         "%rd1 %f1 %f2 %r1", ""),
        ("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r1], {%r2};", "%r1 %r2", ""),
        ("tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r1,%r2}, [%r3];", "%r3", "%r1 %r2"),
        ("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 32;", "%r1", ""),
        ("tex.2d.v4.f32.f32 {%f1,_,_,_}|%p1, [%rd1, {%f2, %f3}];", "%rd1 %f2 %f3", "%f1 %p1"),
        ("sust.b.1d.b32.trap [%rd1, {%r1}], {%r2};", "%rd1 %r1 %r2", ""),
        ("mov.f32 %v.x, %f1;", "%f1", "%v"),
        ("mov.f32 %f1, %v.y;", "%v", "%f1"),
        ("shfl.sync.idx.b32 %r1|%p1, %r2, %r3, 31, -1;", "%r2 %r3", "%r1 %p1"),
        ("mov.b64 {%r1, %r2}, %rd1;", "%rd1", "%r1 %r2"),
        ("mov.b64 %rd1, {%r1, %r2};", "%r1 %r2", "%rd1"),
        ("nanosleep.u32 %r1;", "%r1", ""),
        ("stackrestore.u64 %rd1;", "%rd1", ""),
        ("prefetch.global.L1 [%rd1];", "%rd1", ""),
        ("multimem.red.add.u32 [%rd1], %r1;", "%rd1 %r1", ""),
        ("multimem.ld_reduce.add.u32 %r1, [%rd1];", "%rd1", "%r1"),
        ("fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128;", "%rd1", ""),
        ("ret;", "", ""),
    ],
)  # fmt: skip
def test_accesses(text, reads, writes):
    module = _engine.PtxModule(f"{HEADER}.func f {{ {REGISTERS} {text} }}".encode())
    names = [name for name, _, _ in module.dump()["functions"][0]["registers"]]
    read, written = module.accesses(0, 0)
    assert " ".join(names[r] for r in read) == reads
    assert " ".join(names[r] for r in written) == writes


def allocated(body: str) -> dict[str, Any]:
    return check_allocation(_engine.PtxModule(f"{HEADER}.func f {{ {REGISTERS} {body} }}".encode()), 0)


def test_empty():
    assert allocated("") == {"places": [None] * 34, "registers": 0, "predicates": 0, "max_live": 0}


def test_chain_takes_two():
    chain = "".join(f"add.s32 %r{i + 1}, %r{i}, 1;" for i in range(11))
    allocation = allocated("mov.u32 %r0, 1;" + chain + "st.global.u32 [0], %r11;")
    assert (allocation["registers"], allocation["max_live"]) == (2, 1)


def test_widths_are_aligned():
    allocation = allocated(
        "mov.u32 %r0, 1; mov.u64 %rd0, 1; mov.b128 %q0, {%rd0, %rd0}; mov.f32 %v.x, 1.0;"
        "st.global.b128 [%rd0], %q0; st.global.b32 [%rd0], %v.x; st.global.u32 [%rd0], %r0;"
    )
    assert (allocation["registers"], allocation["max_live"]) == (10, 8)


def test_a_guarded_write_keeps_the_old_value():
    allocation = allocated(
        "mov.u32 %r0, 1; setp.eq.u32 %p0, %r0, 1; @%p0 mov.u32 %r0, 2; mov.u32 %r1, 5;"
        "st.global.u32 [%r1], %r0;"
    )
    assert allocation["places"][4] != allocation["places"][5]


def test_values_live_round_a_loop():
    allocation = allocated(
        "mov.u32 %r0, 0; mov.u32 %r9, 7; L: add.s32 %r1, %r0, %r9; mov.u32 %r2, %r1; add.s32 %r0, %r2, 1;"
        "setp.lt.u32 %p0, %r0, 10; @%p0 bra L; ret;"
    )
    nine, others = allocation["places"][13], [allocation["places"][4 + k] for k in range(3)]
    assert nine not in others


def test_registers_of_the_signature_keep_their_places():
    module = _engine.PtxModule(
        f"{HEADER}.func (.reg .u32 out) f (.reg .u32 in) {{ .reg .u32 a, b;"
        "mov.u32 a, in; mov.u32 b, a; st.global.u32 [a], b; mov.u32 out, 1; ret; }".encode()
    )
    places = module.allocation(0)["places"]
    assert len({places[0], places[1]} & {places[2], places[3]}) == 0 and places[0] != places[1]


def test_vectors_lie_in_a_row():
    """As machine code requires. A vector whose registers an earlier vector has in another order is placed
    elsewhere.
    """
    allocation = allocated(
        "ld.global.u32 %r9, [0]; ld.global.v4.u32 {%r3, %r1, %r0, %r2}, [16];"
        "ld.global.v2.u64 {%rd2, %rd1}, [0];"
        "st.global.v2.u32 [%rd1], {%r1, %r0}; st.global.v2.u32 [%rd2], {%r0, %r1}; st.global.u32 [0], %r9;"
        "st.global.v2.u32 [0], {%r2, %r2}; st.global.u32 [0], %r3;"
    )
    r, rd = allocation["places"][4:16], allocation["places"][16:]
    assert (r[3] % 4, r[1] - r[3], r[0] - r[3], r[2] - r[3]) == (0, 1, 2, 3)
    assert (rd[2] % 4, rd[1] - rd[2]) == (0, 2)
    assert allocation["registers"] == 12 and allocation["max_live"] == 9  # four wide, eight narrow


@pytest.mark.parametrize("seed", range(60))
def test_random_programs(seed):
    rng = random.Random(seed)
    count = rng.randrange(2, 30)

    def one(kind: str) -> str:
        return f"%{kind}{rng.randrange({'p': 4, 'r': 12, 'rd': 6, 'f': 6, 'q': 2}[kind])}"

    def line() -> str:
        forms = [
            f"add.s32 {one('r')}, {one('r')}, {one('r')};",
            f"mul.wide.u32 {one('rd')}, {one('r')}, {one('r')};",
            f"mov.b128 {one('q')}, {{{one('rd')}, {one('rd')}}};",
            f"mov.b64 {{{one('r')}, {one('r')}}}, {one('rd')};",
            f"setp.lt.s32 {one('p')}, {one('r')}, 3;", f"st.global.b128 [{one('rd')}], {one('q')};",
            f"mov.f32 %v.x, {one('f')};", f"mov.f32 {one('f')}, %v.y;",
            f"bra L{rng.randrange(count)};", "ret;",
            f"ld.global.v2.f32 {{{one('f')}, {one('f')}}}, [{one('rd')}];",
            f"st.global.v4.b32 [{one('rd')}], {{{one('r')}, {one('f')}, {one('r')}, {one('r')}}};",
            f"ld.shared.v2.u64 {{{one('rd')}, {one('rd')}}}, [{one('r')}];",
        ]  # fmt: skip
        guard = f"@{one('p')} " if rng.random() < 0.4 else ""
        return guard + rng.choice(forms)

    allocated("\n".join(f"L{i}: {line()}" for i in range(count)))


def test_real_shape_of_a_matrix_product():
    """An 8-by-8 register tile with 64-bit addresses: uses almost exactly as many registers as are live."""
    body = ["mov.u64 %a, 0; mov.u64 %b, 0;", *(f"mov.f32 %c{k}, 0f00000000;" for k in range(64)), "L:"]
    body += [f"ld.shared.f32 %x{k}, [%a+{4 * k}]; ld.shared.f32 %y{k}, [%b+{4 * k}];" for k in range(8)]
    body += [f"fma.rn.f32 %d{k}, %x{k // 8}, %y{k % 8}, %c{k}; mov.f32 %c{k}, %d{k};" for k in range(64)]
    body += ["add.s64 %a, %a, 32; setp.lt.u64 %p, %a, 4096; @%p bra L;"]
    body += [f"st.global.f32 [%b+{4 * k}], %c{k};" for k in range(64)]
    text = ".reg .b64 %a, %b; .reg .pred %p; .reg .f32 %c<64>, %d<64>, %x<8>, %y<8>;" + "\n".join(body)
    allocation = check_allocation(_engine.PtxModule(f"{HEADER}.func f {{ {text} }}".encode()), 0)
    assert allocation["max_live"] == 64 + 16 + 4 + 1 - 1
    assert allocation["registers"] <= allocation["max_live"] + 2
