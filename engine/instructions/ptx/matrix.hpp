#pragma once
#include "instructions/ptx/facts.hpp"

/// Matrix fragments and products.
namespace simt::instructions {

inline constexpr PtxRow matrix_rows[] = {
    {.name = "ldmatrix",
     .facts = load.with(Space::Shared, Extent::Other, Vectors::Consecutive),
     .forms = "ldmatrix.sync.aligned.m8n8.x1{,.trans}.shared.b16 1xr,[s]"
              " | ldmatrix.sync.aligned.m8n8.x2{,.trans}.shared.b16 2xr,[s]"
              " | ldmatrix.sync.aligned.m8n8.x4{,.trans}.shared.b16 4xr,[s]"
              " | ldmatrix.sync.aligned.m8n8.x4{,.trans}.shared::cta.b16 4xr,[s]",
     .translate = functional::translate_ldmatrix,
     .lowering = {{any, "m8n16", access("LDSM.U4x16P64TO8.M816", 16)},
                  {any, "m16n16", access("LDSM.8.MT1616", 16)},
                  {any, "x4", access("LDSM.16.M88.4", 16)},
                  {any, "x2", access("LDSM.16.M88.2", 16)},
                  {any, access("LDSM.16.M88", 16)}},
     .later_forms = "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 2xr,[s]"
                    " | ldmatrix.sync.aligned.m16n16.x2.trans.shared.b8x16.{b6x16_p32,b4x16_p64} 4xr,[s]"
                    " | ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.{b6x16_p32,b4x16_p64} 1xr,[s]"},
    {.name = "stmatrix",
     .facts = store.with(Space::Shared, Extent::Other, Vectors::Consecutive),
     .forms = "stmatrix.sync.aligned.m8n8.x4{,.trans}.shared.b16 [s],4xr"
              " | stmatrix.sync.aligned.m8n8.x1{,.trans}.shared.b16 [s],1xr"
              " | stmatrix.sync.aligned.m8n8.x2{,.trans}.shared.b16 [s],2xr",
     .translate = functional::translate_stmatrix,
     .lowering = {{any, "x4", access("STSM.16.M88.4", 16)},
                  {any, "x2", access("STSM.16.M88.2", 16)},
                  {any, access("STSM.16.M88", 16)}},
     .later_forms = "stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [s],1xr"},
    {.name = "movmatrix",
     .facts = arithmetic,
     .forms = "movmatrix.sync.aligned.m8n8.trans.b16 r,r",
     .translate = functional::translate_movmatrix,
     .lowering = one("MOVM.16.MT88")},
    {.name = "mma",
     .facts = matrix_product.with(Vectors::Consecutive),
     .forms = "mma.sync.aligned.m16n8k16.row.col.f32.{f16.f16,bf16.bf16}.f32 4xr,4xr,2xr,4xr"
              " | mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 2xr,4xr,2xr,2xr"
              " | mma.sync.aligned.m16n8k8.row.col.f32.{f16.f16,bf16.bf16}.f32 4xr,2xr,1xr,4xr"
              " | mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 4xr,4xr,2xr,4xr"
              " | mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 4xr,2xr,1xr,4xr"
              " | mma.sync.aligned.m8n8k4.{row,col}.{row,col}.f32.f16.f16.f32 8xr,2xr,2xr,8xr"
              " | mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 2xl,1xl,1xl,2xl"
              " | mma.sync.aligned.m16n8k32.row.col{,.satfinite}.s32.{u8.u8,s8.s8,u8.s8}.s32 4xr,4xr,2xr,4xr"
              " | mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 4xr,2xr,1xr,4xr"
              " | mma.sync.aligned.m16n8k64.row.col.s32.{u4.u4,s4.s4}.s32 4xr,4xr,2xr,4xr"
              " | mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.{xor,and}.popc 4xr,4xr,2xr,4xr"
              " | mma.sync.aligned.m16n8k32.row.col.f32.{e4m3.e4m3,e5m2.e5m2}.f32 4xr,4xr,2xr,4xr"
              " | mma.sync.aligned.m8n8k4.{row,col}.{row,col}.f16.f16.f16.f16 4xr,2xr,2xr,4xr"
              " | mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f16 8xr,2xr,2xr,4xr"
              " | mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 2xr,2xr,1xr,2xr"
              " | mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 4xl,2xl,1xl,4xl"
              " | mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 4xl,4xl,2xl,4xl"
              " | mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 4xl,8xl,4xl,4xl"
              " | mma.sync.aligned.m8n8k16.row.col{,.satfinite}.s32.{u8.u8,u8.s8,s8.u8,s8.s8}.s32 2xr,1xr,"
              "1xr,2xr"
              " | mma.sync.aligned.m16n8k16.row.col{,.satfinite}.s32.{u8.u8,u8.s8,s8.u8}.s32 4xr,2xr,1xr,4xr"
              " | mma.sync.aligned.m16n8k32.row.col{,.satfinite}.s32.s8.u8.s32 4xr,4xr,2xr,4xr"
              " | mma.sync.aligned.m8n8k32.row.col{,.satfinite}.s32.{u4.u4,u4.s4,s4.u4,s4.s4}.s32 2xr,1xr,"
              "1xr,2xr"
              " | mma.sync.aligned.m16n8k32.row.col{,.satfinite}.s32.{u4.u4,u4.s4,s4.u4,s4.s4}.s32 4xr,2xr,"
              "1xr,4xr"
              " | mma.sync.aligned.m16n8k64.row.col.satfinite.s32.{u4.u4,u4.s4,s4.u4,s4.s4}.s32 4xr,4xr,2xr,"
              "4xr | mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.{xor,and}.popc 2xr,1xr,1xr,2xr"
              " | mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.{xor,and}.popc 4xr,2xr,1xr,4xr"
              " | mma.sync.aligned.m16n8k32.row.col.f32.{e4m3.e5m2,e5m2.e4m3}.f32 4xr,4xr,2xr,4xr"
              " | mma.sync.aligned.m16n8k16.row.col.f32.{e4m3.e4m3,e5m2.e5m2}.f32 4xr,2xr,1xr,4xr"
              " | mma.sync.aligned.m16n8k32.row.col.f16.{e4m3.e4m3,e5m2.e5m2}.f16 2xr,4xr,2xr,2xr"
              " | mma.sync.aligned.m16n8k16.row.col.f16.{e4m3.e4m3,e5m2.e5m2}.f16 2xr,2xr,1xr,2xr"
              " | mma.sp{,::ordered_metadata}.sync.aligned.m16n8k16.row.col.f32.{f16.f16,bf16.bf16}.f32 4xr,"
              "2xr,2xr,4xr,r,0x0"
              " | mma.sp{,::ordered_metadata}.sync.aligned.m16n8k32.row.col.f32.{f16.f16,bf16.bf16}.f32 4xr,"
              "4xr,4xr,4xr,r,0x0"
              " | mma.sp.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 2xr,2xr,2xr,2xr,r,0x0"
              " | mma.sp.sync.aligned.m16n8k32.row.col.f16.f16.f16.f16 2xr,4xr,4xr,2xr,r,0x0"
              " | mma.sp{,::ordered_metadata}.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32 4xr,4xr,4xr,"
              "4xr,r,0x0"
              " | mma.sp{,::ordered_metadata}.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 4xr,2xr,2xr,"
              "4xr,r,0x0"
              " | mma.sp{,::ordered_metadata}.sync.aligned.m16n8k64.row.col{,.satfinite}.s32.{s8.s8,u8.u8}."
              "s32 4xr,4xr,4xr,4xr,r,0x0"
              " | mma.sp{,::ordered_metadata}.sync.aligned.m16n8k32.row.col{,.satfinite}.s32.{s8.s8,u8.s8}."
              "s32 4xr,2xr,2xr,4xr,r,0x0"
              " | mma.sp.sync.aligned.m16n8k64.row.col.f32.{e4m3.e4m3,e5m2.e5m2}.f32 4xr,4xr,4xr,4xr,r,0x0"
              " | mma.sp.sync.aligned.m16n8k128.row.col.s32.{s4.s4,u4.u4}.s32 4xr,4xr,4xr,4xr,r,0x0"
              " | mma.sp.sync.aligned.m16n8k64.row.col.s32.{s4.s4,u4.u4}.s32 4xr,2xr,2xr,4xr,r,0x0",
     .translate = functional::translate_mma,
     .lowering = functional::lower_matrix_product,
     .later_forms = "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.{e2m3,e3m2,e2m1}.e4m3.f32 4xr,4xr,"
                    "2xr,4xr"
                    " | mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1."
                    "e2m1.f32.ue8m0 4xr,4xr,2xr,4xr,r,<0,0>,r,<0,0>"},
    {.name = "wmma.load",
     .facts = load.with(Extent::Other),
     .forms = "wmma.load.{a,b}.sync.aligned.{row,col}.{m16n16k16,m32n8k16,m8n32k16}{,.global,.shared,."
              "shared::cta}.f16 8xr,[x],r"
              " | wmma.load.c.sync.aligned.{row,col}.{m16n16k16,m32n8k16,m8n32k16}{,.global,.shared}.{f32,"
              "s32} 8xr,[x],r"
              " | wmma.load.c.sync.aligned.{row,col}.{m16n16k16,m32n8k16,m8n32k16}.global.f16 4xr,[g],r"
              " | wmma.load.{a,b}.sync.aligned.row.m16n16k16.global.{u8,s8} 2xr,[g],r"
              " | wmma.load.a.sync.aligned.row.m32n8k16.global.{u8,s8} 4xr,[g],r"
              " | wmma.load.b.sync.aligned.col.m32n8k16.global.{u8,s8} 1xr,[g],r"
              " | wmma.load.{a,b}.sync.aligned.{row,col}.m16n16k16.global.bf16 4xr,[g],r"
              " | wmma.load.{a,b}.sync.aligned.{row,col}.m16n16k8.global.tf32 4xr,[g],r"
              " | wmma.load.c.sync.aligned.row.m16n16k8.global.f32 8xr,[g],r"
              " | wmma.load.a.sync.aligned.row.m8n8k32.global.{u4,s4} 1xr,[g],r"
              " | wmma.load.b.sync.aligned.col.m8n8k128.global.b1 1xr,[g],r"
              " | wmma.load.{a,b}.sync.aligned.{row,col}.m8n8k4.global.f64 1xl,[g],r"
              " | wmma.load.c.sync.aligned.row.m8n8k4.global.f64 2xl,[g],r",
     .translate = functional::translate_wmma_load,
     .lowering = functional::lower_fragment_load},
    {.name = "wmma.store",
     .facts = store.with(Extent::Other),
     .forms = "wmma.store.d.sync.aligned.{row,col}.{m16n16k16,m32n8k16,m8n32k16}{,.global,.shared}.{f32,"
              "s32} [x],8xr,r"
              " | wmma.store.d.sync.aligned.{row,col}.{m16n16k16,m32n8k16,m8n32k16}.global.f16 [g],4xr,r"
              " | wmma.store.d.sync.aligned.row.m8n8k4.global.f64 [g],2xl,r",
     .translate = functional::translate_wmma_store,
     .lowering = functional::lower_fragment_store},
    {.name = "wmma.mma",
     .facts = matrix_product,
     .forms = "wmma.mma.sync.aligned.{row,col}.{row,col}.{m16n16k16,m32n8k16,m8n32k16}.f32.f32 8xr,8xr,8xr,"
              "8xr | wmma.mma.sync.aligned.row.col.{m16n16k16,m32n8k16,m8n32k16}.f16.f16 4xr,8xr,8xr,4xr"
              " | wmma.mma.sync.aligned.row.col.m16n16k16.f16.f32 4xr,8xr,8xr,8xr"
              " | wmma.mma.sync.aligned.row.col.m16n16k16.f32.f16 8xr,8xr,8xr,4xr"
              " | wmma.mma.sync.aligned.{row,col}.{row,col}.m16n16k16.s32.{u8.u8,s8.s8}.s32{,.satfinite} "
              "8xr,2xr,2xr,8xr"
              " | wmma.mma.sync.aligned.row.col.m32n8k16.s32.{u8.u8,s8.s8}.s32 8xr,4xr,1xr,8xr"
              " | wmma.mma.sync.aligned.row.col.m8n32k16.s32.{u8.u8,s8.s8}.s32 8xr,1xr,4xr,8xr"
              " | wmma.mma.sync.aligned.{row,col}.{row,col}.m16n16k16.f32.bf16.bf16.f32 8xr,4xr,4xr,8xr"
              " | wmma.mma.sync.aligned.row.col.m32n8k16.f32.bf16.bf16.f32 8xr,8xr,2xr,8xr"
              " | wmma.mma.sync.aligned.row.col.m8n32k16.f32.bf16.bf16.f32 8xr,2xr,8xr,8xr"
              " | wmma.mma.sync.aligned.{row,col}.{row,col}.m16n16k8.f32.tf32.tf32.f32 8xr,4xr,4xr,8xr"
              " | wmma.mma.sync.aligned.{row,col}.{row,col}.m8n8k4{,.rn,.rz,.rm,.rp}.f64.f64.f64.f64 2xl,"
              "1xl,1xl,2xl"
              " | wmma.mma.sync.aligned.row.col.m8n8k32.s32.{u4.u4,s4.s4}.s32{,.satfinite} 2xr,1xr,1xr,2xr"
              " | wmma.mma.{xor,and}.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32 2xr,1xr,1xr,2xr",
     .translate = functional::translate_wmma_mma,
     .lowering = functional::lower_matrix_product},
    {.name = "wgmma.mma_async",
     .facts = ordered.with(Writes::FirstUpdated, Result::Late),
     .forms =
         "wgmma.mma_async.sync.aligned.m64n8k16.f32.{f16.f16,bf16.bf16} 4xr,l,l,p,1,1,{0,1},{0,1}"
         " | wgmma.mma_async.sync.aligned.m64n8k16.f32.{f16.f16,bf16.bf16} 4xr,4xr,l,p,{1,-1},1,0"
         " | wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 2xr,l,l,p,1,1,0,0"
         " | wgmma.mma_async.sync.aligned.m64n64k16.f32.{f16.f16,bf16.bf16} 32xr,l,l,p,1,1,0,0"
         " | wgmma.mma_async.sync.aligned.m64n96k16.f32.{f16.f16,bf16.bf16} 48xr,l,l,p,1,1,0,0"
         " | wgmma.mma_async.sync.aligned.m64n128k16.f32.{f16.f16,bf16.bf16} 64xr,l,l,p,1,1,0,0"
         " | wgmma.mma_async.sync.aligned.m64n256k16.f32.{f16.f16,bf16.bf16} 128xr,l,l,p,1,1,0,0"
         " | wgmma.mma_async.sync.aligned.m64n128k16.f16.f16.f16 32xr,l,l,p,1,1,0,0"
         " | wgmma.mma_async.sync.aligned.m64n128k16.f32.{f16.f16,bf16.bf16} 64xr,4xr,l,p,1,1,0"
         " | wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 4xr,l,l,p,1,1"
         " | wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 4xr,4xr,l,p,1,1"
         " | wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 64xr,l,l,p,1,1"
         " | wgmma.mma_async.sync.aligned.m64n8k32.f32.{e4m3.e4m3,e4m3.e5m2,e5m2.e4m3,e5m2.e5m2} 4xr,l,"
         "l,p,1,1 | wgmma.mma_async.sync.aligned.m64n8k32.f16.{e4m3.e4m3,e5m2.e5m2} 2xr,l,l,p,1,1"
         " | wgmma.mma_async.sync.aligned.m64n128k32.f32.{e4m3.e4m3,e5m2.e5m2} 64xr,4xr,l,p,1,1"
         " | wgmma.mma_async.sync.aligned.m64n8k32.s32.{s8.s8,u8.u8,s8.u8,u8.s8}{,.satfinite} 4xr,l,l,p"
         " | wgmma.mma_async.sync.aligned.m64n8k32.s32.{s8.s8,u8.u8} 4xr,4xr,l,p"
         " | wgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1.and.popc 4xr,l,l,p"
         " | wgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1.and.popc 4xr,4xr,l,p"
         " | wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.{f16.f16,bf16.bf16} 4xr,l,l,r,{0,1},p,1,1,{0,1},"
         "0 | wgmma.mma_async.sp.sync.aligned.m64n8k32.f16.f16.f16 2xr,4xr,l,r,0,p,1,{1,-1},1"
         " | wgmma.mma_async.sp.sync.aligned.m64n8k16.f32.tf32.tf32 4xr,l,l,r,{0,1},p,1,1"
         " | wgmma.mma_async.sp.sync.aligned.m64n8k16.f32.tf32.tf32 4xr,4xr,l,r,0,p,-1,1"
         " | wgmma.mma_async.sp.sync.aligned.m64n8k64.f32.{e4m3.e5m2,e5m2.e4m3} 4xr,l,l,r,0,p,1,1"
         " | wgmma.mma_async.sp.sync.aligned.m64n8k64.f16.{e4m3.e4m3,e5m2.e5m2} 2xr,4xr,l,r,0,p,1,1"
         " | wgmma.mma_async.sp.sync.aligned.m64n8k64.s32.{s8.s8,u8.u8}{,.satfinite} 4xr,l,l,r,0,p"
         " | wgmma.mma_async.sp.sync.aligned.m64n8k64.s32.{s8.s8,u8.u8} 4xr,4xr,l,r,0,p",
     .translate = functional::translate_wgmma_mma_async,
     .lowering = functional::lower_warpgroup_product},
    {.name = "wgmma.fence",
     .facts = ordered.with(Writes::Nothing),
     .forms = "wgmma.fence.sync.aligned ;",
     .translate = functional::translate_wgmma_order,
     .lowering = one("WARPGROUP.ARRIVE")},
    {.name = "wgmma.commit_group",
     .facts = ordered.with(Writes::Nothing),
     .forms = "wgmma.commit_group.sync.aligned ;",
     .translate = functional::translate_wgmma_order,
     .lowering = one("WARPGROUP.ARRIVE")},
    {.name = "wgmma.wait_group",
     .facts = ordered.with(Writes::Nothing),
     .forms = "wgmma.wait_group.sync.aligned 0",
     .translate = functional::translate_wgmma_wait_group,
     .lowering = one("WARPGROUP.ARRIVE")},
};

}  // namespace simt::instructions
