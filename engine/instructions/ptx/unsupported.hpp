#pragma once
#include "instructions/ptx/facts.hpp"

/// PTX that is parsed but cannot be executed.
namespace simt::instructions {

inline constexpr PtxRow unsupported_rows[] = {
    {.name = "multimem.ld_reduce",
     .facts = load.with(Motion::Fixed),
     .forms = "multimem.ld_reduce.relaxed.gpu.global.{add,min,max}.{u32,s32,u64} T,[g]"
              " | multimem.ld_reduce.relaxed.gpu.global.add.{f32,v4.f32} V,[g]",
     .translate = functional::translate_unsupported,
     .lowering = nothing},
    {.name = "multimem.st",
     .facts = store.with(Motion::Fixed),
     .forms = "multimem.st.relaxed.gpu.global.{u32,f32} [g],T",
     .translate = functional::translate_unsupported,
     .lowering = nothing},
    {.name = "multimem.red",
     .facts = atomic.with(Writes::Nothing),
     .forms = "multimem.red.relaxed.gpu.global.add.{u32,f32} [g],T",
     .translate = functional::translate_unsupported,
     .lowering = nothing},
    {.name = "clusterlaunchcontrol",
     .facts = ordered,
     .forms = "",
     .translate = functional::translate_unsupported,
     .lowering = nothing,
     .later_forms = "clusterlaunchcontrol.try_cancel.async.shared::cta.$COMPLETE.b128 [s],[s]"
                    " | clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p,q"
                    " | clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 r,q"},
    {.name = "tcgen05",
     .facts = ordered.with(Writes::Nothing),
     .forms = "",
     .translate = functional::translate_unsupported,
     .lowering = nothing,
     .later_forms = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [s],r"
                    " | tcgen05.dealloc.cta_group::1.sync.aligned.b32 r,r"
                    " | tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned ;"
                    " | tcgen05.st.sync.aligned.32x32b.x1.b32 [r],1xr | tcgen05.wait::{ld,st}.sync.aligned ;"
                    " | tcgen05.cp.cta_group::1.128x256b [r],l | tcgen05.shift.cta_group::1.down [r]"
                    " | tcgen05.mma.cta_group::1.kind::{f16,tf32,f8f6f4,i8} [r],l,l,r,p"
                    " | tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [l]"
                    " | tcgen05.fence::{before,after}_thread_sync ;"},
    {.name = "tcgen05.ld",
     .facts = ordered.with(Writes::BeforeAddress, Result::Late),
     .forms = "",
     .translate = functional::translate_unsupported,
     .lowering = nothing,
     .later_forms = "tcgen05.ld.sync.aligned.32x32b.x1.b32 1xr,[r]"},
};

}  // namespace simt::instructions
