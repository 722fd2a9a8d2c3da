"""Which PTX instructions can be executed: tries forms of every opcode, for docs/functional/coverage.md.

python -m simt.cuda.coverage > docs/functional/coverage.md
"""

from __future__ import annotations

import itertools
import re
import string
from collections import defaultdict

from simt import _engine
from simt.errors import PtxError

TARGET = "sm_90a"

# A form is `mnemonic operands`. {a,b} stands for each of its parts, {,x} for with and without, $NAME for a set below.
# Operands: T is a register of the size of the last type, A of the first, B of the last, W of twice the last; h r l q are
# registers of 16, 32, 64 and 128 bits, p a predicate, 4xr a vector, V a vector or register as .v2 or .v4 say, <a,b>
# a vector of operands; [g] [s] [v] [c] are addresses in global, shared, local and constant memory, [y] in the shared or
# global memory that the mnemonic names, [x] in any that it names; anything else stands for itself.
SETS = {
    "INTS": "{u16,u32,u64,s16,s32,s64}",
    "WIDE": "{u32,u64,s32,s64}",
    "BITS": "{b16,b32,b64}",
    "COMPLETE": "mbarrier::complete_tx::bytes",
}
FORMS = """
add.$INTS T,T,T | add.sat.s32 T,T,T | add.cc.{u32,s32,u64,s64} T,T,T | addc{,.cc}.{u32,u64} T,T,T | add.{u16x2,s16x2} r,r,r
sub.$INTS T,T,T | sub.sat.s32 T,T,T | sub.cc.{u32,u64} T,T,T | subc{,.cc}.{u32,u64} T,T,T
mul.{lo,hi}.$INTS T,T,T | mul.wide.{u16,s16,u32,s32} W,T,T | mul24.{lo,hi}.{u32,s32} r,r,r
mad.{lo,hi}.$INTS T,T,T,T | mad.wide.{u16,s16,u32,s32} W,T,T,W | mad.hi.sat.s32 r,r,r,r | mad24.{lo,hi}.{u32,s32} r,r,r,r
mad.{lo,hi}.cc.{u32,u64} T,T,T,T | madc.{lo,hi}{,.cc}.{u32,u64} T,T,T,T | sad.$INTS T,T,T,T
div.$INTS T,T,T | rem.$INTS T,T,T | abs.{s16,s32,s64} T,T | neg.{s16,s32,s64} T,T
min.$INTS T,T,T | max.$INTS T,T,T | min{,.relu}.s16x2 r,r,r | max{,.relu}.s16x2 r,r,r | min.u16x2 r,r,r | max.relu.s32 r,r,r
popc.{b32,b64} r,T | clz.{b32,b64} r,T | bfind{,.shiftamt}.$WIDE r,T | fns.b32 r,r,r,r | brev.{b32,b64} T,T
bfe.$WIDE T,T,r,r | bfi.{b32,b64} T,T,T,r,r | szext.{clamp,wrap}.{u32,s32} r,r,r | bmsk.{clamp,wrap}.b32 r,r,r
dp4a.{u32,s32}.{u32,s32} r,r,r,r | dp2a.{lo,hi}.{u32,s32}.{u32,s32} r,r,r,r
{add,sub,mul}{,.rn,.rz,.rm,.rp}{,.ftz}{,.sat}.f32 T,T,T | {add,sub,mul}{,.rn,.rz,.rm,.rp}.f64 T,T,T
fma.{rn,rz,rm,rp}{,.ftz}{,.sat}.f32 T,T,T,T | fma.{rn,rz,rm,rp}.f64 T,T,T,T | mad.{rn,rz,rm,rp}.{f32,f64} T,T,T,T
{add,sub,mul}{,.rn}{,.ftz}{,.sat}.{f16,f16x2} T,T,T | {add,sub,mul}{,.rn}.{bf16,bf16x2} T,T,T
fma.rn{,.ftz}{,.sat,.relu}.{f16,f16x2} T,T,T,T | fma.rn{,.relu}.{bf16,bf16x2} T,T,T,T
div{.approx,.full,.rn,.rz,.rm,.rp}{,.ftz}.f32 T,T,T | div.{rn,rz,rm,rp}.f64 T,T,T
rcp{.approx,.rn,.rz,.rm,.rp}{,.ftz}.f32 T,T | rcp.{rn,rz,rm,rp}.f64 T,T | rcp.approx.ftz.f64 T,T
sqrt{.approx,.rn,.rz,.rm,.rp}{,.ftz}.f32 T,T | sqrt.{rn,rz,rm,rp}.f64 T,T | rsqrt.approx{,.ftz}.f32 T,T | rsqrt.approx{,.ftz}.f64 T,T
{sin,cos,lg2,ex2}.approx{,.ftz}.f32 T,T | tanh.approx.{f32,f16,f16x2,bf16,bf16x2} T,T | ex2.approx.{f16,f16x2} T,T
ex2.approx.ftz.{bf16,bf16x2} T,T | {abs,neg}{,.ftz}.{f32,f16,f16x2} T,T | {abs,neg}.{f64,bf16,bf16x2} T,T
{min,max}{,.ftz}{,.NaN}{,.xorsign.abs}.{f32,f16,f16x2} T,T,T | {min,max}{,.NaN}.{bf16,bf16x2} T,T,T | {min,max}.f64 T,T,T
testp.{finite,infinite,number,notanumber,normal,subnormal}.{f32,f64} p,T | copysign.{f32,f64} T,T,T
setp.{eq,ne,lt,le,gt,ge}.$INTS p,T,T | setp.{lo,ls,hi,hs}.{u16,u32,u64} p,T,T | setp.{eq,ne}.$BITS p,T,T
setp.{eq,ne,lt,le,gt,ge,equ,neu,ltu,leu,gtu,geu,num,nan}{,.ftz}.f32 p,T,T | setp.{eq,lt,neu,nan}.{f64,f16,bf16} p,T,T
setp.lt.{and,or,xor}.{s32,f32} p|p,T,T,!p | setp.{lt,neu}.{f16x2,bf16x2} p|p,r,r
set.{eq,lt}.{u32,s32,f32}.{u32,s32,f32,f64} r,T,T | set.{lt,nan}.{f16,u16}.f16 h,h,h | set.lt.f16x2.f16x2 r,r,r
selp.{b16,b32,b64,u16,u32,u64,s16,s32,s64,f32,f64} T,T,T,p | slct{,.ftz}.{b32,f32}.f32 r,r,r,r | slct.{u64,f64}.{f32,s32} l,l,l,r | slct.{b32,s32}.s32 r,r,r,r
{and,or,xor}.{pred,b16,b32,b64} T,T,T | not.{pred,b16,b32,b64} T,T | cnot.$BITS T,T | lop3.b32 r,r,r,r,0x96
lop3.{and,or}.b32 r|p,r,r,r,0x96,p | shl.$BITS T,T,r | shr.{b16,b32,b64,u16,u32,u64,s16,s32,s64} T,T,r
shf.{l,r}.{clamp,wrap}.b32 r,r,r,r | prmt.b32{,.f4e,.b4e,.rc8,.ecl,.ecr,.rc16} r,r,r,r
mov.{b16,b32,b64,u16,u32,u64,s16,s32,s64,f32,f64,pred} T,T | mov.b32 r,2xh | mov.b64 l,2xr | mov.b64 2xr,l | mov.b128 q,2xl | mov.b64 l,4xh
isspacep.{global,shared,local,const,shared::cluster} p,l
cvt.{u8,u16,u32,u64,s8,s16,s32,s64}.{u8,u16,u32,u64,s8,s16,s32,s64} A,B | cvt.sat.{u8,s8,u16,s16}.{s32,u32,s64} A,B | cvt.sat.u32.{s32,s64} A,B | cvt.sat.s32.{u32,s64} A,B
cvt.{rni,rzi,rmi,rpi}{,.ftz}.{u32,s32,u64,s64,s16,u8}.f32 A,B | cvt.{rni,rzi,rmi,rpi}.{u32,s32,u64,s64}.{f64,f16} A,B
cvt.{rn,rz,rm,rp}.{f16,f32,f64}.{u8,u16,u32,u64,s8,s16,s32,s64} A,B | cvt.{rni,rzi,rmi,rpi}.{f32.f32,f64.f64,f16.f16} A,B
cvt.{rn,rz,rm,rp}{,.ftz}{,.sat}.f32.f64 A,B | cvt{,.ftz}.f64.f32 A,B | cvt.{rn,rz}.f16.f32 A,B | cvt{,.ftz}.f32.f16 A,B | cvt.f32.bf16 A,B
cvt.{rn,rz}{,.relu}.{f16x2,bf16x2}.f32 r,r,r | cvt.{rn,rz}{,.relu}.bf16.f32 h,r | cvt.rna{,.satfinite}.tf32.f32 r,r | cvt.{rn,rz}.tf32.f32 r,r
cvt.rn.satfinite{,.relu}.{e4m3x2,e5m2x2}.f32 h,r,r | cvt.rn.satfinite.{e4m3x2,e5m2x2}.f16x2 h,r | cvt.rn{,.relu}.f16x2.{e4m3x2,e5m2x2} r,h
cvt.pack.sat.{u16,s16}.s32 r,r,r | cvt.pack.sat.{u8,s8,u4,s4,u2}.s32.b32 r,r,r,r
{vadd4,vsub4,vavrg4,vabsdiff4,vmin4,vmax4}.{u32,s32}.{u32,s32}.{u32,s32} r,r,r,r | vset{2,4}.{u32,s32}.{u32,s32}.lt r,r,r,r
{vadd2,vsub2,vavrg2,vabsdiff2,vmin2,vmax2}.{u32,s32}.{u32,s32}.{u32,s32} r,r,r,r | {vadd,vsub,vabsdiff,vmin,vmax}.{u32,s32}.{u32,s32}.{u32,s32}{,.sat} r,r,r
{vshl,vshr}.u32.u32.u32.{clamp,wrap} r,r,r | vmad.{u32,s32}.u32.u32{,.sat} r,r,r,r | vset.u32.u32.{lt,ge} r,r,r
ld{,.global,.shared,.local}.{u8,s8,b8,u16,s16,b16,u32,s32,b32,f32,u64,s64,b64,f64} T,[x] | ld.const.{u32,f32,f64} T,[c] | ld.param.u64 l,[out]
ld.global{,.ca,.cg,.cs,.lu,.cv}{,.v2,.v4}.{u32,f32} V,[g] | ld.global.nc{,.L1::no_allocate}{,.L2::128B}.{v2.u64,v4.f32,u8} V,[g] | ld.global.b128 q,[g]
ld.{volatile,relaxed.gpu,relaxed.sys,acquire.cta,acquire.gpu,acquire.sys,mmio.relaxed.sys}.global.{u32,u64} T,[g] | ld.shared::cluster.u32 r,[s] | ldu.global.{u32,v2.f32} V,[g]
st{,.global,.shared,.local}.{u8,b8,u16,b16,u32,b32,f32,u64,b64,f64} [x],T | st.global{,.wb,.cg,.cs,.wt}{,.v2,.v4}.{u32,f32} [g],V | st.global.b128 [g],q
st.{volatile,relaxed.gpu,release.cta,release.gpu,release.sys}.global.{u32,u64} [g],T | st.async.shared::cluster.mbarrier::complete_tx::bytes.{u32,v2.u64} [s],V,[s]
prefetch.global.{L1,L2} [g] | prefetchu.L1 [x] | discard.global.L2 [g],128 | applypriority.global.L2::evict_normal [g],128 | createpolicy.fractional.L2::evict_last.b64 l,1.0
atom{,.relaxed,.acq_rel}{,.gpu,.sys,.cta}.{global,shared}.{add,min,max,inc,dec}.u32 r,[y],r | atom.{global,shared}.{add,min,max}.u64 l,[y],l
atom.{global,shared}.{min,max}.{s32,s64} T,[y],T | atom.{global,shared}.cas.{b16,b32,b64,b128} T,[y],T,T | atom.{global,shared}.add.{f32,f64} T,[y],T
atom{,.relaxed,.acq_rel,.acquire,.release}.gpu.{global,shared}.{and,or,xor,exch}.{b32,b64} T,[y],T | atom.global.exch.b128 q,[g],q | atom.{global,shared}.add.noftz.{f16,f16x2,bf16,bf16x2} T,[y],T | atom.add.u32 r,[x],r | atom.global.add.v4.f32 4xr,[g],4xr
red{,.relaxed.gpu}.{global,shared}.{add,min,max,inc,dec}.u32 [y],r | red{,.relaxed.gpu,.release.sys}.{global,shared}.{and,or,xor}.{b32,b64} [y],T | red.global.add.{u64,f32,f64} [g],T | red.global.add.noftz.{f16x2,bf16x2} [g],r
red.global.add.{v2.f32,v4.f32} [g],V | red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [s],r,[s] | atom.shared::cluster.add.u32 r,[s],r
shfl.sync.{up,down,bfly,idx}.b32 r|p,r,r,r,0xffffffff | vote.sync.{all,any,uni}.pred p,p,0xffffffff | vote.sync.ballot.b32 r,p,0xffffffff
match.any.sync.{b32,b64} r,T,0xffffffff | match.all.sync.{b32,b64} r|p,T,0xffffffff | redux.sync.{add,min,max}.{u32,s32} r,r,0xffffffff
redux.sync.{and,or,xor}.b32 r,r,0xffffffff | activemask.b32 r | elect.sync r|p,0xffffffff
bar.sync 0 | bar.sync 1,64 | bar.arrive 1,64 | bar.red.popc.u32 r,0,p | bar.red.{and,or}.pred p,0,p | bar.warp.sync 0xffffffff | barrier.sync 1 | barrier.cta.sync.aligned 0
cp.async.ca.shared.global [s],[g],{4,8,16} | cp.async.cg.shared.global{,.L2::128B} [s],[g],16 | cp.async.ca.shared.global [s],[g],4,r | cp.async.commit_group ; | cp.async.wait_group 1 | cp.async.wait_all ;
cp.async.mbarrier.arrive{,.noinc}.shared.b64 [s] | cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s],[g],r,[s] | cp.async.bulk.global.shared::cta.bulk_group [g],[s],r
cp.async.bulk.commit_group ; | cp.async.bulk.wait_group{,.read} 0 | cp.reduce.async.bulk.global.shared::cta.bulk_group.{add.u32,add.u64,add.s32,min.u32,min.s64,max.s32,max.u64,inc.u32,dec.u32,and.b32,or.b64,xor.b32,add.noftz.f16,add.noftz.bf16,add.f32,add.f64,min.f16,max.bf16} [g],[s],r
ldmatrix.sync.aligned.m8n8.x1{,.trans}.shared.b16 1xr,[s] | ldmatrix.sync.aligned.m8n8.x2{,.trans}.shared.b16 2xr,[s] | ldmatrix.sync.aligned.m8n8.x4{,.trans}.shared.b16 4xr,[s]
stmatrix.sync.aligned.m8n8.x4{,.trans}.shared.b16 [s],4xr | movmatrix.sync.aligned.m8n8.trans.b16 r,r
mma.sync.aligned.m16n8k16.row.col.f32.{f16.f16,bf16.bf16}.f32 4xr,4xr,2xr,4xr | mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 2xr,4xr,2xr,2xr | mma.sync.aligned.m16n8k8.row.col.f32.{f16.f16,bf16.bf16}.f32 4xr,2xr,1xr,4xr
mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 4xr,4xr,2xr,4xr | mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 4xr,2xr,1xr,4xr | mma.sync.aligned.m8n8k4.{row,col}.{row,col}.f32.f16.f16.f32 8xr,2xr,2xr,8xr
mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 2xl,1xl,1xl,2xl | mma.sync.aligned.m16n8k32.row.col{,.satfinite}.s32.{u8.u8,s8.s8,u8.s8}.s32 4xr,4xr,2xr,4xr | mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 4xr,2xr,1xr,4xr
mma.sync.aligned.m16n8k64.row.col.s32.{u4.u4,s4.s4}.s32 4xr,4xr,2xr,4xr | mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.{xor,and}.popc 4xr,4xr,2xr,4xr | mma.sync.aligned.m16n8k32.row.col.f32.{e4m3.e4m3,e5m2.e5m2}.f32 4xr,4xr,2xr,4xr
wgmma.fence.sync.aligned ; | wgmma.commit_group.sync.aligned ; | wgmma.wait_group.sync.aligned 0
trap ; | brkpt ; | exit ; | ret ; | alloca.u64 l,l | stacksave.u64 l | stackrestore.u64 l
mov.u32 r,%{tid,ntid,ctaid,nctaid,cluster_ctaid,cluster_nctaid,clusterid,nclusterid}.{x,y,z} | mov.u32 r,%{laneid,warpid,nwarpid,smid,nsmid,clock,clock_hi}
mov.u32 r,%lanemask_{eq,le,lt,ge,gt} | mov.u32 r,%{cluster_ctarank,cluster_nctarank,envreg2,globaltimer_lo,globaltimer_hi,pm0} | mov.pred p,%is_explicit_cluster
mov.u32 r,%{dynamic_smem_size,total_smem_size,aggr_smem_size,reserved_smem_offset_begin,reserved_smem_offset_end} | mov.u64 l,%{clock64,globaltimer,gridid,current_graph_exec,pm0_64}
mov.u64 l,{smem,cmem,table,square} | mov.b128 2xl,q | mov.b32 2xh,r | mov.b64 2xr,l | cvta.{global,shared,local,const,param}.u64 l,l | cvta.to.{global,shared,local,const,param}.u64 l,l
bra{,.uni} L | brx.idx{,.uni} r,ts | call{,.uni} nothing | call{,.uni} (l),square,(l) | call l,(),proto | call (l),l,(l),proto2
ld.weak{,.global,.shared,.local}.{u32,f64} T,[x] | ld.shared::cta.{u32,v4.f32} V,[s] | ld.shared{,.v2,.v4}.{u8,b16,u32,s32,f32} V,[s] | ld.shared.v2.{u64,f64} V,[s] | ld.{local,const}.{v2.u32,v4.f32,v2.f64} V,[x]
ld.global{.ca,.cg,.cs,.lu,.cv}.v2.{u64,f64} V,[g] | ld.global.v2.{u8,s8,u16,b16} V,[g] | ld.global.v4.{u8,s8,u16,b16} V,[g] | ld.param.{u8,s16,u32,f32,b64,f64} T,[out]
ld.global{.L1::evict_normal,.L1::evict_unchanged,.L1::evict_first,.L1::evict_last,.L1::no_allocate}.{u32,v4.f32} V,[g] | ld.global{.L2::64B,.L2::128B,.L2::256B}.{u32,v4.f32} V,[g] | ld.global.L2::cache_hint.f32 r,[g],l
ld.{relaxed,acquire}.{cta,cluster,gpu,sys}{,.global,.shared}.{b32,f32,b64} T,[x] | ld.volatile{,.shared}.{u32,v2.f32} V,[x] | ld.shared::cluster{,.v2,.v4}.{u32,f32} V,[s]
st.weak{,.global,.shared,.local}.{u32,f64} [x],T | st.shared::cta.{u32,v4.f32} [s],V | st.shared{,.v2,.v4}.{u8,b16,u32,s32,f32} [s],V | st.shared.v2.{u64,f64} [s],V | st.local.{v2.u32,v4.f32,v2.f64} [v],V
st.global.v2.{u8,b16,u64,f64} [g],V | st.global.v4.{u8,b16} [g],V | st.global{.L1::evict_normal,.L1::evict_last,.L1::no_allocate}.{u32,v4.f32} [g],V | st.global.L2::cache_hint.f32 [g],r,l
st.{relaxed,release}.{cta,cluster,gpu,sys}{,.global,.shared}.{b32,f32,b64} [x],T | st.volatile{,.shared}.{u32,v2.f32} [x],V | st.shared::cluster{,.v2,.v4}.{u32,f32} [s],V
st.async.weak.shared::cluster.$COMPLETE{,.v2,.v4}.{b32,u32,s32,f32} [s],V,[s] | st.async.shared::cluster.$COMPLETE{,.v2}.{b64,s64,f64} [s],V,[s]
prefetch.local.{L1,L2} [v] | prefetch{.L1,.L2} [x] | prefetch.global.L2::{evict_last,evict_normal} [g] | prefetch{.const,.param}.tensormap [l] | prefetch.tensormap [l] | pmevent 1
createpolicy.fractional.L2::{evict_last,evict_normal,evict_first,evict_unchanged}{,.L2::evict_unchanged}.b64 l,0.5 | createpolicy.range.global.L2::evict_last.L2::evict_first.b64 l,[l],r,r | createpolicy.cvt.L2.b64 l,l
atom{,.gpu}.{and,or,xor,exch}.{b32,b64} T,[g],T | atom.{add,min,max}.{u32,s32,u64} T,[g],T | atom.add.{f32,f64} T,[g],T | atom.cas.{b32,b64} T,[g],T,T | atom.add.s32 r,[g],r
atom.shared::{cta,cluster}.{add,min,max}.{u32,s32,u64} T,[s],T | atom.shared::{cta,cluster}.{and,or,xor,exch}.{b32,b64} T,[s],T | atom.shared::{cta,cluster}.cas.{b32,b64} T,[s],T,T | atom.cluster.global.add.u32 r,[g],r
atom.global.add.noftz.{v2.f16,v4.f16,v8.f16,v2.bf16,v4.f16x2,v2.bf16x2} V,[g],V | atom.global.min.noftz.{v2.f16,v4.bf16x2} V,[g],V | atom.global.add.{v2.f32,v4.f32} V,[g],V
red.{add,min,max}.{u32,s32,u64} [g],T | red.{and,or,xor}.{b32,b64} [g],T | red.add.{f32,f64} [g],T | red.{min,max}.{s64,u64} [g],T | red.shared::{cta,cluster}.{add,min,max}.{u32,s32,u64} [s],T | red.{shared,global}.add.noftz.{f16,bf16,f16x2} [y],T
red.global.add.noftz.{v2.f16,v4.bf16,v8.bf16,v4.f16x2} [g],V | red.global.{min,max}.noftz.{v2.f16,v4.bf16x2} [g],V
red.async.relaxed.cluster.shared::cluster.$COMPLETE.{inc,dec,min,max,add}.u32 [s],r,[s] | red.async.relaxed.cluster.shared::cluster.$COMPLETE.{min,max,add}.s32 [s],r,[s] | red.async.relaxed.cluster.shared::cluster.$COMPLETE.{and,or,xor}.b32 [s],r,[s] | red.async.relaxed.cluster.shared::cluster.$COMPLETE.add.u64 [s],l,[s]
multimem.ld_reduce.relaxed.gpu.global.{add,min,max}.{u32,s32,u64} T,[g] | multimem.ld_reduce.relaxed.gpu.global.add.{f32,v4.f32} V,[g] | multimem.st.relaxed.gpu.global.{u32,f32} [g],T | multimem.red.relaxed.gpu.global.add.{u32,f32} [g],T
bar.sync r | bar.sync r,r | bar.arrive r,r | bar.red.popc.u32 r,0,64,!p | bar.cta.sync 0 | barrier{,.cta}.sync{,.aligned} 1,64 | barrier{,.cta}.arrive{,.aligned} 1,64 | barrier{,.cta}.red.popc{,.aligned}.u32 r,1,p | barrier{,.cta}.red.{and,or}{,.aligned}.pred p,1,64,p
barrier.cluster.arrive{,.release,.relaxed}{,.aligned} ; | barrier.cluster.wait{,.acquire}{,.aligned} ; | bar.warp.sync r | membar.{cta,gl,sys} ; | fence{,.sc,.acq_rel}.{cta,cluster,gpu,sys} ;
fence.proxy.{alias,async,async.global,async.shared::cta,async.shared::cluster} ; | fence.proxy.tensormap::generic.release.{cta,cluster,gpu,sys} ; | fence.proxy.tensormap::generic.acquire.{cta,gpu,sys} [l],128 | fence.mbarrier_init.release.cluster ;
fence.acquire.sync_restrict::shared::cluster.cluster ; | fence.release.sync_restrict::shared::cta.cluster ; | fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster ;
nanosleep.u32 {100,r} | griddepcontrol.{launch_dependents,wait} ; | setmaxnreg.{inc,dec}.sync.aligned.u32 40 | isspacep.{param,shared::cta} p,l
cp.async.ca.shared{,::cta}.global{,.L2::64B,.L2::128B,.L2::256B} [s],[g],8,r | cp.async.cg.shared.global [s],[g],16,r | cp.async.{ca,cg}.shared.global.L2::cache_hint [s],[g],16,l | cp.async.ca.shared.global [s],[g],4,p | cp.async.wait_group 0
cp.async.mbarrier.arrive{,.noinc}{,.shared::cta}.b64 [s] | cp.async.bulk.shared::cluster.global.$COMPLETE.multicast::cluster [s],[g],r,[s],h | cp.async.bulk.shared::cluster.global.$COMPLETE.L2::cache_hint [s],[g],r,[s],l
cp.async.bulk.shared::cta.global.$COMPLETE [s],[g],r,[s] | cp.async.bulk.shared::cluster.shared::cta.$COMPLETE [s],[s],r,[s] | cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [g],[s],r,l
cp.async.bulk.prefetch.L2.global [g],r | cp.reduce.async.bulk.shared::cluster.shared::cta.$COMPLETE.{add.u32,add.s32,add.u64,min.u32,max.s32,inc.u32,and.b32,or.b32,xor.b32} [s],[s],r,[s]
cp.async.bulk.tensor.1d.shared::{cta,cluster}.global{,.tile}.$COMPLETE [s],[l,<r>],[s] | cp.async.bulk.tensor.2d.shared::{cta,cluster}.global{,.tile}.$COMPLETE [s],[l,<r,r>],[s]
cp.async.bulk.tensor.3d.shared::{cta,cluster}.global{,.tile}.$COMPLETE [s],[l,<r,r,r>],[s] | cp.async.bulk.tensor.4d.shared::cluster.global.$COMPLETE [s],[l,<r,r,r,r>],[s] | cp.async.bulk.tensor.5d.shared::cluster.global.$COMPLETE [s],[l,<r,r,r,r,r>],[s]
cp.async.bulk.tensor.2d.shared::cluster.global.$COMPLETE.multicast::cluster [s],[l,<r,r>],[s],h | cp.async.bulk.tensor.2d.shared::cluster.global.$COMPLETE.L2::cache_hint [s],[l,<r,r>],[s],l | cp.async.bulk.tensor.3d.shared::cluster.global.im2col.$COMPLETE [s],[l,<r,r,r>],[s],<h>
cp.async.bulk.tensor.4d.shared::cluster.global.im2col.$COMPLETE [s],[l,<r,r,r,r>],[s],<h,h> | cp.async.bulk.tensor.5d.shared::cluster.global.im2col.$COMPLETE [s],[l,<r,r,r,r,r>],[s],<h,h,h>
cp.async.bulk.tensor.1d.global.shared::cta{,.tile}.bulk_group [l,<r>],[s] | cp.async.bulk.tensor.2d.global.shared::cta{,.tile}.bulk_group [l,<r,r>],[s] | cp.async.bulk.tensor.3d.global.shared::cta.{tile,im2col_no_offs}.bulk_group [l,<r,r,r>],[s]
cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [l,<r,r,r,r>],[s] | cp.async.bulk.tensor.5d.global.shared::cta.bulk_group [l,<r,r,r,r,r>],[s] | cp.reduce.async.bulk.tensor.2d.global.shared::cta.{add,min,max,inc,dec,and,or,xor}{,.tile}.bulk_group [l,<r,r>],[s]
cp.async.bulk.prefetch.tensor.2d.L2.global{,.tile} [l,<r,r>] | cp.async.bulk.prefetch.tensor.3d.L2.global.im2col [l,<r,r,r>],<h>
tensormap.replace.tile.global_address{,.global,.shared::cta}.b1024.b64 [l],l | tensormap.replace.tile.rank.global.b1024.b32 [l],r | tensormap.replace.tile.{box_dim,global_dim,element_stride}.global.b1024.b32 [l],0,r | tensormap.replace.tile.global_stride.global.b1024.b64 [l],0,l
tensormap.replace.tile.{elemtype,interleave_layout,swizzle_mode,fill_mode}.global.b1024.b32 [l],0 | tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [l],[s],128
mbarrier.init{,.shared,.shared::cta}.b64 [s],r | mbarrier.inval{,.shared,.shared::cta}.b64 [s] | mbarrier.expect_tx{,.relaxed.cta,.relaxed.cluster}.shared::{cta,cluster}.b64 [s],r | mbarrier.complete_tx{,.relaxed.cta,.relaxed.cluster}.shared::{cta,cluster}.b64 [s],r
mbarrier.{arrive,arrive_drop}{,.release.cta,.release.cluster,.relaxed.cta,.relaxed.cluster}{,.shared,.shared::cta}.b64 l,[s] | mbarrier.{arrive,arrive_drop}{,.release.cta,.release.cluster}.shared::cta.b64 l,[s],r | mbarrier.{arrive,arrive_drop}{,.release.cluster}.shared::cluster.b64 _,[s],r
mbarrier.{arrive,arrive_drop}.noComplete{,.release.cta}.shared{,::cta}.b64 l,[s],r | mbarrier.{arrive,arrive_drop}.expect_tx{,.release.cta,.relaxed.cta}{,.shared,.shared::cta}.b64 l,[s],r | mbarrier.{arrive,arrive_drop}.expect_tx{,.release.cluster}.shared::cluster.b64 _,[s],r
mbarrier.{test_wait,try_wait}{,.acquire.cta,.acquire.cluster,.relaxed.cta}{,.shared,.shared::cta}.b64 p,[s],l | mbarrier.{test_wait,try_wait}.parity{,.acquire.cta,.acquire.cluster}{,.shared,.shared::cta}.b64 p,[s],r
mbarrier.try_wait.shared.b64 p,[s],l,r | mbarrier.try_wait.parity.shared.b64 p,[s],r,r | mbarrier.pending_count.b64 r,l | mapa{,.shared::cluster}.u32 r,r,r | mapa{,.shared::cluster}.u64 l,l,r | mapa.shared::cluster.u32 r,smem,r | getctarank{,.shared::cluster}.{u32,u64} r,T
stmatrix.sync.aligned.m8n8.x1{,.trans}.shared.b16 [s],1xr | stmatrix.sync.aligned.m8n8.x2{,.trans}.shared.b16 [s],2xr | ldmatrix.sync.aligned.m8n8.x4{,.trans}.shared::cta.b16 4xr,[s]
mma.sync.aligned.m8n8k4.{row,col}.{row,col}.f16.f16.f16.f16 4xr,2xr,2xr,4xr | mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f16 8xr,2xr,2xr,4xr | mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 2xr,2xr,1xr,2xr
mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 4xl,2xl,1xl,4xl | mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 4xl,4xl,2xl,4xl | mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 4xl,8xl,4xl,4xl
mma.sync.aligned.m8n8k16.row.col{,.satfinite}.s32.{u8.u8,u8.s8,s8.u8,s8.s8}.s32 2xr,1xr,1xr,2xr | mma.sync.aligned.m16n8k16.row.col{,.satfinite}.s32.{u8.u8,u8.s8,s8.u8}.s32 4xr,2xr,1xr,4xr | mma.sync.aligned.m16n8k32.row.col{,.satfinite}.s32.s8.u8.s32 4xr,4xr,2xr,4xr
mma.sync.aligned.m8n8k32.row.col{,.satfinite}.s32.{u4.u4,u4.s4,s4.u4,s4.s4}.s32 2xr,1xr,1xr,2xr | mma.sync.aligned.m16n8k32.row.col{,.satfinite}.s32.{u4.u4,u4.s4,s4.u4,s4.s4}.s32 4xr,2xr,1xr,4xr | mma.sync.aligned.m16n8k64.row.col.satfinite.s32.{u4.u4,u4.s4,s4.u4,s4.s4}.s32 4xr,4xr,2xr,4xr
mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.{xor,and}.popc 2xr,1xr,1xr,2xr | mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.{xor,and}.popc 4xr,2xr,1xr,4xr
mma.sync.aligned.m16n8k32.row.col.f32.{e4m3.e5m2,e5m2.e4m3}.f32 4xr,4xr,2xr,4xr | mma.sync.aligned.m16n8k16.row.col.f32.{e4m3.e4m3,e5m2.e5m2}.f32 4xr,2xr,1xr,4xr
mma.sync.aligned.m16n8k32.row.col.f16.{e4m3.e4m3,e5m2.e5m2}.f16 2xr,4xr,2xr,2xr | mma.sync.aligned.m16n8k16.row.col.f16.{e4m3.e4m3,e5m2.e5m2}.f16 2xr,2xr,1xr,2xr
mma.sp{,::ordered_metadata}.sync.aligned.m16n8k16.row.col.f32.{f16.f16,bf16.bf16}.f32 4xr,2xr,2xr,4xr,r,0x0 | mma.sp{,::ordered_metadata}.sync.aligned.m16n8k32.row.col.f32.{f16.f16,bf16.bf16}.f32 4xr,4xr,4xr,4xr,r,0x0 | mma.sp.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 2xr,2xr,2xr,2xr,r,0x0
mma.sp.sync.aligned.m16n8k32.row.col.f16.f16.f16.f16 2xr,4xr,4xr,2xr,r,0x0 | mma.sp{,::ordered_metadata}.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32 4xr,4xr,4xr,4xr,r,0x0 | mma.sp{,::ordered_metadata}.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 4xr,2xr,2xr,4xr,r,0x0
mma.sp{,::ordered_metadata}.sync.aligned.m16n8k64.row.col{,.satfinite}.s32.{s8.s8,u8.u8}.s32 4xr,4xr,4xr,4xr,r,0x0 | mma.sp{,::ordered_metadata}.sync.aligned.m16n8k32.row.col{,.satfinite}.s32.{s8.s8,u8.s8}.s32 4xr,2xr,2xr,4xr,r,0x0 | mma.sp.sync.aligned.m16n8k64.row.col.f32.{e4m3.e4m3,e5m2.e5m2}.f32 4xr,4xr,4xr,4xr,r,0x0
mma.sp.sync.aligned.m16n8k128.row.col.s32.{s4.s4,u4.u4}.s32 4xr,4xr,4xr,4xr,r,0x0 | mma.sp.sync.aligned.m16n8k64.row.col.s32.{s4.s4,u4.u4}.s32 4xr,2xr,2xr,4xr,r,0x0
wmma.load.{a,b}.sync.aligned.{row,col}.{m16n16k16,m32n8k16,m8n32k16}{,.global,.shared,.shared::cta}.f16 8xr,[x],r | wmma.load.c.sync.aligned.{row,col}.{m16n16k16,m32n8k16,m8n32k16}{,.global,.shared}.{f32,s32} 8xr,[x],r | wmma.load.c.sync.aligned.{row,col}.{m16n16k16,m32n8k16,m8n32k16}.global.f16 4xr,[g],r
wmma.store.d.sync.aligned.{row,col}.{m16n16k16,m32n8k16,m8n32k16}{,.global,.shared}.{f32,s32} [x],8xr,r | wmma.store.d.sync.aligned.{row,col}.{m16n16k16,m32n8k16,m8n32k16}.global.f16 [g],4xr,r | wmma.load.{a,b}.sync.aligned.row.m16n16k16.global.{u8,s8} 2xr,[g],r | wmma.load.a.sync.aligned.row.m32n8k16.global.{u8,s8} 4xr,[g],r
wmma.load.b.sync.aligned.col.m32n8k16.global.{u8,s8} 1xr,[g],r | wmma.load.{a,b}.sync.aligned.{row,col}.m16n16k16.global.bf16 4xr,[g],r | wmma.load.{a,b}.sync.aligned.{row,col}.m16n16k8.global.tf32 4xr,[g],r | wmma.load.c.sync.aligned.row.m16n16k8.global.f32 8xr,[g],r
wmma.load.a.sync.aligned.row.m8n8k32.global.{u4,s4} 1xr,[g],r | wmma.load.b.sync.aligned.col.m8n8k128.global.b1 1xr,[g],r | wmma.load.{a,b}.sync.aligned.{row,col}.m8n8k4.global.f64 1xl,[g],r | wmma.load.c.sync.aligned.row.m8n8k4.global.f64 2xl,[g],r | wmma.store.d.sync.aligned.row.m8n8k4.global.f64 [g],2xl,r
wmma.mma.sync.aligned.{row,col}.{row,col}.{m16n16k16,m32n8k16,m8n32k16}.f32.f32 8xr,8xr,8xr,8xr | wmma.mma.sync.aligned.row.col.{m16n16k16,m32n8k16,m8n32k16}.f16.f16 4xr,8xr,8xr,4xr | wmma.mma.sync.aligned.row.col.m16n16k16.f16.f32 4xr,8xr,8xr,8xr | wmma.mma.sync.aligned.row.col.m16n16k16.f32.f16 8xr,8xr,8xr,4xr
wmma.mma.sync.aligned.{row,col}.{row,col}.m16n16k16.s32.{u8.u8,s8.s8}.s32{,.satfinite} 8xr,2xr,2xr,8xr | wmma.mma.sync.aligned.row.col.m32n8k16.s32.{u8.u8,s8.s8}.s32 8xr,4xr,1xr,8xr | wmma.mma.sync.aligned.row.col.m8n32k16.s32.{u8.u8,s8.s8}.s32 8xr,1xr,4xr,8xr
wmma.mma.sync.aligned.{row,col}.{row,col}.m16n16k16.f32.bf16.bf16.f32 8xr,4xr,4xr,8xr | wmma.mma.sync.aligned.row.col.m32n8k16.f32.bf16.bf16.f32 8xr,8xr,2xr,8xr | wmma.mma.sync.aligned.row.col.m8n32k16.f32.bf16.bf16.f32 8xr,2xr,8xr,8xr | wmma.mma.sync.aligned.{row,col}.{row,col}.m16n16k8.f32.tf32.tf32.f32 8xr,4xr,4xr,8xr
wmma.mma.sync.aligned.{row,col}.{row,col}.m8n8k4{,.rn,.rz,.rm,.rp}.f64.f64.f64.f64 2xl,1xl,1xl,2xl | wmma.mma.sync.aligned.row.col.m8n8k32.s32.{u4.u4,s4.s4}.s32{,.satfinite} 2xr,1xr,1xr,2xr | wmma.mma.{xor,and}.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32 2xr,1xr,1xr,2xr
wgmma.mma_async.sync.aligned.m64n8k16.f32.{f16.f16,bf16.bf16} 4xr,l,l,p,1,1,{0,1},{0,1} | wgmma.mma_async.sync.aligned.m64n8k16.f32.{f16.f16,bf16.bf16} 4xr,4xr,l,p,{1,-1},1,0 | wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 2xr,l,l,p,1,1,0,0
wgmma.mma_async.sync.aligned.m64n64k16.f32.{f16.f16,bf16.bf16} 32xr,l,l,p,1,1,0,0 | wgmma.mma_async.sync.aligned.m64n96k16.f32.{f16.f16,bf16.bf16} 48xr,l,l,p,1,1,0,0 | wgmma.mma_async.sync.aligned.m64n128k16.f32.{f16.f16,bf16.bf16} 64xr,l,l,p,1,1,0,0 | wgmma.mma_async.sync.aligned.m64n256k16.f32.{f16.f16,bf16.bf16} 128xr,l,l,p,1,1,0,0
wgmma.mma_async.sync.aligned.m64n128k16.f16.f16.f16 32xr,l,l,p,1,1,0,0 | wgmma.mma_async.sync.aligned.m64n128k16.f32.{f16.f16,bf16.bf16} 64xr,4xr,l,p,1,1,0
wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 4xr,l,l,p,1,1 | wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 4xr,4xr,l,p,1,1 | wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 64xr,l,l,p,1,1
wgmma.mma_async.sync.aligned.m64n8k32.f32.{e4m3.e4m3,e4m3.e5m2,e5m2.e4m3,e5m2.e5m2} 4xr,l,l,p,1,1 | wgmma.mma_async.sync.aligned.m64n8k32.f16.{e4m3.e4m3,e5m2.e5m2} 2xr,l,l,p,1,1 | wgmma.mma_async.sync.aligned.m64n128k32.f32.{e4m3.e4m3,e5m2.e5m2} 64xr,4xr,l,p,1,1
wgmma.mma_async.sync.aligned.m64n8k32.s32.{s8.s8,u8.u8,s8.u8,u8.s8}{,.satfinite} 4xr,l,l,p | wgmma.mma_async.sync.aligned.m64n8k32.s32.{s8.s8,u8.u8} 4xr,4xr,l,p | wgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1.and.popc 4xr,l,l,p | wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 4xr,l,l,r,0,p,1,1,0,0
tex.1d.v4.{f32,u32,s32}.{f32,s32} 4xr,[{l,tref},<r>] | tex.2d.v4.{f32,u32,s32}.{f32,s32} 4xr,[{l,tref},<r,r>] | tex.3d.v4.{f32,u32,s32}.{f32,s32} 4xr,[{l,tref},<r,r,r,r>] | tex.a1d.v4.{f32,u32}.{f32,s32} 4xr,[l,<r,r>] | tex.a2d.v4.{f32,u32}.{f32,s32} 4xr,[l,<r,r,r,r>]
tex.{cube,acube}.v4.f32.f32 4xr,[l,<r,r,r,r>] | tex.level.1d.v4.f32.f32 4xr,[l,<r>],r | tex.level.2d.v4.{f32,s32}.f32 4xr,[l,<r,r>],r | tex.level.3d.v4.f32.f32 4xr,[l,<r,r,r,r>],r | tex.base.2d.v4.f32.f32 4xr,[l,<r,r>] | tex.grad.2d.v4.f32.f32 4xr,[l,<r,r>],<r,r>,<r,r>
tex.2dms.v4.f32.s32 4xr,[l,<r,r,r,r>] | tld4.{r,g,b,a}.2d.v4.{f32,u32,s32}.f32 4xr,[l,<r,r>] | txq.{width,height,depth,channel_data_type,channel_order,normalized_coords,filter_mode,addr_mode_0}.b32 r,[{l,tref}] | suq.{width,height,depth,channel_data_type,channel_order}.b32 r,[{l,sref}]
suld.b.1d{,.v2,.v4}.{b8,b16,b32}.{trap,clamp,zero} V,[l,<r>] | suld.b.2d{,.v2,.v4}.{b8,b16,b32}.{trap,clamp,zero} V,[l,<r,r>] | suld.b.3d{,.v2,.v4}.b32.{trap,clamp,zero} V,[{l,sref},<r,r,r,r>] | suld.b.2d{,.v2}.b64.{trap,clamp,zero} V,[l,<r,r>] | suld.b.a1d.b32.trap r,[l,<r,r>] | suld.b.a2d.b32.trap r,[l,<r,r,r,r>]
sust.b.1d{,.v2,.v4}.{b8,b16,b32}.{trap,clamp,zero} [l,<r>],V | sust.b.2d{,.v2,.v4}.{b8,b16,b32}.{trap,clamp,zero} [l,<r,r>],V | sust.b.3d{,.v2,.v4}.b32.{trap,clamp,zero} [{l,sref},<r,r,r,r>],V | sust.b.2d{,.v2}.b64.{trap,clamp,zero} [l,<r,r>],V | sust.p.2d.v4.b32.trap [l,<r,r>],4xr
sust.b.a1d.b32.trap [l,<r,r>],r | sust.b.a2d.b32.trap [l,<r,r,r,r>],r | sured.b.2d.{add,min,max}.{u32,s32}.{trap,clamp,zero} [l,<r,r>],r | sured.b.2d.{and,or}.b32.trap [l,<r,r>],r | sured.b.1d.{add,min}.u32.trap [l,<r>],r | sured.b.2d.add.u64.trap [l,<r,r>],l | istypep.{texref,samplerref,surfref} p,l
fma.rn.oob{,.relu}.{f16,f16x2,bf16,bf16x2} T,T,T,T
"""
# What PTX has for sm_100 and later only, one form or a few of each kind.
LATER_FORMS = """
add.rn.f32x2 l,l,l | mul.rn.ftz.f32x2 l,l,l | fma.rn.f32x2 l,l,l,l | {min,max}.f32 r,r,r,r | add.f32.f16 r,h,r | fma.rn.f32.bf16 r,h,h,r | redux.sync.{min,max}{,.abs}{,.NaN}.f32 r,r,0xffffffff
cvt.rn.satfinite.{e2m3x2,e3m2x2}.f32 h,r,r | cvt.rz.ue8m0x2.f32 h,r,r | cvt.rn.f16x2.{e2m3x2,e3m2x2} r,h | cvt.rn.bf16x2.ue8m0x2 r,h | cvt.rs.satfinite.e4m3x4.f32 r,<r,r,r,r>,r | cvt.rs.f16x2.f32 r,r,r,r
ld.global.v8.f32 V,[g] | ld.global.v4.f64 V,[g] | st.global.v8.b32 [g],V | st.global.v4.u64 [g],V | st.bulk.weak.shared::cta [v],l,0
ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 2xr,[s] | ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b6x16_p32 1xr,[s] | stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [s],1xr
mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.{e2m3,e3m2,e2m1}.e4m3.f32 4xr,4xr,2xr,4xr | mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0 4xr,4xr,2xr,4xr,r,<0,0>,r,<0,0>
clusterlaunchcontrol.try_cancel.async.shared::cta.$COMPLETE.b128 [s],[s] | clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p,q | clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 r,q
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [s],r | tcgen05.dealloc.cta_group::1.sync.aligned.b32 r,r | tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned ; | tcgen05.ld.sync.aligned.32x32b.x1.b32 1xr,[r] | tcgen05.st.sync.aligned.32x32b.x1.b32 [r],1xr | tcgen05.wait::{ld,st}.sync.aligned ;
tcgen05.cp.cta_group::1.128x256b [r],l | tcgen05.shift.cta_group::1.down [r] | tcgen05.mma.cta_group::1.kind::{f16,tf32,f8f6f4,i8} [r],l,l,r,p | tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [l] | tcgen05.fence::{before,after}_thread_sync ;
cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.$COMPLETE [s],[l,<r,r,r,r,r>],[s] | cp.async.bulk.global.shared::cta.bulk_group.cp_mask [g],[s],r,h
"""
_SIZE = {"8": "h", "16": "h", "32": "r", "64": "l", "128": "q"}
_WIDER = {"h": "r", "r": "l", "l": "q"}
_DECLARED = {"h": "b16", "r": "b32", "l": "b64", "q": "b128"}
# What forms name besides registers: memory, functions, textures; and, within the kernel, branch targets.
_DECLARATIONS = """\
.const .align 8 .b8 cmem[64];
.global .texref tref;
.global .surfref sref;
.func nothing() { ret; }
.func (.reg .b64 y) square(.reg .b64 x) { mul.lo.u64 y, x, x; ret; }
.global .u64 table[1] = {nothing};
"""
_INSIDE = """\
ts: .branchtargets L;
proto: .callprototype _ ();
proto2: .callprototype (.reg .b64 _) _ (.reg .b64 _);
"""
_HEADER = f"""# Which PTX instructions can be executed

Written by `python -m simt.cuda.coverage > docs/functional/coverage.md`, which loads each form in a kernel for {TARGET}; do
not edit. Accepted means that it loads; what instructions compute is tested in `tests/functional/`. What is not accepted is
refused when a program is loaded, with the reason given here. The forms are a selection of those that PTX has for `sm_70` to
`sm_90`, each with fixed operands, not all. ptxas accepts every one of them (`tests/cuda/test_coverage.py`).
"""


def expand(text: str) -> list[str]:
    """All that a text with {a,b} parts stands for."""
    found = re.search(r"\{([^{}]*)\}", text)
    if not found:
        return [text]
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

    def __init__(self, mnemonic: str) -> None:
        modifiers = mnemonic.split(".")
        self._sizes = [size for m in modifiers if (size := _size(m))] or ["r"]
        self._vector = next((int(m[1:]) for m in modifiers if m in ("v2", "v4", "v8")), 1)
        self._memory = "smem" if "shared" in mnemonic else "cmem" if ".const" in mnemonic else "%l60"
        self._next: dict[str, int] = defaultdict(int)

    def register(self, kind: str) -> str:
        self._next[kind] += 1
        return f"%{kind}{self._next[kind] - 1}"

    def text(self, letter: str) -> str:
        last = self._sizes[-1]
        if letter == "V":
            return self.vector(self._vector, last) if self._vector > 1 else self.register(last)
        if letter in ("T", "A", "B", "W"):
            return self.register(
                {"T": last, "A": self._sizes[0], "B": last, "W": _WIDER.get(last, "l")}[letter]
            )
        if letter in _DECLARED or letter == "p":
            return self.register(letter)
        if found := re.fullmatch(r"(\d+)x([hrl])", letter):
            return self.vector(int(found[1]), found[2])
        return letter

    def vector(self, count: int, kind: str) -> str:
        return "{" + ", ".join(self.register(kind) for _ in range(count)) + "}"

    def address(self, letter: str) -> str:
        named = {"g": "%l60", "v": "%l60", "s": "smem", "c": "cmem", "x": self._memory, "y": self._memory}
        return named.get(letter) or self.text(letter)


def instruction(form: str) -> str:
    """A form as an instruction."""
    mnemonic, _, operands = form.partition(" ")
    if operands == ";":
        return f"{mnemonic};"
    names = _Operands(mnemonic)
    out = ""
    for part in re.split(r"([,|!\[\]<>()])", operands):
        out += {"<": "{", ">": "}"}.get(part) or (
            names.address(part) if out.endswith("[") else names.text(part)
        )
    return f"{mnemonic} {out};"


def kernel(lines: list[str]) -> str:
    """A program with a kernel for each instruction."""
    registers = " ".join(f".reg .{kind} %{letter}<150>;" for letter, kind in _DECLARED.items())
    kernels = (
        f".visible .entry k{number}(.param .u64 out)\n{{\n{registers} .reg .pred %p<9>;"
        f" .shared .align 16 .b8 smem[1024];\n{_INSIDE}{line}\nL: ret;\n}}\n"
        for number, line in enumerate(lines)
    )
    return f".version 8.8\n.target {TARGET}\n.address_size 64\n{_DECLARATIONS}{''.join(kernels)}"


def refusal(line: str, memory: _engine.functional.DeviceMemory) -> str | None:
    """Why an instruction cannot be executed; None if it can."""
    try:
        _engine.functional.load(kernel([line]), "form", memory)
    except PtxError as error:
        return str(error).split("\n")[0].rsplit(": ", 1)[-1]
    return None


def forms(text: str = FORMS) -> list[str]:
    """All forms that are tried."""
    listed = string.Template(text).substitute(SETS).strip().splitlines()
    every = [expanded for line in listed for form in line.split(" | ") for expanded in expand(form.strip())]
    return list({instruction(form): form for form in every}.values())


def _table(tried: list[str]) -> str:
    memory = _engine.functional.DeviceMemory(1 << 24)
    count: dict[str, int] = defaultdict(int)
    refused: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for form in tried:
        opcode = re.split(r"[. ]", form)[0]
        count[opcode] += 1
        why = refusal(instruction(form), memory)
        if why is not None:
            refused[opcode][why].append(form.split(" ")[0])
    total = sum(count.values())
    lost = sum(len(names) for reasons in refused.values() for names in reasons.values())
    rows = [
        f"\n{total - lost:,} of {total:,} forms of {len(count)} opcodes are accepted.\n",
        "| opcode | accepted | tried | refused |",
        "|---|---|---|---|",
    ]
    for opcode in sorted(count):
        reasons = refused[opcode]
        missing = sum(len(names) for names in reasons.values())
        notes = "; ".join(
            f"`{names[0]}`{f' and {len(names) - 1} more' if len(names) > 1 else ''}: {why}"
            for why, names in reasons.items()
        )
        rows.append(f"| {opcode} | {count[opcode] - missing} | {count[opcode]} | {notes.replace('|', '¦')} |")
    return "\n".join(rows) + "\n"


def page() -> str:
    """The page as Markdown."""
    return (
        _HEADER
        + _table(forms())
        + "\n## What only sm_100 and later have\n\nNot aimed at; a selection. Vectors of 256 bits work all the same.\n"
        + _table(forms(LATER_FORMS))
    )


if __name__ == "__main__":
    print(page(), end="")
