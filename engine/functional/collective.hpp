#pragma once
#include "functional/code.hpp"

namespace simt::functional {

/// What the operands of a collective with a member mask are, so that lanes can come together from different
/// instructions, and their registers be brought together.
struct CollectiveOperands : Detail {
  enum class Kind : uint8_t { None, Word, Wide, Predicate };
  Kind a = Kind::None, b = Kind::None, c = Kind::None;  ///< `Op::immediate` is 1 where `a` is negated
  Kind destination = Kind::None;
  Place predicate = place::none;  ///< the second destination of d|p
  bool lane_by_lane = false;      ///< what a lane gets does not depend on which lanes take part
};

}  // namespace simt::functional
