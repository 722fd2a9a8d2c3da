#pragma once
#include "instructions/ptx/facts.hpp"

/// Asynchronous copies, mbarriers and tensor maps.
namespace simt::instructions {

inline constexpr PtxRow asynchronous_rows[] = {
    {.name = "cp.async",
     .facts = copies_memory.with(Space::Shared),
     .forms = "cp.async.ca.shared.global [s],[g],{4,8,16} | cp.async.cg.shared.global{,.L2::128B} [s],[g],16"
              " | cp.async.ca.shared.global [s],[g],4,r"
              " | cp.async.ca.shared{,::cta}.global{,.L2::64B,.L2::128B,.L2::256B} [s],[g],8,r"
              " | cp.async.cg.shared.global [s],[g],16,r"
              " | cp.async.{ca,cg}.shared.global.L2::cache_hint [s],[g],16,l"
              " | cp.async.ca.shared.global [s],[g],4,p",
     .translate = functional::translate_cp_async,
     .lowering = functional::lower_copy},
    {.name = "cp.async.commit_group",
     .facts = ordered.with(Writes::Nothing),
     .forms = "cp.async.commit_group ;",
     .translate = functional::translate_cp_async_group,
     .lowering = one("LDGDEPBAR")},
    {.name = "cp.async.wait_group",
     .facts = ordered.with(Writes::Nothing),
     .forms = "cp.async.wait_group 1 | cp.async.wait_group 0",
     .translate = functional::translate_cp_async_group,
     .lowering = functional::lower_copy_wait},
    {.name = "cp.async.wait_all",
     .facts = ordered.with(Writes::Nothing),
     .forms = "cp.async.wait_all ;",
     .translate = functional::translate_cp_async_group,
     .lowering = functional::lower_copy_wait},
    {.name = "cp.async.mbarrier",
     .facts = mbarrier.with(Writes::Nothing),
     .forms = "cp.async.mbarrier.arrive{,.noinc}.shared.b64 [s]"
              " | cp.async.mbarrier.arrive{,.noinc}{,.shared::cta}.b64 [s]",
     .translate = functional::translate_cp_async_mbarrier,
     .lowering = one("ARRIVES.LDGSTSBAR")},
    {.name = "cp.async.bulk",
     .facts = copies_memory,
     .forms = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s],[g],r,[s]"
              " | cp.async.bulk.global.shared::cta.bulk_group [g],[s],r"
              " | cp.async.bulk.shared::cluster.global.$COMPLETE.multicast::cluster [s],[g],r,[s],h"
              " | cp.async.bulk.shared::cluster.global.$COMPLETE.L2::cache_hint [s],[g],r,[s],l"
              " | cp.async.bulk.shared::cta.global.$COMPLETE [s],[g],r,[s]"
              " | cp.async.bulk.shared::cluster.shared::cta.$COMPLETE [s],[s],r,[s]"
              " | cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [g],[s],r,l"
              " | cp.async.bulk.prefetch.L2.global [g],r"
              " | cp.async.bulk.tensor.1d.shared::{cta,cluster}.global{,.tile}.$COMPLETE [s],[l,<r>],[s]"
              " | cp.async.bulk.tensor.2d.shared::{cta,cluster}.global{,.tile}.$COMPLETE [s],[l,<r,r>],[s]"
              " | cp.async.bulk.tensor.3d.shared::{cta,cluster}.global{,.tile}.$COMPLETE [s],[l,<r,r,r>],[s]"
              " | cp.async.bulk.tensor.4d.shared::cluster.global.$COMPLETE [s],[l,<r,r,r,r>],[s]"
              " | cp.async.bulk.tensor.5d.shared::cluster.global.$COMPLETE [s],[l,<r,r,r,r,r>],[s]"
              " | cp.async.bulk.tensor.2d.shared::cluster.global.$COMPLETE.multicast::cluster [s],[l,<r,r>],"
              "[s],h"
              " | cp.async.bulk.tensor.2d.shared::cluster.global.$COMPLETE.L2::cache_hint [s],[l,<r,r>],[s],"
              "l | cp.async.bulk.tensor.3d.shared::cluster.global.im2col.$COMPLETE [s],[l,<r,r,r>],[s],<h>"
              " | cp.async.bulk.tensor.4d.shared::cluster.global.im2col.$COMPLETE [s],[l,<r,r,r,r>],[s],<h,"
              "h>"
              " | cp.async.bulk.tensor.5d.shared::cluster.global.im2col.$COMPLETE [s],[l,<r,r,r,r,r>],[s],"
              "<h,h,h> | cp.async.bulk.tensor.1d.global.shared::cta{,.tile}.bulk_group [l,<r>],[s]"
              " | cp.async.bulk.tensor.2d.global.shared::cta{,.tile}.bulk_group [l,<r,r>],[s]"
              " | cp.async.bulk.tensor.3d.global.shared::cta.{tile,im2col_no_offs}.bulk_group [l,<r,r,r>],"
              "[s] | cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [l,<r,r,r,r>],[s]"
              " | cp.async.bulk.tensor.5d.global.shared::cta.bulk_group [l,<r,r,r,r,r>],[s]"
              " | cp.async.bulk.prefetch.tensor.2d.L2.global{,.tile} [l,<r,r>]"
              " | cp.async.bulk.prefetch.tensor.3d.L2.global.im2col [l,<r,r,r>],<h>",
     .translate = functional::translate_cp_async_bulk,
     .lowering = functional::lower_bulk_copy,
     .later_forms = "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.$COMPLETE [s],[l,<r,r,r,r,r>],"
                    "[s] | cp.async.bulk.global.shared::cta.bulk_group.cp_mask [g],[s],r,h"},
    {.name = "cp.async.bulk.commit_group",
     .facts = ordered.with(Writes::Nothing),
     .forms = "cp.async.bulk.commit_group ;",
     .translate = functional::translate_cp_async_group,
     .lowering = one("UTMACMDFLUSH")},
    {.name = "cp.async.bulk.wait_group",
     .facts = ordered.with(Writes::Nothing),
     .forms = "cp.async.bulk.wait_group{,.read} 0",
     .translate = functional::translate_cp_async_group,
     .lowering = one("DEPBAR")},
    {.name = "cp.reduce.async.bulk",
     .facts = copies_memory,
     .forms = "cp.reduce.async.bulk.global.shared::cta.bulk_group.{add.u32,add.u64,add.s32,min.u32,min.s64,"
              "max.s32,max.u64,inc.u32,dec.u32,and.b32,or.b64,xor.b32,add.noftz.f16,add.noftz.bf16,add.f32,"
              "add.f64,min.f16,max.bf16} [g],[s],r"
              " | cp.reduce.async.bulk.shared::cluster.shared::cta.$COMPLETE.{add.u32,add.s32,add.u64,min."
              "u32,max.s32,inc.u32,and.b32,or.b32,xor.b32} [s],[s],r,[s]"
              " | cp.reduce.async.bulk.tensor.2d.global.shared::cta.{add,min,max,inc,dec,and,or,xor}{,."
              "tile}.bulk_group [l,<r,r>],[s]",
     .translate = functional::translate_cp_async_bulk,
     .lowering = functional::lower_bulk_copy},
    {.name = "clusterlaunchcontrol.try_cancel",
     .facts = mbarrier.with(Writes::Nothing),
     .forms = "",
     .translate = functional::translate_try_cancel,
     .lowering = one("UGETNEXTWORKID"),
     .later_forms = "clusterlaunchcontrol.try_cancel.async.shared::cta.$COMPLETE.b128 [s],[s]"},
    {.name = "clusterlaunchcontrol.query_cancel",
     .facts = ordered.with(Writes::First),
     .forms = "",
     .translate = functional::translate_query_cancel,
     .lowering = one("LOP3.LUT"),
     .later_forms = "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p,q"
                    " | clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 r,q"},
    {.name = "mbarrier.init",
     .facts = mbarrier.with(Writes::Nothing, Result::OfInputs),
     .forms = "mbarrier.init{,.shared,.shared::cta}.b64 [s],r",
     .translate = functional::translate_mbarrier,
     .lowering = one("SYNCS.EXCH.64")},
    {.name = "mbarrier.inval",
     .facts = mbarrier.with(Writes::Nothing, Result::OfInputs),
     .forms = "mbarrier.inval{,.shared,.shared::cta}.b64 [s]",
     .translate = functional::translate_mbarrier,
     .lowering = one("SYNCS.EXCH.64")},
    {.name = "mbarrier.expect_tx",
     .facts = mbarrier.with(Writes::Nothing),
     .forms = "mbarrier.expect_tx{,.relaxed.cta,.relaxed.cluster}.shared::{cta,cluster}.b64 [s],r",
     .translate = functional::translate_mbarrier,
     .lowering = access("SYNCS.ARRIVE.TRANS64", 8)},
    {.name = "mbarrier.complete_tx",
     .facts = mbarrier.with(Writes::Nothing),
     .forms = "mbarrier.complete_tx{,.relaxed.cta,.relaxed.cluster}.shared::{cta,cluster}.b64 [s],r",
     .translate = functional::translate_mbarrier,
     .lowering = one("SYNCS.EXCH.64")},
    {.name = "mbarrier.arrive",
     .facts = mbarrier,
     .forms = "mbarrier.arrive{,.release.cta,.release.cluster,.relaxed.cta,.relaxed.cluster}{,.shared,."
              "shared::cta}.b64 l,[s]"
              " | mbarrier.arrive{,.release.cta,.release.cluster}.shared::cta.b64 l,[s],r"
              " | mbarrier.arrive{,.release.cluster}.shared::cluster.b64 _,[s],r"
              " | mbarrier.arrive.noComplete{,.release.cta}.shared{,::cta}.b64 l,[s],r"
              " | mbarrier.arrive.expect_tx{,.release.cta,.relaxed.cta}{,.shared,.shared::cta}.b64 l,[s],r"
              " | mbarrier.arrive.expect_tx{,.release.cluster}.shared::cluster.b64 _,[s],r",
     .translate = functional::translate_mbarrier,
     .lowering = access("SYNCS.ARRIVE.TRANS64", 8)},
    {.name = "mbarrier.arrive_drop",
     .facts = mbarrier,
     .forms = "mbarrier.arrive_drop{,.release.cta,.release.cluster,.relaxed.cta,.relaxed.cluster}{,.shared,."
              "shared::cta}.b64 l,[s]"
              " | mbarrier.arrive_drop{,.release.cta,.release.cluster}.shared::cta.b64 l,[s],r"
              " | mbarrier.arrive_drop{,.release.cluster}.shared::cluster.b64 _,[s],r"
              " | mbarrier.arrive_drop.noComplete{,.release.cta}.shared{,::cta}.b64 l,[s],r"
              " | mbarrier.arrive_drop.expect_tx{,.release.cta,.relaxed.cta}{,.shared,.shared::cta}.b64 l,"
              "[s],r | mbarrier.arrive_drop.expect_tx{,.release.cluster}.shared::cluster.b64 _,[s],r",
     .translate = functional::translate_mbarrier,
     .lowering = {{any, "expect_tx", access("SYNCS.ARRIVE.TRANS64", 8)}, {any, one("SYNCS.EXCH.64")}}},
    {.name = "mbarrier.test_wait",
     .facts = mbarrier,
     .forms = "mbarrier.test_wait{,.acquire.cta,.acquire.cluster,.relaxed.cta}{,.shared,.shared::cta}.b64 p,"
              "[s],l"
              " | mbarrier.test_wait.parity{,.acquire.cta,.acquire.cluster}{,.shared,.shared::cta}.b64 p,"
              "[s],r",
     .translate = functional::translate_mbarrier,
     .lowering = access("SYNCS.PHASECHK.TRANS64", 8)},
    {.name = "mbarrier.try_wait",
     .facts = mbarrier,
     .forms = "mbarrier.try_wait{,.acquire.cta,.acquire.cluster,.relaxed.cta}{,.shared,.shared::cta}.b64 p,"
              "[s],l"
              " | mbarrier.try_wait.parity{,.acquire.cta,.acquire.cluster}{,.shared,.shared::cta}.b64 p,[s],"
              "r | mbarrier.try_wait.shared.b64 p,[s],l,r | mbarrier.try_wait.parity.shared.b64 p,[s],r,r",
     .translate = functional::translate_mbarrier,
     .lowering = access("SYNCS.PHASECHK.TRANS64", 8)},
    {.name = "mbarrier.pending_count",
     .facts = mbarrier,
     .forms = "mbarrier.pending_count.b64 r,l",
     .translate = functional::translate_mbarrier,
     .lowering = one("SYNCS.EXCH.64")},
    {.name = "tensormap.replace",
     .facts = store.with(Extent::Other, Motion::Fixed),
     .forms = "tensormap.replace.tile.global_address{,.global,.shared::cta}.b1024.b64 [l],l"
              " | tensormap.replace.tile.rank.global.b1024.b32 [l],r"
              " | tensormap.replace.tile.{box_dim,global_dim,element_stride}.global.b1024.b32 [l],0,r"
              " | tensormap.replace.tile.global_stride.global.b1024.b64 [l],0,l"
              " | tensormap.replace.tile.{elemtype,interleave_layout,swizzle_mode,fill_mode}.global.b1024."
              "b32 [l],0",
     .translate = functional::translate_tensormap_replace,
     .lowering = functional::lower_tensor_map_replacement,
     .later_forms = "tensormap.replace.tile.swizzle_atomicity.global.b1024.b32 [l],1"
                    " | tensormap.replace.tile.elemtype.global.b1024.b32 [l],14"},
    {.name = "tensormap.cp_fenceproxy",
     .facts = copies_memory,
     .forms = "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [l],"
              "[s],128",
     .translate = functional::translate_tensormap_copy,
     .lowering = functional::lower_tensor_map_copy},
};

}  // namespace simt::instructions
