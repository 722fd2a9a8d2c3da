#pragma once
#include <algorithm>
#include <vector>

#include "machine/code.hpp"

namespace simt::functional {

/// What the instructions of machine code read and write, kept among the details of their Program.
struct MachineOperands : Detail {
  struct Instruction {
    uint32_t first = 0;  ///< of its places: what it writes follows what it reads
    uint16_t reads = 0, writes = 0;
    bool computes = false;  ///< all that it does is to compute what it writes from what it reads
  };
  std::vector<Instruction> instructions;
  std::vector<Place> places;      ///< of registers and predicates, and of constants that are read
  std::vector<Place> predicates;  ///< of each function: where they begin; they take a row of registers

  static const MachineOperands& of(const Program& program) {
    const auto is_it = [](const auto& d) { return dynamic_cast<const MachineOperands*>(d.get()) != nullptr; };
    return static_cast<const MachineOperands&>(
        **std::find_if(program.details.begin(), program.details.end(), is_it));
  }
};

}  // namespace simt::functional
