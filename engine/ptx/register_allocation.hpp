#pragma once
#include <cstdint>
#include <vector>

#include "ptx/control_flow.hpp"
#include "ptx/module.hpp"

namespace simt::ptx {

/// The place of each virtual register. Virtual registers whose lifetimes do not overlap share a place, so
/// that a warp's register file stays small and the timing model sees plausible dependences.
struct RegisterAllocation {
  static constexpr uint32_t unused = UINT32_MAX;

  /// For each of Function::registers: its first 32-bit register (64-bit ones take an aligned pair, 128-bit
  /// ones four aligned registers, 8- and 16-bit ones one), or the number of a predicate; `unused` if never
  /// named.
  std::vector<uint32_t> place;
  uint32_t registers = 0;   ///< 32-bit registers used
  uint32_t predicates = 0;  ///< predicates used
  uint32_t max_live = 0;    ///< maximum number of 32-bit registers live at once: a lower bound for any
                            ///< allocation
};

/// The registers that an instruction reads and writes, according to the instruction table.
struct Access {
  std::vector<uint32_t> reads, writes;  ///< indices into Function::registers; reads include the guard
};
Access access(const Function& function, const Module& module, uint32_t instruction);

/// Linear scan over live intervals (Poletto and Sarkar, TOPLAS 1999) on the function's control flow, which
/// also fills the holes of lifetimes (Traub, Holloway and Smith, PLDI 1998). A value written under a guard,
/// or only on some paths, is live wherever it may still be read. The registers an instruction writes never
/// share a place with those it reads, and values of 64 bits or more never share one with narrower values.
/// Parameters and results in registers keep their places throughout. Registers that a load, store or matrix
/// instruction names as a vector are consecutive, as machine code requires, unless one of them belongs to an
/// earlier vector.
RegisterAllocation allocate_registers(const Function& function, const Module& module,
                                      const ControlFlow& flow);

}  // namespace simt::ptx
