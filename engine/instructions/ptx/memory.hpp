#pragma once
#include "instructions/ptx/facts.hpp"

/// Loads, stores, atomics, cache hints and fences.
namespace simt::instructions {

inline constexpr PtxRow memory_rows[] = {
    {.name = "ld",
     .facts = load.with(Vectors::Pieces),
     .forms = "ld{,.global,.shared,.local}.{u8,s8,b8,u16,s16,b16,u32,s32,b32,f32,u64,s64,b64,f64} T,[x]"
              " | ld.const.{u32,f32,f64} T,[c] | ld.param.u64 l,[out]"
              " | ld.global{,.ca,.cg,.cs,.lu,.cv}{,.v2,.v4}.{u32,f32} V,[g]"
              " | ld.global.nc{,.L1::no_allocate}{,.L2::128B}.{v2.u64,v4.f32,u8} V,[g]"
              " | ld.global.b128 q,[g]"
              " | ld.{volatile,relaxed.gpu,relaxed.sys,acquire.cta,acquire.gpu,acquire.sys,mmio.relaxed."
              "sys}.global.{u32,u64} T,[g] | ld.shared::cluster.u32 r,[s]"
              " | ld.weak{,.global,.shared,.local}.{u32,f64} T,[x] | ld.shared::cta.{u32,v4.f32} V,[s]"
              " | ld.shared{,.v2,.v4}.{u8,b16,u32,s32,f32} V,[s] | ld.shared.v2.{u64,f64} V,[s]"
              " | ld.{local,const}.{v2.u32,v4.f32,v2.f64} V,[x]"
              " | ld.global{.ca,.cg,.cs,.lu,.cv}.v2.{u64,f64} V,[g] | ld.global.v2.{u8,s8,u16,b16} V,[g]"
              " | ld.global.v4.{u8,s8,u16,b16} V,[g] | ld.param.{u8,s16,u32,f32,b64,f64} T,[out]"
              " | ld.global{.L1::evict_normal,.L1::evict_unchanged,.L1::evict_first,.L1::evict_last,."
              "L1::no_allocate}.{u32,v4.f32} V,[g]"
              " | ld.global{.L2::64B,.L2::128B,.L2::256B}.{u32,v4.f32} V,[g]"
              " | ld.global.L2::cache_hint.f32 r,[g],l"
              " | ld.{relaxed,acquire}.{cta,cluster,gpu,sys}{,.global,.shared}.{b32,f32,b64} T,[x]"
              " | ld.volatile{,.shared}.{u32,v2.f32} V,[x] | ld.shared::cluster{,.v2,.v4}.{u32,f32} V,[s]",
     .translate = functional::translate_ld,
     .lowering = functional::lower_load,
     .later_forms = "ld.global.v8.f32 V,[g] | ld.global.v4.f64 V,[g]"},
    {.name = "ldu",
     .facts = load,
     .forms = "ldu.global.{u32,v2.f32} V,[g]",
     .translate = functional::translate_ld,
     .lowering = functional::lower_load},
    {.name = "st",
     .facts = store.with(Vectors::Pieces),
     .forms = "st{,.global,.shared,.local}.{u8,b8,u16,b16,u32,b32,f32,u64,b64,f64} [x],T"
              " | st.global{,.wb,.cg,.cs,.wt}{,.v2,.v4}.{u32,f32} [g],V | st.global.b128 [g],q"
              " | st.{volatile,relaxed.gpu,release.cta,release.gpu,release.sys}.global.{u32,u64} [g],T"
              " | st.weak{,.global,.shared,.local}.{u32,f64} [x],T | st.shared::cta.{u32,v4.f32} [s],V"
              " | st.shared{,.v2,.v4}.{u8,b16,u32,s32,f32} [s],V | st.shared.v2.{u64,f64} [s],V"
              " | st.local.{v2.u32,v4.f32,v2.f64} [v],V | st.global.v2.{u8,b16,u64,f64} [g],V"
              " | st.global.v4.{u8,b16} [g],V"
              " | st.global{.L1::evict_normal,.L1::evict_last,.L1::no_allocate}.{u32,v4.f32} [g],V"
              " | st.global.L2::cache_hint.f32 [g],r,l"
              " | st.{relaxed,release}.{cta,cluster,gpu,sys}{,.global,.shared}.{b32,f32,b64} [x],T"
              " | st.volatile{,.shared}.{u32,v2.f32} [x],V | st.shared::cluster{,.v2,.v4}.{u32,f32} [s],V",
     .translate = functional::translate_st,
     .lowering = functional::lower_store,
     .later_forms = "st.global.v8.b32 [g],V | st.global.v4.u64 [g],V"},
    {.name = "multimem.ld_reduce",
     .facts = load.with(Vectors::Pieces),
     .forms = "multimem.ld_reduce.relaxed.gpu.global.{add,min,max}.{u32,s32,u64} T,[g]"
              " | multimem.ld_reduce.relaxed.gpu.global.add.{f32,v4.f32} V,[g]",
     .translate = functional::translate_multimem_load,
     .lowering = functional::lower_load,
     .later_forms = "multimem.ld_reduce.relaxed.gpu.global.add.acc::f16.{e4m3x4,e5m2x4} r,[g]"},
    {.name = "multimem.st",
     .facts = store.with(Vectors::Pieces),
     .forms = "multimem.st.relaxed.gpu.global.{u32,f32} [g],T",
     .translate = functional::translate_multimem_store,
     .lowering = functional::lower_store},
    {.name = "multimem.red",
     .facts = atomic.with(Writes::Nothing),
     .forms = "multimem.red.relaxed.gpu.global.add.{u32,f32} [g],T",
     .translate = functional::translate_red,
     .lowering = functional::lower_reduction},
    {.name = "st.bulk",
     .facts = store.with(Extent::Other),
     .forms = "",
     .translate = functional::translate_st_bulk,
     .lowering = access("UMEMSETS.64", 8),
     .later_forms = "st.bulk{,.weak}.shared::cta [s],l,0 | st.bulk{,.weak} [g],{l,1024},0"},
    {.name = "st.async",
     .facts = store.with(Vectors::Pieces),
     .forms = "st.async.shared::cluster.mbarrier::complete_tx::bytes.{u32,v2.u64} [s],V,[s]"
              " | st.async.weak.shared::cluster.$COMPLETE{,.v2,.v4}.{b32,u32,s32,f32} [s],V,[s]"
              " | st.async.shared::cluster.$COMPLETE{,.v2}.{b64,s64,f64} [s],V,[s]",
     .translate = functional::translate_st_async,
     .lowering = functional::lower_store},
    {.name = "atom",
     .facts = atomic,
     .forms = "atom{,.relaxed,.acq_rel}{,.gpu,.sys,.cta}.{global,shared}.{add,min,max,inc,dec}.u32 r,[y],r"
              " | atom.{global,shared}.{add,min,max}.u64 l,[y],l"
              " | atom.{global,shared}.{min,max}.{s32,s64} T,[y],T"
              " | atom.{global,shared}.cas.{b16,b32,b64,b128} T,[y],T,T"
              " | atom.{global,shared}.add.{f32,f64} T,[y],T"
              " | atom{,.relaxed,.acq_rel,.acquire,.release}.gpu.{global,shared}.{and,or,xor,exch}.{b32,"
              "b64} T,[y],T | atom.global.exch.b128 q,[g],q"
              " | atom.{global,shared}.add.noftz.{f16,f16x2,bf16,bf16x2} T,[y],T | atom.add.u32 r,[x],r"
              " | atom.global.add.v4.f32 4xr,[g],4xr | atom.shared::cluster.add.u32 r,[s],r"
              " | atom{,.gpu}.{and,or,xor,exch}.{b32,b64} T,[g],T | atom.{add,min,max}.{u32,s32,u64} T,[g],T"
              " | atom.add.{f32,f64} T,[g],T | atom.cas.{b32,b64} T,[g],T,T | atom.add.s32 r,[g],r"
              " | atom.shared::{cta,cluster}.{add,min,max}.{u32,s32,u64} T,[s],T"
              " | atom.shared::{cta,cluster}.{and,or,xor,exch}.{b32,b64} T,[s],T"
              " | atom.shared::{cta,cluster}.cas.{b32,b64} T,[s],T,T | atom.cluster.global.add.u32 r,[g],r"
              " | atom.global.add.noftz.{v2.f16,v4.f16,v8.f16,v2.bf16,v4.f16x2,v2.bf16x2} V,[g],V"
              " | atom.global.min.noftz.{v2.f16,v4.bf16x2} V,[g],V | atom.global.add.{v2.f32,v4.f32} V,[g],V",
     .translate = functional::translate_atom,
     .lowering = functional::lower_atomic},
    {.name = "red",
     .facts = atomic.with(Writes::Nothing),
     .forms = "red{,.relaxed.gpu}.{global,shared}.{add,min,max,inc,dec}.u32 [y],r"
              " | red{,.relaxed.gpu,.release.sys}.{global,shared}.{and,or,xor}.{b32,b64} [y],T"
              " | red.global.add.{u64,f32,f64} [g],T | red.global.add.noftz.{f16x2,bf16x2} [g],r"
              " | red.global.add.{v2.f32,v4.f32} [g],V | red.{add,min,max}.{u32,s32,u64} [g],T"
              " | red.{and,or,xor}.{b32,b64} [g],T | red.add.{f32,f64} [g],T | red.{min,max}.{s64,u64} [g],T"
              " | red.shared::{cta,cluster}.{add,min,max}.{u32,s32,u64} [s],T"
              " | red.{shared,global}.add.noftz.{f16,bf16,f16x2} [y],T"
              " | red.global.add.noftz.{v2.f16,v4.bf16,v8.bf16,v4.f16x2} [g],V"
              " | red.global.{min,max}.noftz.{v2.f16,v4.bf16x2} [g],V",
     .translate = functional::translate_red,
     .lowering = functional::lower_reduction},
    {.name = "red.async",
     .facts = atomic.with(Writes::Nothing),
     .forms = "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [s],r,[s]"
              " | red.async.relaxed.cluster.shared::cluster.$COMPLETE.{inc,dec,min,max,add}.u32 [s],r,[s]"
              " | red.async.relaxed.cluster.shared::cluster.$COMPLETE.{min,max,add}.s32 [s],r,[s]"
              " | red.async.relaxed.cluster.shared::cluster.$COMPLETE.{and,or,xor}.b32 [s],r,[s]"
              " | red.async.relaxed.cluster.shared::cluster.$COMPLETE.add.u64 [s],l,[s]",
     .translate = functional::translate_red_async,
     .lowering = functional::lower_reduction},
    {.name = "membar",
     .facts = fences,
     .forms = "membar.{cta,gl,sys} ;",
     .translate = functional::translate_fence,
     .lowering = {{any, "cta", one("MEMBAR.ALL.CTA")}, {any, one("MEMBAR.SC.GPU")}}},
    {.name = "fence",
     .facts = fences,
     .forms = "fence{,.sc,.acq_rel}.{cta,cluster,gpu,sys} ;"
              " | fence.proxy.{alias,async,async.global,async.shared::cta,async.shared::cluster} ;"
              " | fence.proxy.tensormap::generic.release.{cta,cluster,gpu,sys} ;"
              " | fence.proxy.tensormap::generic.acquire.{cta,gpu,sys} [l],128"
              " | fence.mbarrier_init.release.cluster ;"
              " | fence.acquire.sync_restrict::shared::cluster.cluster ;"
              " | fence.release.sync_restrict::shared::cta.cluster ;"
              " | fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster ;",
     .translate = functional::translate_fence,
     .lowering = {{any, "proxy", nothing},
                  {any, "mbarrier_init", nothing},
                  {any, "cta", one("MEMBAR.ALL.CTA")},
                  {any, one("MEMBAR.SC.GPU")}}},
    {.name = "prefetch",
     .facts = ordered.with(Writes::Nothing),
     .forms = "prefetch.global.{L1,L2} [g] | prefetch.local.{L1,L2} [v] | prefetch{.L1,.L2} [x]"
              " | prefetch.global.L2::{evict_last,evict_normal} [g] | prefetch{.const,.param}.tensormap [l]"
              " | prefetch.tensormap [l]",
     .translate = functional::translate_hint,
     .lowering = {{any, "tensormap", one("NOP")},
                  {any, "L2::evict_last", one("CCTL.E.PML2")},
                  {any, "L1", one("CCTL.E.PF1")},
                  {any, one("CCTL.E.PF2")}}},
    {.name = "prefetchu",
     .facts = ordered.with(Writes::Nothing),
     .forms = "prefetchu.L1 [x]",
     .translate = functional::translate_hint,
     .lowering = one("CCTL.E.PF1")},
    {.name = "applypriority",
     .facts = ordered.with(Writes::Nothing),
     .forms = "applypriority.global.L2::evict_normal [g],128",
     .translate = functional::translate_hint,
     .lowering = one("CCTL.E.DML2")},
    {.name = "discard",
     .facts = ordered.with(Writes::Nothing),
     .forms = "discard.global.L2 [g],128",
     .translate = functional::translate_hint,
     .lowering = one("CCTL.E.RML2")},
    {.name = "createpolicy",
     .facts = ordered,
     .forms = "createpolicy.fractional.L2::evict_last.b64 l,1.0"
              " | createpolicy.fractional.L2::{evict_last,evict_normal,evict_first,evict_unchanged}{,."
              "L2::evict_unchanged}.b64 l,0.5"
              " | createpolicy.range.global.L2::evict_last.L2::evict_first.b64 l,[l],r,r"
              " | createpolicy.cvt.L2.b64 l,l",
     .translate = functional::translate_createpolicy,
     .lowering = one("NOP")},
};

}  // namespace simt::instructions
