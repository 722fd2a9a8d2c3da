#pragma once
#include "functional/translator.hpp"

/// Families of instructions, each in a file of its own (ops_*.cpp), which adds its opcodes to the registry.
namespace simt::functional {

void register_moves(Registry& registry);
void register_control(Registry& registry);
void register_memory(Registry& registry);
void register_arithmetic(Registry& registry);
void register_integer(Registry& registry);
void register_bits(Registry& registry);
void register_video(Registry& registry);
void register_float(Registry& registry);
void register_transcendental(Registry& registry);
void register_conversion(Registry& registry);
void register_comparison(Registry& registry);
void register_atomic(Registry& registry);
void register_warp(Registry& registry);
void register_matrix(Registry& registry);
void register_mma(Registry& registry);
void register_wmma(Registry& registry);
void register_wgmma(Registry& registry);
void register_system(Registry& registry);
void register_mbarrier(Registry& registry);
void register_async(Registry& registry);
void register_tensor(Registry& registry);
void register_cluster(Registry& registry);
void register_texture(Registry& registry);

/// Ops that end a function.
void emit_return(Translation& t);
/// The Op at the beginning of a function that uses `alloca`, and those before its returns.
void emit_save_stack(Translation& t);
void emit_restore_stack(Translation& t);

/// Forms of st and red; .async has been taken.
void translate_store_async(Translation& t);      // ops_async.cpp
void translate_reduction_async(Translation& t);  // ops_async.cpp

}  // namespace simt::functional
