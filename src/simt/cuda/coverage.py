"""Which PTX instructions can be executed: tries forms of every opcode, for docs/functional/coverage.md.

python -m simt.cuda.coverage > docs/functional/coverage.md
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict

from simt import _engine
from simt.errors import PtxError

TARGET = "sm_90a"

# A form is `mnemonic operands`. {a,b} stands for each of its parts, {,x} for with and without. Operands: T is a
# register of the size of the last type, A of the first, W of twice the last; h r l q are registers of 16, 32, 64
# and 128 bits, p a predicate, 4xr a vector, V a vector or register as .v2 or .v4 say; [g] [s] [x] [y] are
# addresses in global, shared, and the named memory; anything else stands for itself.
INTS = "{u16,u32,u64,s16,s32,s64}"
WIDE = "{u32,u64,s32,s64}"
BITS = "{b16,b32,b64}"
FORMS = f"""
add.{INTS} T,T,T | add.sat.s32 T,T,T | add.cc.{{u32,s32,u64,s64}} T,T,T | addc{{,.cc}}.{{u32,u64}} T,T,T | add.{{u16x2,s16x2}} r,r,r
sub.{INTS} T,T,T | sub.sat.s32 T,T,T | sub.cc.{{u32,u64}} T,T,T | subc{{,.cc}}.{{u32,u64}} T,T,T
mul.{{lo,hi}}.{INTS} T,T,T | mul.wide.{{u16,s16,u32,s32}} W,T,T | mul24.{{lo,hi}}.{{u32,s32}} r,r,r
mad.{{lo,hi}}.{INTS} T,T,T,T | mad.wide.{{u16,s16,u32,s32}} W,T,T,W | mad.hi.sat.s32 r,r,r,r | mad24.{{lo,hi}}.{{u32,s32}} r,r,r,r
mad.{{lo,hi}}.cc.{{u32,u64}} T,T,T,T | madc.{{lo,hi}}{{,.cc}}.{{u32,u64}} T,T,T,T | sad.{INTS} T,T,T,T
div.{INTS} T,T,T | rem.{INTS} T,T,T | abs.{{s16,s32,s64}} T,T | neg.{{s16,s32,s64}} T,T
min.{INTS} T,T,T | max.{INTS} T,T,T | min{{,.relu}}.s16x2 r,r,r | max{{,.relu}}.s16x2 r,r,r | min.u16x2 r,r,r | max.relu.s32 r,r,r
popc.{{b32,b64}} r,T | clz.{{b32,b64}} r,T | bfind{{,.shiftamt}}.{WIDE} r,T | fns.b32 r,r,r,r | brev.{{b32,b64}} T,T
bfe.{WIDE} T,T,r,r | bfi.{{b32,b64}} T,T,T,r,r | szext.{{clamp,wrap}}.{{u32,s32}} r,r,r | bmsk.{{clamp,wrap}}.b32 r,r,r
dp4a.{{u32,s32}}.{{u32,s32}} r,r,r,r | dp2a.{{lo,hi}}.{{u32,s32}}.{{u32,s32}} r,r,r,r
{{add,sub,mul}}{{,.rn,.rz,.rm,.rp}}{{,.ftz}}{{,.sat}}.f32 T,T,T | {{add,sub,mul}}{{,.rn,.rz,.rm,.rp}}.f64 T,T,T
fma.{{rn,rz,rm,rp}}{{,.ftz}}{{,.sat}}.f32 T,T,T,T | fma.{{rn,rz,rm,rp}}.f64 T,T,T,T | mad.{{rn,rz,rm,rp}}.{{f32,f64}} T,T,T,T
{{add,sub,mul}}{{,.rn}}{{,.ftz}}{{,.sat}}.{{f16,f16x2}} T,T,T | {{add,sub,mul}}{{,.rn}}.{{bf16,bf16x2}} T,T,T
fma.rn{{,.ftz}}{{,.sat,.relu}}.{{f16,f16x2}} T,T,T,T | fma.rn{{,.relu}}.{{bf16,bf16x2}} T,T,T,T
div{{.approx,.full,.rn,.rz,.rm,.rp}}{{,.ftz}}.f32 T,T,T | div.{{rn,rz,rm,rp}}.f64 T,T,T
rcp{{.approx,.rn,.rz,.rm,.rp}}{{,.ftz}}.f32 T,T | rcp.{{rn,rz,rm,rp}}.f64 T,T | rcp.approx.ftz.f64 T,T
sqrt{{.approx,.rn,.rz,.rm,.rp}}{{,.ftz}}.f32 T,T | sqrt.{{rn,rz,rm,rp}}.f64 T,T | rsqrt.approx{{,.ftz}}.f32 T,T | rsqrt.approx{{,.ftz}}.f64 T,T
{{sin,cos,lg2,ex2}}.approx{{,.ftz}}.f32 T,T | tanh.approx.{{f32,f16,f16x2,bf16,bf16x2}} T,T | ex2.approx.{{f16,f16x2}} T,T
ex2.approx.ftz.{{bf16,bf16x2}} T,T | {{abs,neg}}{{,.ftz}}.{{f32,f16,f16x2}} T,T | {{abs,neg}}.{{f64,bf16,bf16x2}} T,T
{{min,max}}{{,.ftz}}{{,.NaN}}{{,.xorsign.abs}}.{{f32,f16,f16x2}} T,T,T | {{min,max}}{{,.NaN}}.{{bf16,bf16x2}} T,T,T | {{min,max}}.f64 T,T,T
testp.{{finite,infinite,number,notanumber,normal,subnormal}}.{{f32,f64}} p,T | copysign.{{f32,f64}} T,T,T
setp.{{eq,ne,lt,le,gt,ge}}.{INTS} p,T,T | setp.{{lo,ls,hi,hs}}.{{u16,u32,u64}} p,T,T | setp.{{eq,ne}}.{BITS} p,T,T
setp.{{eq,ne,lt,le,gt,ge,equ,neu,ltu,leu,gtu,geu,num,nan}}{{,.ftz}}.f32 p,T,T | setp.{{eq,lt,neu,nan}}.{{f64,f16,bf16}} p,T,T
setp.lt.{{and,or,xor}}.{{s32,f32}} p|p,T,T,!p | setp.{{lt,neu}}.{{f16x2,bf16x2}} p|p,r,r
set.{{eq,lt}}.{{u32,s32,f32}}.{{u32,s32,f32,f64}} r,T,T | set.{{lt,nan}}.{{f16,u16}}.f16 h,h,h | set.lt.f16x2.f16x2 r,r,r
selp.{{b16,b32,b64,u16,u32,u64,s16,s32,s64,f32,f64}} T,T,T,p | slct{{,.ftz}}.{{b32,f32}}.f32 r,r,r,r | slct.{{u64,f64}}.{{f32,s32}} l,l,l,r | slct.{{b32,s32}}.s32 r,r,r,r
{{and,or,xor}}.{{pred,b16,b32,b64}} T,T,T | not.{{pred,b16,b32,b64}} T,T | cnot.{BITS} T,T | lop3.b32 r,r,r,r,0x96
lop3.{{and,or}}.b32 r|p,r,r,r,0x96,p | shl.{BITS} T,T,r | shr.{{b16,b32,b64,u16,u32,u64,s16,s32,s64}} T,T,r
shf.{{l,r}}.{{clamp,wrap}}.b32 r,r,r,r | prmt.b32{{,.f4e,.b4e,.rc8,.ecl,.ecr,.rc16}} r,r,r,r
mov.{{b16,b32,b64,u16,u32,u64,s16,s32,s64,f32,f64,pred}} T,T | mov.b32 r,2xh | mov.b64 l,2xr | mov.b64 2xr,l | mov.b128 q,2xl | mov.b64 l,4xh
mov.u32 r,%{{tid.x,ntid.y,ctaid.z,nctaid.x,laneid,warpid,nwarpid,smid,nsmid,clock,lanemask_lt,dynamic_smem_size,total_smem_size}}
mov.u32 r,%{{cluster_ctaid.x,cluster_nctaid.x,clusterid.x,nclusterid.x,cluster_ctarank,cluster_nctarank,envreg2,globaltimer_lo}}
mov.u64 l,%{{clock64,globaltimer,gridid}} | cvta.{{global,shared,local,const}}.u64 l,l | cvta.to.{{global,shared,local,const}}.u64 l,l
isspacep.{{global,shared,local,const,shared::cluster}} p,l
cvt.{{u8,u16,u32,u64,s8,s16,s32,s64}}.{{u8,u16,u32,u64,s8,s16,s32,s64}} A,B | cvt.sat.{{u8,s8,u16,s16,u32,s32}}.{{s32,u32,s64}} A,B
cvt.{{rni,rzi,rmi,rpi}}{{,.ftz}}.{{u32,s32,u64,s64,s16,u8}}.f32 A,B | cvt.{{rni,rzi,rmi,rpi}}.{{u32,s32,u64,s64}}.{{f64,f16}} A,B
cvt.{{rn,rz,rm,rp}}.{{f16,f32,f64}}.{{u8,u16,u32,u64,s8,s16,s32,s64}} A,B | cvt.{{rni,rzi,rmi,rpi}}.{{f32.f32,f64.f64,f16.f16}} A,B
cvt.{{rn,rz,rm,rp}}{{,.ftz}}{{,.sat}}.f32.f64 A,B | cvt{{,.ftz}}.f64.f32 A,B | cvt.{{rn,rz}}.f16.f32 A,B | cvt{{,.ftz}}.f32.f16 A,B | cvt.f32.bf16 A,B
cvt.{{rn,rz}}{{,.relu}}.{{f16x2,bf16x2}}.f32 r,r,r | cvt.{{rn,rz}}{{,.relu}}.bf16.f32 h,r | cvt.rna{{,.satfinite}}.tf32.f32 r,r | cvt.{{rn,rz}}.tf32.f32 r,r
cvt.rn.satfinite{{,.relu}}.{{e4m3x2,e5m2x2}}.f32 h,r,r | cvt.rn.satfinite.{{e4m3x2,e5m2x2}}.f16x2 h,r | cvt.rn{{,.relu}}.f16x2.{{e4m3x2,e5m2x2}} r,h
cvt.pack.sat.{{u16,s16}}.s32 r,r,r | cvt.pack.sat.{{u8,s8,u4,s4,u2}}.s32.b32 r,r,r,r
{{vadd4,vsub4,vavrg4,vabsdiff4,vmin4,vmax4}}.{{u32,s32}}.{{u32,s32}}.{{u32,s32}} r,r,r,r | vset4.{{u32,s32}}.{{u32,s32}}.lt r,r,r,r
{{vadd2,vsub2,vavrg2,vabsdiff2,vmin2,vmax2}}.{{u32,s32}}.{{u32,s32}}.{{u32,s32}} r,r,r,r | {{vadd,vsub,vabsdiff,vmin,vmax}}.{{u32,s32}}.{{u32,s32}}.{{u32,s32}}{{,.sat}} r,r,r
{{vshl,vshr}}.u32.u32.u32.{{clamp,wrap}} r,r,r | vmad.{{u32,s32}}.u32.u32{{,.sat}} r,r,r,r | vset.u32.u32.{{lt,ge}} r,r,r
ld{{,.global,.shared,.local}}.{{u8,s8,b8,u16,s16,b16,u32,s32,b32,f32,u64,s64,b64,f64}} T,[x] | ld.const.{{u32,f32,f64}} T,[c] | ld.param.u64 l,[out]
ld.global{{,.ca,.cg,.cs,.lu,.cv}}{{,.v2,.v4}}.{{u32,f32}} V,[g] | ld.global.nc{{,.L1::no_allocate}}{{,.L2::128B}}.{{v2.u64,v4.f32,u8}} V,[g] | ld.global.b128 q,[g]
ld.{{volatile,relaxed.gpu,relaxed.sys,acquire.cta,acquire.gpu,acquire.sys,mmio.relaxed.sys}}.global.{{u32,u64}} T,[g] | ld.shared::cluster.u32 r,[s] | ldu.global.{{u32,v2.f32}} V,[g]
st{{,.global,.shared,.local}}.{{u8,b8,u16,b16,u32,b32,f32,u64,b64,f64}} [x],T | st.global{{,.wb,.cg,.cs,.wt}}{{,.v2,.v4}}.{{u32,f32}} [g],V | st.global.b128 [g],q
st.{{volatile,relaxed.gpu,release.cta,release.gpu,release.sys}}.global.{{u32,u64}} [g],T | st.async.shared::cluster.mbarrier::complete_tx::bytes.{{u32,v2.u64}} [s],V,[s]
prefetch.global.{{L1,L2}} [g] | prefetchu.L1 [x] | discard.global.L2 [g],128 | applypriority.global.L2::evict_normal [g],128 | createpolicy.fractional.L2::evict_last.b64 l,1.0
atom{{,.relaxed,.acq_rel}}{{,.gpu,.sys,.cta}}.{{global,shared}}.{{add,min,max,and,or,xor,exch,inc,dec}}.u32 r,[y],r | atom.{{global,shared}}.{{add,exch,min,max}}.u64 l,[y],l
atom.{{global,shared}}.{{min,max}}.{{s32,s64}} T,[y],T | atom.{{global,shared}}.cas.{{b16,b32,b64,b128}} T,[y],T,T | atom.{{global,shared}}.add.{{f32,f64}} T,[y],T
atom.global.{{and,or,xor,exch}}.{{b32,b64}} T,[g],T | atom.{{global,shared}}.add.noftz.{{f16,f16x2,bf16,bf16x2}} T,[y],T | atom.add.u32 r,[x],r | atom.global.add.v4.f32 4xr,[g],4xr
red{{,.relaxed.gpu}}.{{global,shared}}.{{add,min,max,and,or,xor,inc,dec}}.u32 [y],r | red.global.add.{{u64,f32,f64}} [g],T | red.global.add.noftz.{{f16x2,bf16x2}} [g],r
red.global.add.{{v2.f32,v4.f32}} [g],V | red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [s],r,[s] | atom.shared::cluster.add.u32 r,[s],r
shfl.sync.{{up,down,bfly,idx}}.b32 r|p,r,r,r,0xffffffff | vote.sync.{{all,any,uni}}.pred p,p,0xffffffff | vote.sync.ballot.b32 r,p,0xffffffff
match.any.sync.{{b32,b64}} r,T,0xffffffff | match.all.sync.{{b32,b64}} r|p,T,0xffffffff | redux.sync.{{add,min,max}}.{{u32,s32}} r,r,0xffffffff
redux.sync.{{and,or,xor}}.b32 r,r,0xffffffff | activemask.b32 r | elect.sync r|p,0xffffffff
bar.sync 0 | bar.sync 1,64 | bar.arrive 1,64 | bar.red.popc.u32 r,0,p | bar.red.{{and,or}}.pred p,0,p | bar.warp.sync 0xffffffff | barrier.sync 1 | barrier.cta.sync.aligned 0
barrier.cluster.{{arrive,wait}}{{,.aligned}} ; | barrier.cluster.arrive.{{release,relaxed}} ; | membar.{{cta,gl,sys}} ; | fence.{{sc,acq_rel}}.{{cta,gpu,sys,cluster}} ;
fence.proxy.async ; | fence.mbarrier_init.release.cluster ; | nanosleep.u32 100 | griddepcontrol.{{launch_dependents,wait}} ; | setmaxnreg.{{inc,dec}}.sync.aligned.u32 40
cp.async.ca.shared.global [s],[g],{{4,8,16}} | cp.async.cg.shared.global{{,.L2::128B}} [s],[g],16 | cp.async.ca.shared.global [s],[g],4,r | cp.async.commit_group ; | cp.async.wait_group 1 | cp.async.wait_all ;
cp.async.mbarrier.arrive{{,.noinc}}.shared.b64 [s] | cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s],[g],r,[s] | cp.async.bulk.global.shared::cta.bulk_group [g],[s],r
cp.async.bulk.commit_group ; | cp.async.bulk.wait_group{{,.read}} 0 | cp.reduce.async.bulk.global.shared::cta.bulk_group.add.{{u32,u64,f16}} [g],[s],r
cp.async.bulk.prefetch.L2.global [g],r | cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [s],[l,{{{{r,r}}}}],[s]
mbarrier.init.shared.b64 [s],r | mbarrier.inval.shared.b64 [s] | mbarrier.arrive{{,.noComplete}}.shared.b64 l,[s],r | mbarrier.arrive.expect_tx.shared.b64 l,[s],r
mbarrier.{{test_wait,try_wait}}.shared.b64 p,[s],l | mbarrier.{{test_wait,try_wait}}.parity.shared.b64 p,[s],r | mbarrier.arrive_drop.shared.b64 l,[s] | mbarrier.pending_count.b64 r,l
mapa{{,.shared::cluster}}.u32 r,r,r | mapa.u64 l,l,r | getctarank.shared::cluster.u32 r,r
ldmatrix.sync.aligned.m8n8.x1{{,.trans}}.shared.b16 1xr,[s] | ldmatrix.sync.aligned.m8n8.x2{{,.trans}}.shared.b16 2xr,[s] | ldmatrix.sync.aligned.m8n8.x4{{,.trans}}.shared.b16 4xr,[s]
stmatrix.sync.aligned.m8n8.x4{{,.trans}}.shared.b16 [s],4xr | movmatrix.sync.aligned.m8n8.trans.b16 r,r
mma.sync.aligned.m16n8k16.row.col.f32.{{f16.f16,bf16.bf16}}.f32 4xr,4xr,2xr,4xr | mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 2xr,4xr,2xr,2xr | mma.sync.aligned.m16n8k8.row.col.f32.{{f16.f16,bf16.bf16}}.f32 4xr,2xr,1xr,4xr
mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 4xr,4xr,2xr,4xr | mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 4xr,2xr,1xr,4xr | mma.sync.aligned.m8n8k4.{{row,col}}.{{row,col}}.f32.f16.f16.f32 8xr,2xr,2xr,8xr
mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 2xl,1xl,1xl,2xl | mma.sync.aligned.m16n8k32.row.col{{,.satfinite}}.s32.{{u8.u8,s8.s8,u8.s8}}.s32 4xr,4xr,2xr,4xr | mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 4xr,2xr,1xr,4xr
mma.sync.aligned.m16n8k64.row.col.s32.{{u4.u4,s4.s4}}.s32 4xr,4xr,2xr,4xr | mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.{{xor,and}}.popc 4xr,4xr,2xr,4xr | mma.sync.aligned.m16n8k32.row.col.f32.{{e4m3.e4m3,e5m2.e5m2}}.f32 4xr,4xr,2xr,4xr
wmma.load.a.sync.aligned.{{row,col}}.m16n16k16.{{global,shared}}.f16 8xr,[y],r | wmma.load.c.sync.aligned.row.m16n16k16.global.{{f32,s32}} 8xr,[g],r | wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [g],8xr,r
wmma.mma.sync.aligned.{{row,col}}.{{row,col}}.m16n16k16.f32.f32 8xr,8xr,8xr,8xr | wgmma.fence.sync.aligned ; | wgmma.commit_group.sync.aligned ; | wgmma.wait_group.sync.aligned 0
wgmma.mma_async.sync.aligned.m64n8k16.f32.{{f16.f16,bf16.bf16}} 4xr,l,l,p,1,1,0,0
tex.{{1d,2d,3d}}.v4.{{f32,u32,s32}}.f32 X | tex.{{1d,2d}}.v4.f32.s32 Y | suld.b.{{1d,2d}}.b32.trap U | sust.b.{{1d,2d}}.b32.trap Z | txq.width.b32 r,[l]
trap ; | brkpt ; | exit ; | ret ; | alloca.u64 l,r | stacksave.u64 l | stackrestore.u64 l | tcgen05.fence::before_thread_sync ; | multimem.ld_reduce.global.add.f32 r,[g]
"""
_SIZE = {"8": "h", "16": "h", "32": "r", "64": "l", "128": "q"}
_WIDER = {"h": "r", "r": "l", "l": "q"}
_DECLARED = {"h": "b16", "r": "b32", "l": "b64", "q": "b128"}
_HEADER = f"""# Which PTX instructions can be executed

Made by `python -m simt.cuda.coverage`, which loads each form for {TARGET}. `accepted` of `tried` forms of each opcode; a form
that is not accepted is refused when a program is loaded, with the reason given here. What an accepted form computes is
tested per instruction in `tests/functional/`. The forms are a selection of those that the PTX ISA defines, not all.
"""


def expand(text: str) -> list[str]:
    """All that a text with {a,b} parts stands for. Doubled braces are braces."""
    found = re.search(r"(?<!\{)\{([^{}]*)\}(?!\})", text)
    if not found:
        return [text.replace("{{", "{").replace("}}", "}")]
    return list(
        itertools.chain.from_iterable(
            expand(text[: found.start()] + part + text[found.end() :]) for part in found[1].split(",")
        )
    )


def _size(modifier: str) -> str:
    if modifier == "pred":
        return "p"
    if modifier in ("f16x2", "bf16x2", "u16x2", "s16x2", "tf32"):
        return "r"
    digits = re.fullmatch(r"b?[usbf](8|16|32|64|128)", modifier)
    return _SIZE[digits[1]] if digits else ""


class _Operands:
    """Names registers as they are asked for, each operand its own."""

    def __init__(self) -> None:
        self._next: dict[str, int] = defaultdict(int)

    def register(self, kind: str) -> str:
        number = self._next[kind]
        self._next[kind] = (number + 1) % (30 if kind == "r" else 6)
        return f"%{kind}{number}"

    def text(self, letter: str, mnemonic: str) -> str:
        modifiers = mnemonic.split(".")
        sizes = [size for m in modifiers if (size := _size(m))]
        last = sizes[-1] if sizes else "r"
        first = sizes[0] if sizes else "r"
        vector = next((int(m[1:]) for m in modifiers if m in ("v2", "v4", "v8")), 1)
        if letter == "V":
            return self._vector(vector, last) if vector > 1 else self.register(last)
        if letter in ("T", "A", "B", "W"):
            return self.register({"T": last, "A": first, "B": last, "W": _WIDER.get(last, "l")}[letter])
        if letter in ("h", "r", "l", "q", "p"):
            return self.register(letter)
        if found := re.fullmatch(r"(\d)x([hrl])", letter):
            return self._vector(int(found[1]), found[2])
        return letter

    def _vector(self, count: int, kind: str) -> str:
        return "{" + ", ".join(self.register(kind) for _ in range(count)) + "}"


def instruction(form: str) -> str:
    """A form as an instruction."""
    mnemonic, _, operands = form.partition(" ")
    dims = 3 if ".3d" in mnemonic else 2 if ".2d" in mnemonic else 1
    of = {1: "{%r20}", 2: "{%r20, %r21}", 3: "{%r20, %r21, %r22, %r23}"}[dims]
    special = {
        "X": f"{{%r0, %r1, %r2, %r3}}, [%l0, {of}]",
        "Y": f"{{%r0, %r1, %r2, %r3}}, [%l0, {of}]",
        "U": f"{{%r0}}, [%l0, {of}]",
        "Z": f"[%l0, {of}], {{%r0}}",
        ";": "",
    }
    if operands in special:
        return f"{mnemonic} {special[operands]};"
    space = "s" if "shared" in mnemonic else "v" if ".local" in mnemonic else "g"
    names = _Operands()
    parts = re.split(r"([,|!\[\]{}])", operands.replace("[y]", f"[{space}]").replace("[x]", f"[{space}]"))
    out = []
    for before, part in zip(["", *parts], parts, strict=False):
        address = before == "[" and part in "gsvcx"
        out.append(
            {"g": "%l5", "s": "smem", "v": "%l5", "c": "cmem"}[part]
            if address and part
            else names.text(part, mnemonic)
        )
    return f"{mnemonic} {''.join(out)};"


def kernel(line: str) -> str:
    """A kernel with one instruction."""
    registers = " ".join(f".reg .{kind} %{letter}<31>;" for letter, kind in _DECLARED.items())
    return (
        f".version 8.8\n.target {TARGET}\n.address_size 64\n.const .align 8 .b8 cmem[64];\n"
        f".visible .entry k(.param .u64 out)\n{{\n{registers} .reg .pred %p<31>; .shared .align 16 .b8 smem[1024];\n"
        f"{line}\nret;\n}}\n"
    )


def refusal(line: str, memory: _engine.functional.DeviceMemory) -> str | None:
    """Why an instruction cannot be executed; None if it can."""
    try:
        _engine.functional.load(kernel(line), "form", memory)
    except (PtxError, _engine.functional.PtxError) as error:
        return str(error).split("\n")[0].rsplit(": ", 1)[-1]
    return None


def forms() -> list[str]:
    """All forms that are tried."""
    return [
        expanded.strip()
        for line in FORMS.strip().splitlines()
        for form in line.split(" | ")
        for expanded in expand(form.strip())
    ]


def page() -> str:
    """The page as Markdown."""
    memory = _engine.functional.DeviceMemory(1 << 24)
    tried: dict[str, int] = defaultdict(int)
    refused: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for form in forms():
        line = instruction(form)
        opcode = form.split(".")[0].split(" ")[0]
        tried[opcode] += 1
        why = refusal(line, memory)
        if why is not None:
            refused[opcode][why].append(form.split(" ")[0])
    total, lost = sum(tried.values()), sum(len(x) for reasons in refused.values() for x in reasons.values())
    rows = [
        f"\n{total - lost:,} of {total:,} forms of {len(tried)} opcodes are accepted.\n",
        "| opcode | accepted | tried | refused |",
        "|---|---|---|---|",
    ]
    for opcode in sorted(tried):
        reasons = refused[opcode]
        missing = sum(len(x) for x in reasons.values())
        notes = "; ".join(
            f"`{names[0]}`{f' and {len(names) - 1} more' if len(names) > 1 else ''}: {why}"
            for why, names in reasons.items()
        )
        rows.append(f"| {opcode} | {tried[opcode] - missing} | {tried[opcode]} | {notes.replace('|', '¦')} |")
    return _HEADER + "\n".join(rows) + "\n"


if __name__ == "__main__":
    print(page(), end="")
