#pragma once
#include <string_view>

namespace simt {

/// Which energy an instruction of an opcode takes: a key in an Energies file (src/simt/power/energies.py).
struct OpcodeEnergy {
  std::string_view section, key;
  double multiply_adds = 0;  ///< of a warp's tensor product; an energy of the section `tensor` is of each
  bool known = true;         ///< false: one that stands in for it, or a product of unknown size
};
OpcodeEnergy energy_of(std::string_view opcode);

}  // namespace simt
