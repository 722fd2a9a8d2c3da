#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "machine/context.hpp"
#include "machine/machine_operands.hpp"

namespace simt::functional {

/// A loop that does nothing but read a clock until a comparison changes: the Op of the branch back has it.
/// Without timing a clock counts instructions, so what the loop does until then is known before it is done.
struct ClockWait : Detail {
  /// Of an Op: what its operand may do between two iterations, and what must stay, so that it does nothing
  /// else in between.
  struct Check {
    uint32_t op = 0;
    Place operand = place::none;  ///< whose words advance with the clock; none: they do not
    bool wide = false, is_signed = false;
    std::array<Place, 2> predicates{place::none, place::none};  ///< results that must stay
    Place row = place::none;                                    ///< the same, words
  };
  static constexpr uint32_t most_ops = 32, most_checks = 8;

  uint32_t first = 0, last = 0;  ///< the loop's Ops; the last one branches back
  uint32_t reads = 0;            ///< of clocks, in an iteration
  uint32_t branches = 0;
  std::vector<Check> checks;

  uint32_t ops() const { return last - first + 1; }
  /// Performs as many of the next `most` iterations, by the lanes of `c`, as all branch as the next one does,
  /// which is at the loop's first Op. Their number.
  uint64_t skip(Context& c, const Op* code, uint64_t most) const;
};

/// Gives a ClockWait to each branch of the program that closes such a loop. operands: of machine code.
void find_clock_waits(Program& program, const MachineOperands* operands = nullptr);

}  // namespace simt::functional
