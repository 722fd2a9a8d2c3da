#pragma once
#include <cstdint>

#include "machine/code.hpp"

namespace simt::functional {

/// Where an address operand points.
struct Address {
  enum class Base : uint8_t {
    Wide,    ///< place holds 64-bit lanes
    Narrow,  ///< place holds 32-bit lanes
    Own,     ///< as Narrow; an address in shared memory, whose bits that name a CTA do not count
    Pair,    ///< place holds the low and then the high words of 64-bit lanes, as registers of machine code do
    Stack    ///< relative to the running function's stack frame
  };
  Base base = Base::Wide;
  Place place = place::none;
  int64_t offset = 0;
  /// State space of the variable it names, or None if it names none.
  ptx::Space space = ptx::Space::None;
  bool entry_parameter = false;  ///< offset in the kernel's parameter block
};

struct PredicateOperand {
  Place place = place::none;
  bool negated = false;
};

}  // namespace simt::functional
