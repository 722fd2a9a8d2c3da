#pragma once
#include "machine/code.hpp"

namespace simt::functional {

/// The kinds of operand of a collective with a member mask. They allow lanes to join from different
/// instructions, whose registers are then merged.
struct CollectiveOperands : Detail {
  enum class Kind : uint8_t { None, Word, Wide, Predicate };
  Kind a = Kind::None, b = Kind::None, c = Kind::None;  ///< `Op::immediate` is 1 where `a` is negated
  Kind destination = Kind::None;
  Place predicate = place::none;  ///< the second destination of d|p
  bool lane_by_lane = false;      ///< lanes of different masks may execute it together
};

}  // namespace simt::functional
