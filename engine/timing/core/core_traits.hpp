#pragma once
#include <cstdint>

#include "isa/instruction.hpp"
#include "timing/spec.hpp"

namespace simt {

/// How a core model understands instructions, apart from its pipelines. Each core defines its own.
struct CoreTraits {
  // Decoding.
  bool vector_registers;  ///< tracks every register of a vector, and never RZ; else those that a trace lists
  bool textures_in_memory;      ///< texture instructions of known addresses go through the load/store unit
  bool sleeps;                  ///< NANOSLEEP takes the requested time; else it is a branch
  bool bypass_only_strong_gpu;  ///< no loads but those of .STRONG and .GPU go past the L1
  bool tensor_shapes;           ///< a tensor instruction's interval follows from its shape
  // Memory and synchronisation.
  MemorySpace generic_space;  ///< of generic addresses, where a trace does not give the windows
  bool atomics_hold_warp;     ///< a warp waits for its atomics, not only for their values
  bool reductions_as_stores;  ///< a warp's end and its memory barriers wait for its reductions
  bool numbered_barriers;     ///< CTAs have 16 barriers, each for a number of warps; else one for all warps
  bool membar_awaits_stores;  ///< memory barriers wait until earlier stores are performed
  bool carve_out_for_grid;    ///< unified memory is divided for the CTAs that the grid brings to an SM
  // Cycles of a load's specified latency that are spent outside the pipeline of the L1 and of shared memory.
  uint32_t l1_overhead, shared_overhead;
};

/// Those of the specification's core model.
const CoreTraits& core_traits(const Spec& spec);

}  // namespace simt
