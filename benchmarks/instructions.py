"""Nanoseconds that functional execution takes for one instruction of a full warp, on one thread.

usage: python benchmarks/instructions.py ["add.u32 %r0, %r1, %r2" ...]

Registers: %r 32 bits, %d 64, %h 16, %f f32, %g f64, %p and %q predicates. 1 to 3 hold values, 0 is for the
result. For matrices: %m and %c, shared memory at %room, and %row, other 16 bytes of it for each lane. A wgmma
is counted for one of its four warps.
"""

from __future__ import annotations

import sys
import time

from simt import _engine


def registers(letter: str, count: int, first: int = 0) -> str:
    return "{" + ", ".join(f"%{letter}{first + i}" for i in range(count)) + "}"


def product(text: str, d: int, a: int, b: int, letter: str = "c") -> str:
    """Accumulators and operands in registers, so many of a lane."""
    accumulators = registers(letter, d)
    return f"{text} {accumulators}, {registers('m', a)}, {registers('m', b, 8)}, {accumulators}"


MMA, WMMA, WGMMA = "mma.sync.aligned", "wmma.mma.sync.aligned", "wgmma.mma_async.sync.aligned"
# Descriptors of operands that lie swizzled by 128 bytes.
OPERANDS = "0x4000004000010000, 0x4000004000010400"
INSTRUCTIONS = [
    "add.u32 %r0, %r1, %r2",
    "@%p add.u32 %r0, %r1, %r2",
    "mad.lo.s32 %r0, %r1, %r2, %r3",
    "mul.hi.u32 %r0, %r1, %r2",
    "mul.wide.s32 %d0, %r1, 4",
    "add.s64 %d0, %d1, %d2",
    "mul.lo.s64 %d0, %d1, %d2",
    "min.s32 %r0, %r1, %r2",
    "div.s32 %r0, %r1, %r2",
    "rem.u32 %r0, %r1, %r2",
    "div.u64 %d0, %d1, %d2",
    "add.cc.u32 %r0, %r1, %r2",
    "dp4a.s32.s32 %r0, %r1, %r2, %r3",
    "and.b32 %r0, %r1, %r2",
    "shl.b32 %r0, %r1, 3",
    "shl.b64 %d0, %d1, 3",
    "shf.l.wrap.b32 %r0, %r1, %r2, 7",
    "lop3.b32 %r0, %r1, %r2, %r3, 0x6a",
    "prmt.b32 %r0, %r1, %r2, 0x5410",
    "prmt.b32 %r0, %r1, %r2, %r3",
    "bfe.u32 %r0, %r1, 3, 5",
    "popc.b32 %r0, %r1",
    "clz.b32 %r0, %r1",
    "setp.lt.s32 %q, %r1, %r2",
    "setp.lt.s64 %q, %d1, %d2",
    "setp.lt.f32 %q, %f1, %f2",
    "selp.b32 %r0, %r1, %r2, %p",
    "vabsdiff4.u32.u32.u32.add %r0, %r1, %r2, %r3",
    "add.f32 %f0, %f1, %f2",
    "fma.rn.f32 %f0, %f1, %f2, %f3",
    "fma.rn.ftz.f32 %f0, %f1, %f2, %f3",
    "fma.rz.f32 %f0, %f1, %f2, %f3",
    "max.f32 %f0, %f1, %f2",
    "div.rn.f32 %f0, %f1, %f2",
    "ex2.approx.ftz.f32 %f0, %f1",
    "lg2.approx.f32 %f0, %f1",
    "sin.approx.f32 %f0, %f1",
    "tanh.approx.f32 %f0, %f1",
    "rsqrt.approx.f32 %f0, %f1",
    "fma.rn.f64 %g0, %g1, %g2, %g3",
    "fma.rn.f16x2 %r0, %r1, %r2, %r3",
    "fma.rn.bf16x2 %r0, %r1, %r2, %r3",
    "ex2.approx.f16x2 %r0, %r1",
    "cvt.rn.f32.s32 %f0, %r1",
    "cvt.rzi.s32.f32 %r0, %f1",
    "cvt.f32.f16 %f0, %h1",
    "cvt.rn.f16x2.f32 %r0, %f1, %f2",
    "cvt.rn.bf16x2.f32 %r0, %f1, %f2",
    "cvt.rn.satfinite.e4m3x2.f32 %h0, %f1, %f2",
    "cvt.rn.f32.f64 %f0, %g1",
    "cvt.u64.u32 %d0, %r1",
    "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%m0, %m1, %m2, %m3}, [%row]",
    "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%m0, %m1, %m2, %m3}, [%row]",
    "movmatrix.sync.aligned.m8n8.trans.b16 %m0, %m1",
    product(f"{MMA}.m16n8k16.row.col.f32.f16.f16.f32", 4, 4, 2),
    product(f"{MMA}.m16n8k16.row.col.f16.f16.f16.f16", 2, 4, 2),
    product(f"{MMA}.m16n8k16.row.col.f32.bf16.bf16.f32", 4, 4, 2),
    product(f"{MMA}.m16n8k8.row.col.f32.tf32.tf32.f32", 4, 4, 2),
    product(f"{MMA}.m16n8k32.row.col.f32.e4m3.e4m3.f32", 4, 4, 2),
    product(f"{MMA}.m16n8k32.row.col.s32.s8.s8.s32", 4, 4, 2),
    product(f"{MMA}.m8n8k4.row.col.f32.f16.f16.f32", 8, 2, 2),
    f"{MMA}.m8n8k4.row.col.f64.f64.f64.f64 {{%g0, %g1}}, {{%g2}}, {{%g3}}, {{%g0, %g1}}",
    f"wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {registers('m', 8)}, [%room]",
    product(f"{WMMA}.row.col.m16n16k16.f32.f32", 8, 8, 8),
    f"{WGMMA}.m64n128k16.f32.f16.f16 {registers('c', 64)}, {OPERANDS}, 1, 1, 1, 0, 0",
    f"{WGMMA}.m64n128k16.f32.f16.f16 {registers('c', 64)}, {OPERANDS}, 1, 1, 1, 0, 1",
    f"{WGMMA}.m64n128k32.f32.e4m3.e4m3 {registers('c', 64)}, {OPERANDS}, 1, 1, 1",
]
UNROLLED, ROUNDS, REPEATS = 200, 400, 3
KERNEL = """.version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u32 seed)
{{
  .reg .b32 %r<4>, %n, %s; .reg .b64 %d<4>; .reg .b16 %h<4>; .reg .f32 %f<4>; .reg .f64 %g<4>;
  .reg .pred %p, %q, %more; .reg .b32 %c<64>, %m<16>, %row, %room; .shared .align 1024 .b8 shared[65536];
  mov.u32 %room, shared; mov.u32 %row, %tid.x; mad.lo.u32 %row, %row, 16, %room;
  ld.param.u32 %s, [seed]; mov.u32 %r1, %tid.x; mad.lo.u32 %r1, %r1, 77777777, %s;
  mad.lo.u32 %r2, %r1, 1231, %s; mad.lo.u32 %r3, %r2, 1231, %s; mov.b32 %r0, 0;
  mov.b64 %d1, {{%r1, %r2}}; mov.b64 %d2, {{%r2, %r3}}; mov.b64 %d3, {{%r3, %r1}}; mov.b64 %d0, 0;
  mov.b32 {{%h1, %h2}}, %r1; mov.b32 {{%h3, %h0}}, %r2;
  mov.f32 %f1, 0f3F800000; mov.f32 %f2, 0f3F8CCCCD; mov.f32 %f3, 0f3F666666; mov.f32 %f0, %f1;
  mov.f64 %g1, 0d3FF0000000000000; mov.f64 %g2, %g1; mov.f64 %g3, %g1; mov.f64 %g0, %g1;
  setp.lt.u32 %p, %r1, 0x70000000; setp.lt.u32 %q, %r1, %r2; mov.u32 %n, 0;
LOOP:
{body}
  add.u32 %n, %n, 1; setp.lt.u32 %more, %n, {rounds};
  @%more bra LOOP;
  ret;
}}
"""


def nanoseconds(instruction: str) -> float:
    """Best of a few runs; the loop's own three instructions are below 2 %."""
    memory = _engine.functional.DeviceMemory(1 << 20)
    text = KERNEL.format(body=f"  {instruction};\n" * UNROLLED, rounds=ROUNDS)
    module = _engine.functional.load(text, instruction, memory)
    index = module.kernels["k"]["index"]
    one = (1, 1, 1)
    launch = _engine.functional.Launch(module, index, one, (32, 1, 1), one, 0, {})
    best = float("inf")
    for _ in range(REPEATS):
        start = time.process_time()
        launch.run((5).to_bytes(4, "little"), 1)
        best = min(best, time.process_time() - start)
    return best / (UNROLLED * ROUNDS) * 1e9


def main() -> None:
    for instruction in sys.argv[1:] or INSTRUCTIONS:
        print(f"{nanoseconds(instruction):7.1f} ns  {instruction}", flush=True)


if __name__ == "__main__":
    main()
