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
};

}  // namespace simt::instructions
