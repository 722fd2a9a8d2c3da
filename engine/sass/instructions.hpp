#pragma once
#include "sass/translation.hpp"

namespace simt::sass {

/// The semantics of machine instructions: each function emits the Ops of one. The rows of instructions/sass/
/// name these functions, in the same families as here.
using Semantics = void(Translation&);

// integer.cpp
Semantics translate_iadd3, translate_iadd, translate_viadd, translate_imad, translate_lea, translate_iscadd,
    translate_iabs, translate_idp, translate_vabsdiff, translate_vabsdiff4;
// bits.cpp
Semantics translate_shf, translate_lop3, translate_prmt, translate_popc, translate_flo, translate_brev,
    translate_bmsk, translate_sgxt;
// selection.cpp
Semantics translate_isetp, translate_imnmx, translate_viaddmnmx, translate_vimnmx3, translate_sel;
// moves.cpp
Semantics translate_mov, translate_s2r, translate_cs2r, translate_r2ur, translate_plop3, translate_p2r,
    translate_r2p, translate_shfl, translate_vote, translate_match, translate_redux, translate_lepc,
    translate_bmov;
// float.cpp
Semantics translate_fadd, translate_fmul, translate_ffma, translate_fsetp, translate_fset, translate_fsel,
    translate_fmnmx, translate_fmnmx3, translate_fhadd, translate_fhfma, translate_fadd2, translate_fmul2,
    translate_ffma2, translate_mufu, translate_fchk;
// double.cpp
Semantics translate_dadd, translate_dmul, translate_dfma, translate_dsetp;
// convert.cpp
Semantics translate_i2f, translate_f2i, translate_f2ip, translate_i2ip, translate_frnd, translate_f2f,
    translate_i2i, translate_f2fp;
// half.cpp
Semantics translate_hadd2, translate_hmul2, translate_hfma2, translate_hmnmx2, translate_vhmnmx,
    translate_hsetp2, translate_hset2;
// tensor.cpp
Semantics translate_hmma, translate_qmma, translate_omma, translate_imma, translate_bmma, translate_dmma,
    translate_ldsm, translate_stsm, translate_movm, translate_group_product, translate_warpgroup;
// memory.cpp
Semantics translate_load, translate_multicast_load, translate_store, translate_load_constant, translate_fence,
    translate_nothing;
// atomics.cpp
Semantics translate_atomic, translate_query_space;
// async.cpp
Semantics translate_copy_async, translate_store_async;
// bulk.cpp
Semantics translate_bulk_copy, translate_bulk_reduction, translate_bulk_prefetch, translate_tensor_load,
    translate_tensor_store, translate_tensor_prefetch, translate_tensor_reduction, translate_next_work,
    translate_fill_shared;
// texture.cpp
Semantics translate_sample, translate_texel, translate_gather, translate_sample_gradients,
    translate_texture_query;
// surface.cpp
Semantics translate_surface;
// control.cpp
Semantics translate_bra, translate_brx, translate_call, translate_ret, translate_exit, translate_bssy,
    translate_bsync, translate_break, translate_warpsync, translate_end_collective, translate_bar,
    translate_b2r, translate_trap, translate_set_registers, translate_yield, translate_nanosleep,
    translate_depbar, translate_elect, translate_cluster_arrive, translate_cluster_wait;
// tensor_memory.cpp
Semantics translate_tensor_memory_product, translate_tensor_memory_copy, translate_tensor_memory_shift,
    translate_tensor_memory_load, translate_tensor_memory_store, translate_tensor_memory_commit,
    translate_tensor_memory_columns, translate_tensor_memory_permit;
// mbarrier.cpp
Semantics translate_syncs, translate_arrives, translate_old_arrive, translate_rpcmov;

/// Ops that call a function of the system, such as vprintf, whose arguments are in R4 and up. False if there
/// is none of this name.
bool emit_system_call(Translation& t, std::string_view name);
/// The Op that returns from a system function: to the code address in R20 and R21.
void emit_system_return(Translation& t);

}  // namespace simt::sass
