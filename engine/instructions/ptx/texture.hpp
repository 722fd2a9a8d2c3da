#pragma once
#include "instructions/ptx/facts.hpp"

/// Textures and surfaces.
namespace simt::instructions {

inline constexpr PtxRow texture_rows[] = {
    {.name = "tex",
     .facts = texture_load,
     .forms = "tex.1d.v4.{f32,u32,s32}.{f32,s32} 4xr,[{l,tref},<r>]"
              " | tex.2d.v4.{f32,u32,s32}.{f32,s32} 4xr,[{l,tref},<r,r>]"
              " | tex.3d.v4.{f32,u32,s32}.{f32,s32} 4xr,[{l,tref},<r,r,r,r>]"
              " | tex.a1d.v4.{f32,u32}.{f32,s32} 4xr,[l,<r,r>]"
              " | tex.a2d.v4.{f32,u32}.{f32,s32} 4xr,[l,<r,r,r,r>]"
              " | tex.{cube,acube}.v4.f32.f32 4xr,[l,<r,r,r,r>] | tex.level.1d.v4.f32.f32 4xr,[l,<r>],r"
              " | tex.level.2d.v4.{f32,s32}.f32 4xr,[l,<r,r>],r"
              " | tex.level.3d.v4.f32.f32 4xr,[l,<r,r,r,r>],r | tex.base.2d.v4.f32.f32 4xr,[l,<r,r>]"
              " | tex.grad.2d.v4.f32.f32 4xr,[l,<r,r>],<r,r>,<r,r> | tex.2dms.v4.f32.s32 4xr,[l,<r,r,r,r>]",
     .translate = functional::translate_tex,
     .lowering = functional::lower_texture_fetch},
    {.name = "tld4",
     .facts = texture_load,
     .forms = "tld4.{r,g,b,a}.2d.v4.{f32,u32,s32}.f32 4xr,[l,<r,r>]",
     .translate = functional::translate_tld4,
     .lowering = access("TLD4.R", 4)},
    {.name = "txq",
     .facts = ordered.with(Space::Texture),
     .forms = "txq.{width,height,depth,channel_data_type,channel_order,normalized_coords,filter_mode,"
              "addr_mode_0}.b32 r,[{l,tref}]",
     .translate = functional::translate_txq,
     .lowering = one("TXQ")},
    {.name = "suq",
     .facts = ordered.with(Space::Texture),
     .forms = "suq.{width,height,depth,channel_data_type,channel_order}.b32 r,[{l,sref}]",
     .translate = functional::translate_suq,
     .lowering = one("TXQ")},
    {.name = "istypep",
     .facts = ordered.with(Space::Texture),
     .forms = "istypep.{texref,samplerref,surfref} p,l",
     .translate = functional::translate_istypep,
     .lowering = functional::lower_type_query},
    {.name = "suld",
     .facts = texture_load.with(Motion::Fixed),
     .forms = "suld.b.1d{,.v2,.v4}.{b8,b16,b32}.{trap,clamp,zero} V,[l,<r>]"
              " | suld.b.2d{,.v2,.v4}.{b8,b16,b32}.{trap,clamp,zero} V,[l,<r,r>]"
              " | suld.b.3d{,.v2,.v4}.b32.{trap,clamp,zero} V,[{l,sref},<r,r,r,r>]"
              " | suld.b.2d{,.v2}.b64.{trap,clamp,zero} V,[l,<r,r>] | suld.b.a1d.b32.trap r,[l,<r,r>]"
              " | suld.b.a2d.b32.trap r,[l,<r,r,r,r>]",
     .translate = functional::translate_suld,
     .lowering = functional::lower_surface_load},
    {.name = "sust",
     .facts = store.with(Space::Texture, Extent::Other, Motion::Fixed),
     .forms = "sust.b.1d{,.v2,.v4}.{b8,b16,b32}.{trap,clamp,zero} [l,<r>],V"
              " | sust.b.2d{,.v2,.v4}.{b8,b16,b32}.{trap,clamp,zero} [l,<r,r>],V"
              " | sust.b.3d{,.v2,.v4}.b32.{trap,clamp,zero} [{l,sref},<r,r,r,r>],V"
              " | sust.b.2d{,.v2}.b64.{trap,clamp,zero} [l,<r,r>],V | sust.p.2d.v4.b32.trap [l,<r,r>],4xr"
              " | sust.b.a1d.b32.trap [l,<r,r>],r | sust.b.a2d.b32.trap [l,<r,r,r,r>],r",
     .translate = functional::translate_sust,
     .lowering = functional::lower_surface_store},
    {.name = "sured",
     .facts = atomic.with(Writes::Nothing, Space::Texture, Extent::Other),
     .forms = "sured.b.2d.{add,min,max}.{u32,s32}.{trap,clamp,zero} [l,<r,r>],r"
              " | sured.b.2d.{and,or}.b32.trap [l,<r,r>],r | sured.b.1d.{add,min}.u32.trap [l,<r>],r"
              " | sured.b.2d.add.u64.trap [l,<r,r>],l",
     .translate = functional::translate_sured,
     .lowering = functional::lower_surface_reduction},
};

}  // namespace simt::instructions
