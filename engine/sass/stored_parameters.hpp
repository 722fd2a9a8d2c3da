#pragma once
#include <cstdint>
#include <vector>

namespace simt::sass {

/// What an instruction is for finding the parameters that the addresses of stores come from. Registers are
/// numbered across all files, without predicates.
struct Step {
  std::vector<uint32_t> reads, writes;
  std::vector<uint32_t> address;          ///< of a store or atomic operation on global memory: its registers
  std::vector<uint32_t> parameter_words;  ///< 64-bit words of the parameter block that it reads
  bool guarded = false;
  bool loads = false;  ///< what it writes comes from memory, not from what it reads
  bool falls_through = true;
  uint32_t target = UINT32_MAX;  ///< of a branch or call, in the same code
};

/// As ptx::stored_parameters: the words of the parameter block that hold addresses through which the code may
/// store. Registers have many uses, so definitions are followed back along the control flow. Behind indirect
/// branches and returns, only the instruction after a call is followed; tensor maps are not.
std::vector<bool> stored_parameters(const std::vector<Step>& code);

}  // namespace simt::sass
