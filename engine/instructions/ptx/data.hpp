#pragma once
#include "instructions/ptx/facts.hpp"

/// Moves, conversions, and instructions on addresses and stacks.
namespace simt::instructions {

inline constexpr PtxRow data_rows[] = {
    {.name = "mov",
     .facts = copies.with(Names::Addresses),
     .forms = "mov.{b16,b32,b64,u16,u32,u64,s16,s32,s64,f32,f64,pred} T,T | mov.b32 r,2xh | mov.b64 l,2xr"
              " | mov.b64 2xr,l | mov.b128 q,2xl | mov.b64 l,4xh"
              " | mov.u32 r,%{tid,ntid,ctaid,nctaid,cluster_ctaid,cluster_nctaid,clusterid,nclusterid}.{x,y,"
              "z} | mov.u32 r,%{laneid,warpid,nwarpid,smid,nsmid,clock,clock_hi}"
              " | mov.u32 r,%lanemask_{eq,le,lt,ge,gt}"
              " | mov.u32 r,%{cluster_ctarank,cluster_nctarank,envreg2,globaltimer_lo,globaltimer_hi,pm0}"
              " | mov.pred p,%is_explicit_cluster"
              " | mov.u32 r,%{dynamic_smem_size,total_smem_size,aggr_smem_size,reserved_smem_offset_begin,"
              "reserved_smem_offset_end} | mov.u64 l,%{clock64,globaltimer,gridid,current_graph_exec,pm0_64}"
              " | mov.u64 l,{smem,cmem,table,square} | mov.b128 2xl,q | mov.b32 2xh,r | mov.b64 2xr,l",
     .translate = functional::translate_mov,
     .lowering = functional::lower_move},
    {.name = "cvta",
     .facts = copies.with(Names::Addresses),
     .forms = "cvta.{global,shared,local,const,param}.u64 l,l"
              " | cvta.to.{global,shared,local,const,param}.u64 l,l",
     .translate = functional::translate_cvta,
     .lowering = copy},
    {.name = "cvt",
     .facts = arithmetic,
     .forms = "cvt.{u8,u16,u32,u64,s8,s16,s32,s64}.{u8,u16,u32,u64,s8,s16,s32,s64} A,B"
              " | cvt.sat.{u8,s8,u16,s16}.{s32,u32,s64} A,B | cvt.sat.u32.{s32,s64} A,B"
              " | cvt.sat.s32.{u32,s64} A,B | cvt.{rni,rzi,rmi,rpi}{,.ftz}.{u32,s32,u64,s64,s16,u8}.f32 A,B"
              " | cvt.{rni,rzi,rmi,rpi}.{u32,s32,u64,s64}.{f64,f16} A,B"
              " | cvt.{rn,rz,rm,rp}.{f16,f32,f64}.{u8,u16,u32,u64,s8,s16,s32,s64} A,B"
              " | cvt.{rni,rzi,rmi,rpi}.{f32.f32,f64.f64,f16.f16} A,B"
              " | cvt.{rn,rz,rm,rp}{,.ftz}{,.sat}.f32.f64 A,B | cvt{,.ftz}.f64.f32 A,B"
              " | cvt.{rn,rz}.f16.f32 A,B | cvt{,.ftz}.f32.f16 A,B | cvt.f32.bf16 A,B"
              " | cvt.{rn,rz}{,.relu}.{f16x2,bf16x2}.f32 r,r,r | cvt.{rn,rz}{,.relu}.bf16.f32 h,r"
              " | cvt.rna{,.satfinite}.tf32.f32 r,r | cvt.{rn,rz}.tf32.f32 r,r"
              " | cvt.rn.satfinite{,.relu}.{e4m3x2,e5m2x2}.f32 h,r,r"
              " | cvt.rn.satfinite.{e4m3x2,e5m2x2}.f16x2 h,r | cvt.rn{,.relu}.f16x2.{e4m3x2,e5m2x2} r,h"
              " | cvt.pack.sat.{u16,s16}.s32 r,r,r | cvt.pack.sat.{u8,s8,u4,s4,u2}.s32.b32 r,r,r,r",
     .translate = functional::translate_cvt,
     .lowering = functional::lower_conversion,
     .later_forms = "cvt.rn.satfinite.{e2m3x2,e3m2x2}.f32 h,r,r | cvt.rz.ue8m0x2.f32 h,r,r"
                    " | cvt.rn.f16x2.{e2m3x2,e3m2x2} r,h | cvt.rn.bf16x2.ue8m0x2 r,h"
                    " | cvt.rs.satfinite.e4m3x4.f32 r,<r,r,r,r>,r | cvt.rs.f16x2.f32 r,r,r,r"},
    {.name = "isspacep",
     .facts = arithmetic.with(Names::Addresses),
     .forms = "isspacep.{global,shared,local,const,shared::cluster} p,l | isspacep.{param,shared::cta} p,l",
     .translate = functional::translate_isspacep,
     .lowering = {{any, "global", chain("QSPC", "ISETP", "ISETP", "ISETP.EX", "ISETP.EX", "PLOP3.LUT")},
                  {any, "const", chain("ISETP", "ISETP", "ISETP.EX", "ISETP.EX")},
                  {any, "param", chain("ISETP", "ISETP", "ISETP.EX", "ISETP.EX")},
                  {any, one("QSPC")}}},
    {.name = "mapa",
     .facts = arithmetic.with(Names::Addresses, Result::OfAddresses),
     .forms = "mapa{,.shared::cluster}.u32 r,r,r | mapa{,.shared::cluster}.u64 l,l,r"
              " | mapa.shared::cluster.u32 r,smem,r",
     .translate = functional::translate_mapa,
     .lowering = one("PRMT")},
    {.name = "getctarank",
     .facts = arithmetic,
     .forms = "getctarank{,.shared::cluster}.{u32,u64} r,T",
     .translate = functional::translate_getctarank,
     .lowering = one("PRMT")},
    {.name = "alloca",
     .facts = ordered.with(Memory::StackAllocation, Result::OfAddresses),
     .forms = "alloca.u64 l,l",
     .translate = functional::translate_alloca,
     .lowering = chain("IADD3", "LOP3.LUT", "IMAD.MOV.U32")},
    {.name = "stacksave",
     .facts = ordered.with(Result::OfAddresses),
     .forms = "stacksave.u64 l",
     .translate = functional::translate_stacksave,
     .lowering = {{narrow, one("MOV")}, {wide, halves("MOV", "MOV")}}},
    {.name = "stackrestore",
     .facts = ordered.with(Writes::Nothing),
     .forms = "stackrestore.u64 l",
     .translate = functional::translate_stackrestore,
     .lowering = one("MOV")},
};

}  // namespace simt::instructions
