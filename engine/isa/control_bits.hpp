#pragma once
#include <cstdint>

namespace simt {

/// How the compiler of machine code (sm_70 and later) tells the hardware when an instruction may issue:
/// Huerta et al., "Dissecting and Modeling the Architecture of Modern GPU Cores", MICRO 2025, section 3.
/// Traces and executed PTX have none. They are bits 41 and up of the second word of the 128-bit instruction
/// (found by several; checked against nvdisasm on sm_75, sm_80 and sm_90).
class ControlBits {
 public:
  static constexpr uint32_t counters = 6;    ///< dependence counters of a warp, SB0 to SB5
  static constexpr uint32_t no_counter = 7;  ///< where an instruction could name one
  static constexpr uint32_t bits = 21;

  constexpr ControlBits() = default;
  /// Of an instruction whose second 64-bit word is `high`.
  static constexpr ControlBits of(uint64_t high) {
    return from_bits(static_cast<uint32_t>(high >> first_bit) & mask);
  }
  /// Of an instruction that nothing but its stall delays, and that raises no counter.
  static constexpr ControlBits after(uint32_t stall) {
    return from_bits(stall | 1u << 4 | no_counter << 5 | no_counter << 8);
  }
  /// The inverse of to_bits().
  static constexpr ControlBits from_bits(uint32_t bits) {
    ControlBits control;
    control.bits_ = bits & mask;
    return control;
  }
  constexpr uint32_t to_bits() const { return bits_; }

  constexpr bool present() const { return bits_ != absent; }
  // Only if they are present:
  /// Cycles from its issue to that of the warp's next instruction.
  constexpr uint32_t stall() const { return bits_ & 15; }
  /// The scheduler should prefer another warp in the next cycle.
  constexpr bool yields() const { return (bits_ >> 4 & 1) == 0; }
  /// The counter that it raises and lowers again when its result has been written; or no_counter.
  constexpr uint32_t write_counter() const { return bits_ >> 5 & 7; }
  /// The counter that it raises and lowers again when its operands have been read; or no_counter.
  constexpr uint32_t read_counter() const { return bits_ >> 8 & 7; }
  /// Bit per counter that must be 0 before it issues.
  constexpr uint32_t waits() const { return bits_ >> 11 & 63; }
  /// Bit per operand slot whose value stays in the register-file cache.
  constexpr uint32_t reuse() const { return bits_ >> 17 & 15; }

  friend constexpr bool operator==(const ControlBits&, const ControlBits&) = default;

 private:
  static constexpr int first_bit = 41;
  static constexpr uint32_t mask = (1u << bits) - 1;
  static constexpr uint32_t absent = ~0u;
  uint32_t bits_ = absent;
};

}  // namespace simt
