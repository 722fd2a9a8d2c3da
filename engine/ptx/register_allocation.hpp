#pragma once
#include <cstdint>
#include <vector>

#include "ptx/control_flow.hpp"
#include "ptx/module.hpp"

namespace simt::ptx {

/// Where each virtual register lives. Virtual registers whose lifetimes do not overlap share a place, so that
/// a warp's register file stays small and the timing model sees plausible dependences.
struct RegisterAllocation {
  static constexpr uint32_t unused = UINT32_MAX;

  /// For each of Function::registers: the first 32-bit register (64-bit ones take an even pair, 128-bit ones
  /// four aligned, 8- and 16-bit ones one), or for predicates a predicate number; `unused` if never named.
  std::vector<uint32_t> place;
  uint32_t registers = 0;   ///< 32-bit registers used
  uint32_t predicates = 0;  ///< predicates used
  uint32_t max_live = 0;    ///< 32-bit registers live at once, at most: the lower bound of any allocation
};

/// The registers that an instruction reads and writes, as the instruction table says of its operands.
struct Access {
  std::vector<uint32_t> reads, writes;  ///< indices into Function::registers, guard among the reads
};
Access access(const Function& function, const Module& module, uint32_t instruction);

/// Linear scan over live intervals (Poletto and Sarkar, TOPLAS 1999) on the function's control flow, which
/// fills the holes of lifetimes too (Traub, Holloway and Smith, PLDI 1998). A value that is written under a
/// guard, or on only some paths, is live where it may still be read. What an instruction writes never shares
/// a place with what it reads, nor do values of 64 bits and more with narrower ones. Parameters and results
/// that are registers keep their places throughout. Registers that a load, store or matrix instruction names
/// as a vector lie one behind the other, as machine code needs them, unless an earlier vector has one of
/// them.
RegisterAllocation allocate_registers(const Function& function, const Module& module,
                                      const ControlFlow& flow);

}  // namespace simt::ptx
