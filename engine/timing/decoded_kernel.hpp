#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "isa/basic_blocks.hpp"
#include "isa/instruction_source.hpp"
#include "timing/spec.hpp"

namespace simt {

/// One bit per architectural register: 256 general, 64 uniform, 8 predicates, 8 uniform predicates.
using RegisterSet = std::array<uint64_t, 6>;

inline bool intersects(const RegisterSet& a, const RegisterSet& b) {
  uint64_t hit = 0;
  for (size_t i = 0; i < a.size(); ++i) hit |= a[i] & b[i];
  return hit != 0;
}

inline void add(RegisterSet& set, const RegisterSet& more) {
  for (size_t i = 0; i < set.size(); ++i) set[i] |= more[i];
}

inline void remove(RegisterSet& set, const RegisterSet& less) {
  for (size_t i = 0; i < set.size(); ++i) set[i] &= ~less[i];
}

/// A static instruction, decoded for one GPU specification.
struct DecodedInstruction {
  StaticInstruction fixed{};
  Unit unit = Unit::Int;  ///< after fallback, where the GPU lacks the instruction's own unit
  uint16_t latency = 1;   ///< core cycles
  uint16_t initiation_interval = 1;
  bool memory_pipeline = false;                                ///< goes through the load/store unit
  bool constant_load = false;                                  ///< looks up the constant cache for loads
  uint32_t constant_operand = StaticInstruction::no_constant;  ///< looks up its sub-core's constant cache for
                                                               ///< operands
  uint8_t read_count = 0;                                      ///< distinct general registers read
  std::array<uint8_t, StaticInstruction::max_registers> reads{};
  uint8_t write_count = 0;
  std::array<uint8_t, StaticInstruction::max_registers>
      writes_at{};        ///< base registers written, for bank conflicts
  RegisterSet touches{};  ///< registers that must not be pending when it issues
  RegisterSet writes{};   ///< registers pending until it completes
};

/// A launch's instructions decoded for a specification, and what else the engine needs to know about the
/// launch.
struct DecodedKernel {
  DecodedKernel(InstructionSource& instruction_source, const Spec& spec, uint16_t launch_slot);

  InstructionSource* source;
  LaunchInfo launch;
  uint16_t slot;
  uint32_t warps_per_cta = 0;
  std::vector<DecodedInstruction> instructions;
  uint64_t code_base = 0;      ///< start of its instructions in the instruction address space
  uint64_t constant_bank = 0;  ///< address of its constant bank, which holds the parameters
  uint32_t constants_begin = 0, constants_end = 0;  ///< the range of the bank that its instructions read
  // What SMs record for a controller.
  bool observes_warps = false;
  const BasicBlocks* observed_blocks = nullptr;  ///< nullptr: no blocks
};

}  // namespace simt
