#pragma once
#include <string_view>

#include "machine/context.hpp"

/// Conversions of pairs of numbers of 4 and 6 bits, and of scale factors (ue8m0).
namespace simt::functional {

/// Op::a is the upper number, or both; Op::b the lower one. Op::immediate is 1 for .relu, or, of scale
/// factors, for .satfinite.
struct SmallConversion {
  std::string_view to, from;
  bool up = false;  ///< scale factors are rounded up, not down
};
/// nullptr if there is none.
Handler small_conversion(const SmallConversion& conversion);

}  // namespace simt::functional
