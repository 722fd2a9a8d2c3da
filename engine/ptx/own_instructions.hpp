#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ptx/module.hpp"

/// PTX instructions that a user defines: their values come from a function at an address.
namespace simt::ptx {

struct OwnInstruction {
  /// For the lanes in `mask`, `d[lane]` from `a[lane]` and so on; absent sources are null. Not 0: it failed.
  using Function = int32_t (*)(void* d, const void* a, const void* b, const void* c, uint32_t mask);
  static constexpr size_t most_sources = 3;

  std::string mnemonic;     ///< with all modifiers
  std::string opcode;       ///< of the machine instruction that it becomes
  std::vector<Type> types;  ///< of the destination, then of the sources; 32 or 64 bits each
  Function function = nullptr;
};

/// Modules that are read from now on have it, in place of an earlier one of the same mnemonic. Throws
/// std::invalid_argument if PTX has the instruction.
void add_own_instruction(OwnInstruction instruction);
/// nullptr if there is none. It stays where it is.
const OwnInstruction* own_instruction(std::string_view mnemonic);

}  // namespace simt::ptx
