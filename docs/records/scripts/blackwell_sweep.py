"""What of PTX for Blackwell simt refuses: tries forms for each target, as PTX and as ptxas's machine code.

python docs/records/scripts/blackwell_sweep.py [TARGET ...] > sweep.txt

A form is tried where ptxas accepts it for the target. Forms: those of sm_100 and later in
docs/functional/coverage.md, and those that the release notes of PTX ISA 8.6 to 9.2 list for single targets;
for an older target also those of coverage.md that PTX has up to sm_90. Machine code is made without
optimisation, which keeps instructions whose results nobody reads.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import defaultdict

from simt import _engine
from simt.cuda import coverage, ptxas
from simt.cuda.ptx_module import PtxModule
from simt.errors import SimtError
from simt.gpu.programs import load_compiled

TARGETS = ["100a", "103a", "110a", "120a", "121a"]
VERSION = "9.2"
CHUNK = 60

KINDS = "kind::{f16,tf32,f8f6f4,i8}"
MX = "kind::mxf8f6f4.block_scale{,.scale_vec::1X,.block32}"
NVF4 = "kind::mxf4nvf4.block_scale.{scale_vec::2X,scale_vec::4X,block16,block32}"
FOUR = "{kind::mxf4.block_scale{,.scale_vec::2X,.block32}," + NVF4 + "}"
USES = "{,.collector::a::{fill,use,lastuse,discard}}"
B_USES = "{,.collector::{b0,b1,b2,b3}::{fill,use,lastuse,discard}}"
HOLE = "mbarrier::complete_tx::bytes"
BLACKWELL = [
    # Tensor memory.
    f"tcgen05.mma.cta_group::{{1,2}}.{KINDS}{USES} [r],l,l,r,p",
    f"tcgen05.mma.cta_group::{{1,2}}.{KINDS}{USES} [r],[r],l,r,p",
    f"tcgen05.mma.cta_group::{{1,2}}.{KINDS}.ashift{{,.collector::a::lastuse}} [r],[r],l,r,p",
    f"tcgen05.mma.cta_group::1.{KINDS} [r],l,l,r,4xr,p",
    f"tcgen05.mma.cta_group::2.{KINDS} [r],[r],l,r,8xr,p",
    "tcgen05.mma.cta_group::{1,2}.kind::{f16,tf32} [r],l,l,r,p,7",
    f"tcgen05.mma.cta_group::{{1,2}}.{{{MX},{FOUR}}}{USES} [r],l,l,r,[r],[r],p",
    f"tcgen05.mma.cta_group::{{1,2}}.{{{MX},{FOUR}}} [r],[r],l,r,[r],[r],p",
    f"tcgen05.mma.ws.cta_group::1.{KINDS}{B_USES} [r],l,l,r,p",
    f"tcgen05.mma.ws.cta_group::1.{KINDS} [r],[r],l,r,p,l",
    f"tcgen05.mma.sp.cta_group::{{1,2}}.{KINDS}{USES} [r],l,l,[r],r,p",
    f"tcgen05.mma.sp.cta_group::{{1,2}}.{KINDS}.ashift [r],[r],l,[r],r,p",
    f"tcgen05.mma.sp.cta_group::1.{KINDS} [r],[r],l,[r],r,4xr,p",
    f"tcgen05.mma.sp.cta_group::{{1,2}}.{{{MX},{FOUR}}} [r],l,l,[r],r,[r],[r],p",
    f"tcgen05.mma.ws.sp.cta_group::1.{KINDS}{B_USES} [r],l,l,[r],r,p",
    f"tcgen05.mma.ws.sp.cta_group::1.{KINDS} [r],[r],l,[r],r,p,l",
    "tcgen05.cp.cta_group::{1,2}.{128x256b,4x256b,128x128b}{,.b8x16.{b6x16_p32,b4x16_p64}} [r],l",
    "tcgen05.cp.cta_group::{1,2}.64x128b.{warpx2::02_13,warpx2::01_23}{,.b8x16.{b6x16_p32,b4x16_p64}} [r],l",
    "tcgen05.cp.cta_group::{1,2}.32x128b.warpx4{,.b8x16.{b6x16_p32,b4x16_p64}} [r],l",
    "tcgen05.shift.cta_group::{1,2}.down [r]",
    "tcgen05.ld.sync.aligned.{32x32b,16x64b}.{x1,x8,x128}{,.pack::16b}.b32 XX,[r]",
    "tcgen05.ld.red.sync.aligned.{32x32b}.x4.{min,max}{.u32,.s32,.f32,.NaN.f32,.abs.f32,.abs.NaN.f32} "
    "4xr,r,[r]",
    "tcgen05.ld.red.sync.aligned.16x32bx2.x2.{min,max}{.u32,.s32,.f32,.abs.f32} 2xr,r,[r],16",
    "tcgen05.commit.cta_group::{1,2}.mbarrier::arrive::one{,.shared::cluster}.b64 [s]",
    # Bulk copies.
    *(
        f"cp.async.bulk.tensor.{n}d.{{shared::cta,shared::cluster}}.global.{mode}.{HOLE}{{,.cta_group::1,.cta_group::2}}"
        f" [s],[l,<{','.join('r' * n)}>],[s],<{'h,h' if 'w' in mode else ','.join('h' * (n - 2))}>"
        for n in (3, 4, 5)
        for mode in ("im2col", "im2col::w", "im2col::w::128")
    ),
    *(
        f"cp.async.bulk.tensor.{n}d.shared::cluster.global.{mode}.{HOLE}.multicast::cluster.cta_group::2"
        f" [s],[l,<{','.join('r' * n)}>],[s],<h,h>,h"
        for n in (3, 4, 5)
        for mode in ("im2col::w", "im2col::w::128")
    ),
    *(
        f"cp.async.bulk.prefetch.tensor.{n}d.L2.global.{mode} [l,<{','.join('r' * n)}>],<h,h>"
        for n in (3, 4, 5)
        for mode in ("im2col::w", "im2col::w::128")
    ),
    "cp.async.bulk.tensor.2d.{shared::cta,shared::cluster}.global.tile::gather4.$COMPLETE "
    "[s],[l,<r,r,r,r,r>],[s]",
    "cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group [l,<r,r,r,r,r>],[s]",
    "cp.async.bulk.prefetch.tensor.2d.L2.global.tile::gather4 [l,<r,r,r,r,r>]",
    "cp.async.bulk.shared::cta.global.$COMPLETE [s],[g],r,[s]",
    "cp.async.bulk.shared::cta.global.$COMPLETE.ignore_oob [s],[g],r,r,r,[s]",
    "cp.async.bulk.global.shared::cta.bulk_group.cp_mask [g],[s],r,h",
    "cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint.cp_mask [g],[s],r,l,h",
    "tensormap.replace.tile.{swizzle_mode,swizzle_atomicity,fill_mode,elemtype}.global.b1024.b32 [g],1",
    "tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [s],{13,14,15}",
    "st.bulk.weak.shared::cta [s],l,0",
    # Conversions.
    "cvt.rn.satfinite{,.relu}.{e2m3x2,e3m2x2,e4m3x2,e5m2x2}.f32 h,r,r",
    "cvt.rn.satfinite{,.relu}.{e2m3x2,e3m2x2,e4m3x2,e5m2x2}.{f16x2,bf16x2} h,r",
    "cvt.rn{,.relu}.f16x2.{e2m3x2,e3m2x2,e4m3x2,e5m2x2} r,h",
    "cvt.rn{,.relu}{,.satfinite}{,.scaled::n2::ue8m0}.bf16x2.{e2m3x2,e3m2x2,e4m3x2,e5m2x2} r,hSCALE",
    "cvt.{rz,rp}{,.satfinite}.ue8m0x2.f32 h,r,r",
    "cvt.{rz,rp}{,.satfinite}.ue8m0x2.bf16x2 h,r",
    "cvt.rn.bf16x2.ue8m0x2 r,h",
    "cvt.rn.satfinite{,.relu}{,.scaled::n2::ue8m0}.s2f6x2.f32 h,r,rSCALE",
    "cvt.rn.satfinite{,.relu}{,.scaled::n2::ue8m0}.s2f6x2.bf16x2 h,rSCALE",
    "cvt.rn{,.satfinite}{,.relu}{,.scaled::n2::ue8m0}.bf16x2.s2f6x2 r,hSCALE",
    "cvt.rs{,.relu}{,.satfinite}.{f16x2,bf16x2}.f32 r,r,r,r",
    "cvt.rs{,.relu}.satfinite.{e4m3x4,e5m2x4,e2m3x4,e3m2x4}.f32 r,4xr,r",
    "cvt.rs{,.relu}.satfinite.e2m1x4.f32 h,4xr,r",
    "cvt.{rn,rz,rna}{,.satfinite}{,.relu}.tf32.f32 r,r",
    # Arithmetic.
    "{add,mul,sub}{.rn,.rz,.rm,.rp}{,.ftz}.f32x2 l,l,l",
    "fma{.rn,.rz,.rm,.rp}{,.ftz}.f32x2 l,l,l,l",
    "{add,sub}{,.rn,.rz,.rm,.rp}{,.sat}.f32.{f16,bf16} r,h,r",
    "fma{.rn,.rz,.rm,.rp}{,.sat}.f32.{f16,bf16} r,h,h,r",
    "{min,max}{,.ftz}{,.NaN}{,.abs}{,.xorsign.abs}.f32 r,r,r",
    "{min,max}{,.ftz}{,.NaN}{,.abs}.f32 r,r,r,r",
    "redux.sync.{min,max}{,.abs}{,.NaN}.f32 r,r,r",
    "{add,sub,min,max}{,.sat}.u8x4 r,r,r",
    "{add,sub,min,max}{,.sat}.s8x4 r,r,r",
    "add.sat.{u32,u16x2,s16x2} r,r,r",
    "{min,max}.relu.{s8x4,s16x2} r,r,r",
    "neg.s8x4 r,r",
    "tanh.approx{,.ftz}.{f32,bf16,bf16x2,f16,f16x2} T,T",
    # Memory.
    "ld.global{,.L1::no_allocate,.nc}{,.L2::128B}.{v8.b32,v4.b64,v8.f32,v4.s64} V,[g]",
    "st.global{,.L1::no_allocate}.{v8.b32,v4.b64,v8.f32,v4.f64} [g],V",
    "atom.global.add.noftz.{f16,bf16}{,x2} T,[g],T",
    "red.global.add.{v2,v4}.f32 [g],V",
    "atom.{cas,exch}{,.relaxed.gpu}.global.b128 q,[g],qCAS",
    "ldmatrix.sync.aligned.m16n16{.x1,.x2}.trans.shared.b8 VV,[s]",
    "ldmatrix.sync.aligned.m16n16{.x1,.x2}.trans.shared.b8x16.{b6x16_p32,b4x16_p64} VV,[s]",
    "ldmatrix.sync.aligned.m8n16{.x1,.x2,.x4}.shared.b8x16.{b6x16_p32,b4x16_p64} VM,[s]",
    "stmatrix.sync.aligned.m16n8{.x1,.x2,.x4}.trans.shared.b8 [s],VM",
    "multimem.ld_reduce.relaxed.gpu.global.add.acc::f16.{e4m3x4,e5m2x4} r,[g]",
    "multimem.ld_reduce.relaxed.gpu.global.add.acc::f16.v2.{e4m3x4,e5m2x4} 2xr,[g]",
    "multimem.ld_reduce.relaxed.gpu.global.add.acc::f16.v4.{e4m3x4,e5m2x4} 4xr,[g]",
    "multimem.ld_reduce.{relaxed,acquire}.{gpu,sys}.global.{add,min,max}.{u32,s32,u64} T,[g]",
    "multimem.ld_reduce.relaxed.gpu.global.{and,or,xor}.{b32,b64} T,[g]",
    "multimem.ld_reduce.relaxed.gpu.global.add{,.acc::f32}{,.v2,.v4}.{f16x2,bf16x2} V,[g]",
    "multimem.ld_reduce.relaxed.gpu.global.add{,.v2,.v4}.f32 V,[g]",
    "multimem.st.{relaxed,release}.gpu.global.{u32,b64,f32,f16x2} [g],T",
    "multimem.st.relaxed.gpu.global.{v2,v4}.f32 [g],V",
    "multimem.red.{relaxed,release}.gpu.global.{add,min,max}.{u32,s32,u64} [g],T",
    "multimem.red.relaxed.gpu.global.{and,or,xor}.{b32,b64} [g],T",
    "multimem.red.relaxed.gpu.global.add{,.v2,.v4}.{f32,f16x2,bf16x2} [g],V",
    # Launch control, barriers, fences.
    "clusterlaunchcontrol.try_cancel.async{,.shared::cta}.$COMPLETE{,.multicast::cluster::all}.b128 [s],[s]",
    "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p,q",
    "clusterlaunchcontrol.query_cancel.get_first_ctaid::{x,y,z}.b32.b128 r,q",
    "clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 4xr,q",
    "fence.proxy.async::generic.{acquire,release}.sync_restrict::shared::{cluster,cta}.cluster ;",
    "fence.{acquire,release}.sync_restrict::shared::{cluster,cta}.cluster ;",
    "fence.{acquire,release}.{cta,cluster,gpu,sys} ;",
    "mbarrier.{test_wait,try_wait}{,.parity}.relaxed.{cta,cluster}.shared::cta.b64 p,[s],PARITY",
    "mbarrier.arrive{,.expect_tx}.relaxed.{cta,cluster}.shared::cta.b64 l,[s],r",
    "setmaxnreg.{inc,dec}.sync.aligned.u32 64",
    "griddepcontrol.{wait,launch_dependents} ;",
    "elect.sync r|p,r",
    # Products of sm_120.
    "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.{e4m3,e5m2,e2m3,e3m2,e2m1}.{e4m3,e2m1}.f32 "
    "4xr,4xr,2xr,4xr",
    "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f16.{e4m3,e2m1}.{e5m2,e3m2}.f16 2xr,4xr,2xr,2xr",
    "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale{,.scale_vec::1X}.f32.{e4m3,e2m1}.{e4m3,e3m2}.f32.ue8m0"
    " 4xr,4xr,2xr,4xr,r,<0,0>,r,<0,0>",
    "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale{,.scale_vec::2X}.f32.e2m1.e2m1.f32.ue8m0"
    " 4xr,4xr,2xr,4xr,r,<0,0>,r,<0,0>",
    "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::{2X.f32.e2m1.e2m1.f32.ue8m0,"
    "4X.f32.e2m1.e2m1.f32.ue4m3,4X.f32.e2m1.e2m1.f32.ue8m0} 4xr,4xr,2xr,4xr,r,<0,0>,r,<0,0>",
    "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.kind::f8f6f4.f32.{e4m3,e2m1}.{e5m2,e2m3}.f32"
    " 4xr,4xr,4xr,4xr,r,0",
    "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e2m1.f32.ue8m0"
    " 4xr,4xr,4xr,4xr,r,0,r,<0,0>,r,<0,0>",
    "mma.sp::ordered_metadata.sync.aligned.m16n8k128.row.col.kind::mxf4nvf4.block_scale.scale_vec::{2X.f32.e2m1.e2m1.f32.ue8m0,"
    "4X.f32.e2m1.e2m1.f32.ue4m3,4X.f32.e2m1.e2m1.f32.ue8m0} 4xr,4xr,4xr,4xr,r,0,r,<0,0>,r,<0,0>",
    "mma.sp::ordered_metadata.sync.aligned.m16n8k128.row.col.kind::mxf4.block_scale{,.scale_vec::2X}.f32.e2m1.e2m1.f32.ue8m0"
    " 4xr,4xr,4xr,4xr,r,0,r,<0,0>,r,<0,0>",
    # Textures.
    "tex.{1d,2d,3d}.v4.{f32,s32,u32}.{s32,f32} 4xr,[tref,TEXC]",
    "tex.level.2d.v4.f32.f32 4xr,[tref,<r,r>],r",
    "tex.grad.{1d,2d}.v4.f32.f32 4xr,[tref,TEXG",
    "tld4.{r,g,b,a}.2d.v4.{f32,s32}.f32 4xr,[tref,<r,r>]",
    "txq.{width,height,depth}.b32 r,[tref]",
]
# Conversions of pairs of 4 bits need a register of 8 bits.
SPECIAL = [
    f".reg .b8 byte; cvt.rn.satfinite{relu}.e2m1x2.{kind} byte, {'%r0, %r1' if kind == 'f32' else '%r0'};"
    for relu in ("", ".relu")
    for kind in ("f32", "f16x2", "bf16x2")
] + [
    ".reg .b8 byte; mov.b16 {byte, _}, %h0; "
    f"cvt.rn{relu}{scaled}.{kind}.e2m1x2 %r0, byte{', %h1' if scaled else ''};"
    for relu in ("", ".relu")
    for kind in ("f16x2", "bf16x2")
    for scaled in ("", ".scaled::n2::ue8m0")
]


def _complete(form: str) -> str:
    """Operands that depend on the mnemonic."""
    name = form.split(" ")[0]
    times = next((int(m[1:]) for m in name.split(".") if re.fullmatch(r"x\d+", m)), 1)
    for sign, text in {
        "XX": f"{times}xr",
        "VV": f"{2 * times}xr",
        "VM": f"{times}xr",
        "SCALE": ",h" if "scaled" in name else "",
        "qCAS": "q,q" if ".cas" in name else "q",
        "PARITY": "r" if "parity" in name else "l",
        "TEXC": {"1d": "<r>", "2d": "<r,r>", "3d": "<r,r,r,r>"}[name.split(".")[1]]
        if name.startswith("tex.") and name.split(".")[1] in ("1d", "2d", "3d")
        else "",
        "TEXG": "<r>],<r>,<r>" if "grad.1d" in name else "<r,r>],<r,r>,<r,r>",
    }.items():
        form = form.replace(sign, text)
    return form


def instructions(target: str) -> list[str]:
    older = coverage.forms() if int(target.rstrip("af")) < 100 else []
    known = [coverage.instruction(f) for f in [*older, *coverage.forms(coverage.LATER_FORMS)]]
    new = [coverage.instruction(_complete(f)) for f in coverage.forms(BLACKWELL)]
    return list(dict.fromkeys([*known, *new, *SPECIAL]))


# ptxas leaves out an instruction without a use, and one whose operands have no value: registers are loaded
# before it and stored after it.
REGISTERS = (("h", "b16", 12), ("r", "b32", 80), ("l", "b64", 40), ("q", "b128", 4))
OPEN = ".reg .b64 room; ld.param.u64 room,[out]; "


def _moves(load: bool) -> str:
    moves, at = "", 0
    for name, kind, count in REGISTERS:
        size = int(kind[1:]) // 8
        at = -(-at // size) * size
        for i in range(count):
            register, place = f"%{name}{i}", f"[room+{at + i * size}]"
            moves += (
                f"ld.global.{kind} {register},{place}; " if load else f"st.global.{kind} {place},{register}; "
            )
        at += count * size
    for i in range(4):
        test, chosen = (
            f"setp.ne.u32 %p{i},%r{i},0; ",
            f"selp.u32 %r{i},1,0,%p{i}; st.global.u32 [room+{at + 4 * i}],%r{i}; ",
        )
        moves += test if load else chosen
    return moves


def program(lines: list[str], target: str) -> str:
    text = coverage.kernel(lines)
    text = text.replace("\nL: ret;", f"\n{_moves(False)}\nL: ret;")
    text = re.sub(r"(proto2: [^\n]*\n)", lambda found: f"{found[1]}{OPEN}{_moves(True)}\n", text)
    return text.replace(".version 8.8", f".version {VERSION}").replace(coverage.TARGET, f"sm_{target}")


def accepted(lines: list[str], target: str, assembler: str) -> list[str]:
    """Those that ptxas accepts."""
    while lines:
        text = program(lines, target)
        run = subprocess.run(
            [assembler, f"-arch=sm_{target}", "-O0", "-o", "/dev/null", "-"],
            input=text,
            capture_output=True,
            text=True,
        )
        if run.returncode == 0:
            return lines
        wrong = {int(n) for n in re.findall(r"line (\d+); error", run.stdout + run.stderr)}
        every = text.split("\n")
        bad = {every[n - 1] for n in wrong}
        left = [line for line in lines if line not in bad]
        if len(left) == len(lines):
            # An error without a line: one by one.
            return (
                [] if len(lines) == 1 else [a for line in lines for a in accepted([line], target, assembler)]
            )
        lines = left
    return []


def refused(lines: list[str], target: str, machine_code: bool) -> dict[str, str]:
    """Those that simt refuses, and why."""
    memory = _engine.functional.DeviceMemory(1 << 24)
    text = program(lines, target)
    try:
        if machine_code:
            load_compiled(PtxModule.from_text(text, "form"), f"sm_{target}", memory, {}, ["-O0"])
        else:
            _engine.functional.load(text, "form", memory)
    except SimtError as error:
        if len(lines) == 1:
            return {lines[0]: str(error).split("\n")[0].rsplit(": ", 1)[-1]}
        half = len(lines) // 2
        return refused(lines[:half], target, machine_code) | refused(lines[half:], target, machine_code)
    return {}


def main(targets: list[str]) -> None:
    assembler = next(a for a in map(str, ptxas._assemblers()) if accepted(["ret;"], targets[0], a))
    for target in targets:
        every = instructions(target)
        good = [
            a for i in range(0, len(every), CHUNK) for a in accepted(every[i : i + CHUNK], target, assembler)
        ]
        for machine_code in (False, True):
            reasons: dict[str, list[str]] = defaultdict(list)
            for i in range(0, len(good), CHUNK):
                for line, why in refused(good[i : i + CHUNK], target, machine_code).items():
                    reasons[why].append(line)
            lost = sum(map(len, reasons.values()))
            name = "machine code" if machine_code else "PTX"
            print(f"sm_{target}, {name}: {len(good) - lost:,} of {len(good):,} forms that ptxas accepts")
            for why, lines in sorted(reasons.items(), key=lambda item: -len(item[1])):
                print(f"  {len(lines)}: {why}")
                for line in lines[:4]:
                    print(f"      {line}")
            sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:] or TARGETS)
