#pragma once
#include <cstdint>

#include "isa/instruction.hpp"
#include "timing/base/spec.hpp"

namespace simt {

/// How a core model treats instructions, apart from its pipelines. Each core defines its own traits.
struct CoreTraits {
  // Decoding.
  bool vector_registers;  ///< tracks every register of a vector, and never RZ; otherwise those listed in the
                          ///< trace
  bool textures_in_memory;      ///< texture instructions with known addresses use the load/store unit
  bool sleeps;                  ///< NANOSLEEP takes the requested time; otherwise it acts as a branch
  bool bypass_only_strong_gpu;  ///< only .STRONG and .GPU loads bypass the L1
  bool tensor_shapes;           ///< a tensor instruction's interval depends on its shape
  bool control_bits;            ///< obeys control bits where instructions have them; otherwise, a scoreboard
  // Memory and synchronisation.
  MemorySpace generic_space;  ///< for generic addresses, if a trace does not define the windows
  uint64_t local_memory;      ///< where it starts
  bool atomics_hold_warp;     ///< a warp waits for its atomics, not just for their values
  bool stores_hold_warp;      ///< a warp stays until its stores are acknowledged
  bool reductions_as_stores;  ///< the end of a warp and its memory barriers wait for its reductions
  bool numbered_barriers;     ///< CTAs have 16 barriers, each for a given number of warps; otherwise one for
                              ///< all warps
  bool membar_awaits_stores;  ///< memory barriers wait until earlier stores have been performed
  bool ctas_begin_in_turn;    ///< an SM's CTAs begin at the first sub-core and at the middle one in turn
  bool carve_out_for_grid;    ///< unified memory is split according to the CTAs the grid places on an SM
  // Cycles of a load's specified latency that are spent outside the pipelines of the L1 and shared memory.
  uint32_t l1_overhead, shared_overhead;
};

/// The traits of the specification's core model.
const CoreTraits& core_traits(const Spec& spec);

}  // namespace simt
