#pragma once
#include "ptx/lowering/lowerer.hpp"

namespace simt::functional {

/// What an instruction becomes in the timing model, where the instruction table cannot express it as data.
using LoweringRule = void(Lowerer&);

// own: one that a user defines.
LoweringRule lower_own;

// lowering_arithmetic.cpp
LoweringRule lower_move, lower_extreme, lower_conversion, lower_division, lower_remainder, lower_reciprocal,
    lower_square_root;
LoweringRule lower_special_function;  ///< argument: the MUFU operation

// lowering_control.cpp
LoweringRule lower_call, lower_return, lower_barrier, lower_sleep;

// lowering_memory.cpp
LoweringRule lower_load, lower_store, lower_atomic, lower_reduction, lower_copy, lower_copy_wait,
    lower_bulk_copy, lower_tensor_map_replacement, lower_tensor_map_copy;

// lowering_matrix.cpp
LoweringRule lower_matrix_product, lower_fragment_load, lower_fragment_store, lower_warpgroup_product;

// tensor_memory.cpp
LoweringRule lower_tensor_memory_move, lower_tensor_memory_copy, lower_tensor_memory_shift,
    lower_tensor_memory_product, lower_tensor_memory_commit;

// lowering_texture.cpp
LoweringRule lower_texture_fetch, lower_type_query, lower_surface_load, lower_surface_store,
    lower_surface_reduction;

/// Suffix of a machine opcode for the width of an access.
const char* width_suffix(uint32_t bytes);

}  // namespace simt::functional
