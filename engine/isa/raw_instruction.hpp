#pragma once
#include <array>
#include <cstdint>

#include "isa/instruction.hpp"

namespace simt {

/// How an instruction's addresses are given.
enum class AddressKind : uint8_t {
  None,
  Lanes,  ///< one per executing lane
  Bulk    ///< any number, not tied to lanes (TMA)
};

/// A static instruction as written in a trace or in machine code, before an opcode table classifies it.
///
/// Machine code, which has control bits, states what traces do not: each register's width, and the operand
/// slot of each source. Of DEPBAR.LE and WARPGROUP.DEPBAR.LE, `immediate` is the count, and `immediate2` the
/// counter (SBn).
struct RawInstruction {
  uint64_t pc = 0;
  uint32_t opcode = 0;       ///< index into the kernel's opcode strings
  uint32_t source_line = 0;  ///< 0 when unknown
  int64_t immediate = 0;
  int64_t immediate2 = 0;     ///< version 6 only
  uint32_t memory_bytes = 0;  ///< access width as the tracer wrote it, 0 for none
  uint32_t constant_operand =
      StaticInstruction::no_constant;  ///< byte offset in the launch's constant bank, for executed programs
  AddressKind addresses = AddressKind::None;
  bool commits_group = false;  ///< a GMMA instruction that closes its group; version 6 or machine code
  uint8_t destination_count = 0;
  uint8_t source_count = 0;
  std::array<Register, StaticInstruction::max_registers> destinations{};
  std::array<Register, StaticInstruction::max_registers> sources{};
  std::array<uint8_t, StaticInstruction::max_registers> source_slots{};  ///< with control bits only
  ControlBits control{};

  friend bool operator==(const RawInstruction&, const RawInstruction&) = default;
};

}  // namespace simt
