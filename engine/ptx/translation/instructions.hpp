#pragma once
#include "ptx/translation/translator.hpp"

namespace simt::functional {

/// The semantics of instructions: each function emits the Ops of one instruction. The rows of
/// instructions/ptx/ name these functions, in the same families as here; most families have a file of
/// their own.
using Semantics = void(Translation&);

// arithmetic
Semantics translate_add, translate_sub, translate_addc, translate_subc, translate_mul, translate_mad,
    translate_madc, translate_mul24, translate_mad24, translate_fma, translate_sad, translate_dp4a,
    translate_dp2a, translate_div, translate_rem, translate_abs, translate_neg, translate_min, translate_max,
    translate_copysign, translate_testp, translate_rcp, translate_sqrt, translate_rsqrt, translate_ex2,
    translate_lg2, translate_sin, translate_cos, translate_tanh;
// bits
Semantics translate_and, translate_or, translate_xor, translate_not, translate_cnot, translate_lop3,
    translate_shl, translate_shr, translate_shf, translate_bfe, translate_bfi, translate_szext,
    translate_bmsk, translate_popc, translate_clz, translate_bfind, translate_fns, translate_brev,
    translate_prmt, translate_setp, translate_set, translate_selp, translate_slct;
// data
Semantics translate_mov, translate_cvta, translate_cvt, translate_isspacep, translate_mapa,
    translate_getctarank, translate_alloca, translate_stacksave, translate_stackrestore;
// memory
Semantics translate_ld, translate_st, translate_multimem_load, translate_multimem_store, translate_st_bulk,
    translate_st_async, translate_atom, translate_red, translate_red_async, translate_fence, translate_hint,
    translate_createpolicy;
// control
Semantics translate_bra, translate_brx, translate_call, translate_ret, translate_exit, translate_trap,
    translate_nothing, translate_bar, translate_bar_warp, translate_barrier_cluster, translate_shfl,
    translate_vote, translate_match, translate_redux, translate_activemask, translate_elect,
    translate_nanosleep, translate_setmaxnreg, translate_griddepcontrol;
// matrix
Semantics translate_ldmatrix, translate_stmatrix, translate_movmatrix, translate_mma, translate_wmma_load,
    translate_wmma_store, translate_wmma_mma, translate_wgmma_mma_async, translate_wgmma_order,
    translate_wgmma_wait_group;
// tensor memory
Semantics translate_tcgen05_alloc, translate_tcgen05_dealloc, translate_tcgen05_relinquish,
    translate_tcgen05_ld, translate_tcgen05_st, translate_tcgen05_order, translate_tcgen05_cp,
    translate_tcgen05_shift, translate_tcgen05_commit, translate_tcgen05_mma;
// asynchronous
Semantics translate_cp_async, translate_cp_async_group, translate_cp_async_mbarrier, translate_cp_async_bulk,
    translate_mbarrier, translate_try_cancel, translate_query_cancel, translate_tensormap_replace,
    translate_tensormap_copy;
// texture
Semantics translate_tex, translate_tld4, translate_txq, translate_suq, translate_istypep, translate_suld,
    translate_sust, translate_sured;
// video
Semantics translate_vadd, translate_vsub, translate_vabsdiff, translate_vmin, translate_vmax, translate_vshl,
    translate_vshr, translate_vmad, translate_vset, translate_vadd2, translate_vsub2, translate_vavrg2,
    translate_vabsdiff2, translate_vmin2, translate_vmax2, translate_vset2, translate_vadd4, translate_vsub4,
    translate_vavrg4, translate_vabsdiff4, translate_vmin4, translate_vmax4, translate_vset4;
// unsupported
Semantics translate_unsupported;
Semantics translate_own;

/// Ops that end a function.
void emit_return(Translation& t);
/// The Op at the start of a function that uses `alloca`, and those before its returns.
void emit_save_stack(Translation& t);
void emit_restore_stack(Translation& t);

}  // namespace simt::functional
