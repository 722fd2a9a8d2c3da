#pragma once
#include "instructions/ptx/facts.hpp"

/// Tensor memory of sm_100 and its relatives, and products into it. Machine instructions: as ptxas 13 for
/// sm_100a.
namespace simt::instructions {

inline constexpr PtxRow tensor_memory_rows[] = {
    {.name = "tcgen05.alloc",
     .facts = ordered.with(Writes::Nothing),
     .forms = "",
     .translate = functional::translate_tcgen05_alloc,
     .lowering = one("UTCATOMSWS.FIND_AND_SET.ALIGN"),
     .later_forms = "tcgen05.alloc.cta_group::{1,2}.sync.aligned{,.shared::cta}.b32 [s],r"},
    {.name = "tcgen05.dealloc",
     .facts = ordered.with(Writes::Nothing),
     .forms = "",
     .translate = functional::translate_tcgen05_dealloc,
     .lowering = one("UTCATOMSWS.AND"),
     .later_forms = "tcgen05.dealloc.cta_group::{1,2}.sync.aligned.b32 r,r"},
    {.name = "tcgen05.relinquish_alloc_permit",
     .facts = ordered.with(Writes::Nothing),
     .forms = "",
     .translate = functional::translate_tcgen05_relinquish,
     .lowering = one("UTCATOMSWS.AND"),
     .later_forms = "tcgen05.relinquish_alloc_permit.cta_group::{1,2}.sync.aligned ;"},
    {.name = "tcgen05.ld",
     .facts = ordered.with(Writes::First, Vectors::Consecutive),
     .forms = "",
     .translate = functional::translate_tcgen05_ld,
     .lowering = functional::lower_tensor_memory_move,
     .later_forms = "tcgen05.ld.sync.aligned.{32x32b,16x64b}.{x1,x1.pack::16b}.b32 1xr,[r]"
                    " | tcgen05.ld.sync.aligned.16x128b.x2.b32 4xr,[r]"
                    " | tcgen05.ld.sync.aligned.16x256b.x1.b32 4xr,[r]"
                    " | tcgen05.ld.sync.aligned.16x32bx2.x2.b32 2xr,[r],16"},
    {.name = "tcgen05.ld.red",
     .facts = ordered.with(Writes::BeforeAddress, Vectors::Consecutive),
     .forms = "",
     .translate = functional::translate_tcgen05_ld,
     .lowering = functional::lower_tensor_memory_move,
     .later_forms = "tcgen05.ld.red.sync.aligned.32x32b.x2.{min,max}{.u32,.s32,.f32,.abs.NaN.f32} 2xr,r,[r]"
                    " | tcgen05.ld.red.sync.aligned.16x32bx2.x2.max.f32 2xr,r,[r],16"},
    {.name = "tcgen05.st",
     .facts = ordered.with(Writes::Nothing, Vectors::Consecutive),
     .forms = "",
     .translate = functional::translate_tcgen05_st,
     .lowering = functional::lower_tensor_memory_move,
     .later_forms = "tcgen05.st.sync.aligned.{32x32b,16x64b}.{x1,x1.unpack::16b}.b32 [r],1xr"
                    " | tcgen05.st.sync.aligned.16x128b.x2.b32 [r],4xr"
                    " | tcgen05.st.sync.aligned.16x256b.x1.b32 [r],4xr"
                    " | tcgen05.st.sync.aligned.16x32bx2.x2.b32 [r],16,2xr"},
    {.name = "tcgen05.wait::ld",
     .facts = ordered.with(Writes::Nothing),
     .forms = "",
     .translate = functional::translate_tcgen05_order,
     .lowering = nothing,
     .later_forms = "tcgen05.wait::ld.sync.aligned ;"},
    {.name = "tcgen05.wait::st",
     .facts = ordered.with(Writes::Nothing),
     .forms = "",
     .translate = functional::translate_tcgen05_order,
     .lowering = nothing,
     .later_forms = "tcgen05.wait::st.sync.aligned ;"},
    {.name = "tcgen05.fence::before_thread_sync",
     .facts = ordered.with(Writes::Nothing),
     .forms = "",
     .translate = functional::translate_tcgen05_order,
     .lowering = nothing,
     .later_forms = "tcgen05.fence::before_thread_sync ;"},
    {.name = "tcgen05.fence::after_thread_sync",
     .facts = ordered.with(Writes::Nothing),
     .forms = "",
     .translate = functional::translate_tcgen05_order,
     .lowering = nothing,
     .later_forms = "tcgen05.fence::after_thread_sync ;"},
    {.name = "tcgen05.cp",
     .facts = ordered.with(Writes::Nothing),
     .forms = "",
     .translate = functional::translate_tcgen05_cp,
     .lowering = functional::lower_tensor_memory_copy,
     .later_forms = "tcgen05.cp.cta_group::1.{128x256b,4x256b,128x128b}{,.b8x16.b6x16_p32} [r],l"
                    " | tcgen05.cp.cta_group::1.64x128b.{warpx2::02_13,warpx2::01_23} [r],l"
                    " | tcgen05.cp.cta_group::{1,2}.32x128b.warpx4{,.b8x16.b4x16_p64} [r],l"},
    {.name = "tcgen05.shift",
     .facts = ordered.with(Writes::Nothing),
     .forms = "",
     .translate = functional::translate_tcgen05_shift,
     .lowering = functional::lower_tensor_memory_shift,
     .later_forms = "tcgen05.shift.cta_group::{1,2}.down [r]"},
    {.name = "tcgen05.commit",
     .facts = mbarrier.with(Writes::Nothing),
     .forms = "",
     .translate = functional::translate_tcgen05_commit,
     .lowering = functional::lower_tensor_memory_commit,
     .later_forms = "tcgen05.commit.cta_group::1.mbarrier::arrive::one{,.shared::cluster}.b64 [s]"
                    " | tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster."
                    "b64 [s],h"},
    {.name = "tcgen05.mma",
     .facts = ordered.with(Writes::Nothing),
     .forms = "",
     .translate = functional::translate_tcgen05_mma,
     .lowering = functional::lower_tensor_memory_product,
     .later_forms =
         "tcgen05.mma.cta_group::{1,2}.kind::{f16,tf32,f8f6f4,i8} [r],l,l,r,p"
         " | tcgen05.mma.cta_group::1.kind::{f16,tf32,f8f6f4,i8} [r],[r],l,r,p"
         " | tcgen05.mma.cta_group::1.kind::{f16,tf32} [r],l,l,r,p,1"
         " | tcgen05.mma.cta_group::1.kind::f16 [r],l,l,r,4xr,p"
         " | tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::1X [r],l,l,r,[r],[r],p"
         " | tcgen05.mma.cta_group::1.kind::mxf4.block_scale.scale_vec::2X [r],l,l,r,[r],[r],p"
         " | tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::{2X,4X} [r],l,l,r,[r],"
         "[r],p"
         " | tcgen05.mma.ws.cta_group::1.kind::{f16,tf32,f8f6f4,i8} [r],l,l,r,p"
         " | tcgen05.mma.sp.cta_group::1.kind::{f16,tf32,f8f6f4,i8} [r],l,l,[r],r,p"
         " | tcgen05.mma.sp.cta_group::1.kind::f16 [r],[r],l,[r],r,4xr,p"
         " | tcgen05.mma.sp.cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::1X [r],l,l,[r],r,"
         "[r],[r],p"
         " | tcgen05.mma.sp.cta_group::1.kind::mxf4nvf4.block_scale.{block16,block32} [r],l,l,[r],r,"
         "[r],[r],p"
         " | tcgen05.mma.ws.sp.cta_group::1.kind::{f16,i8} [r],l,l,[r],r,p"
         " | tcgen05.mma.cta_group::1.kind::{f16,i8}.ashift [r],[r],l,r,p"},
};

}  // namespace simt::instructions
