#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "isa/basic_blocks.hpp"
#include "isa/instruction_source.hpp"
#include "timing/base/spec.hpp"

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

/// What an instruction's control bits demand of its issue, and when it lowers the counters that it raises.
struct IssueRule {
  static constexpr uint32_t counters = ControlBits::counters + 1;
  /// Of warp-group multiplications whose group is closed (gsb0).
  static constexpr uint32_t group_counter = ControlBits::counters;

  bool present = false;  ///< otherwise, a scoreboard decides
  bool closes_group = false;
  bool warp_group = false;  ///< a multiplication by a warp group
  uint8_t next = 1;         ///< cycles to the warp's next instruction
  uint8_t waits = 0;        ///< bit per counter that must be 0
  uint8_t write_counter = ControlBits::no_counter, read_counter = ControlBits::no_counter;
  uint8_t limited = ControlBits::no_counter;  ///< a counter that must be at most `limit`
  uint8_t limit = 0;
  uint8_t departs_early = 0;    ///< memory: cycles by which it leaves its sub-core earlier than others
  uint8_t operands_read = 0;    ///< cycles from issue, or from leaving the sub-core, until operands are read
  uint8_t result_delay = 0;     ///< cycles by which a wide result is written later
  uint16_t result_after = 1;    ///< cycles from issue until its kind can read the result, if that is fixed
  uint8_t predicate_early = 0;  ///< cycles by which predicates among the result can be read earlier
  bool reaches_all = false;     ///< uniform datapath: all kinds of instructions can read the result then
  uint8_t uniform_lead = 0;     ///< cycles that other results of the uniform datapath take longer to reach it
  /// IMAD.WIDE: cycles by which the upper register of its sum is read and written later than the lower one.
  uint8_t halves_apart = 0;
};

/// A static instruction, decoded for one GPU specification. In the order of use: issue and execution touch
/// few of the host's cache lines.
struct alignas(64) DecodedInstruction {
  Unit unit = Unit::Int;         ///< after fallback, where the GPU lacks the instruction's own unit
  bool memory_pipeline = false;  ///< goes through the load/store unit
  uint16_t latency = 1;          ///< core cycles
  uint16_t initiation_interval = 1;
  /// Bytes of operands that a multiplication by a warp group fetches for a warp; 0 for all else.
  uint16_t shared_operands = 0;
  bool constant_load = false;                                  ///< looks up the constant cache for loads
  bool awaited = false;                                        ///< others may wait for its completion
  uint32_t constant_operand = StaticInstruction::no_constant;  ///< looks up its sub-core's constant cache for
                                                               ///< operands
  bool variable_latency = false;
  bool synchronises = false;  ///< may make its warp wait for something other than registers
  bool uses_record = false;   ///< more of its record than lanes and ticket
  bool tensor_map = false;    ///< a bulk copy through one
  uint8_t read_count = 0;     ///< general registers read: distinct ones, or those of each operand slot
  uint8_t write_count = 0;
  std::array<uint8_t, StaticInstruction::max_registers> reads{};
  std::array<uint8_t, StaticInstruction::max_registers>
      writes_at{};  ///< base registers written, for bank conflicts
  std::array<uint8_t, StaticInstruction::max_registers> read_slots{};  ///< with an issue rule only
  IssueRule issue{};
  RegisterSet touches{};  ///< registers that must not be pending when it issues
  RegisterSet writes{};   ///< registers pending until it completes
  StaticInstruction fixed{};
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
  bool control_bits = false;   ///< they issue by their control bits, rather than by a scoreboard
  uint64_t code_base = 0;      ///< start of its instructions in the instruction address space
  uint64_t constant_bank = 0;  ///< address of its constant bank, which holds the parameters
  uint32_t constants_begin = 0, constants_end = 0;  ///< the range of the bank that its instructions read
  // What SMs record for a controller.
  bool observes_warps = false;
  const BasicBlocks* observed_blocks = nullptr;  ///< nullptr: no blocks
};

}  // namespace simt
