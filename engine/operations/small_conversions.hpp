#pragma once
#include <string_view>

#include "machine/context.hpp"

/// Conversions of pairs of numbers of 4 and 6 bits, of fixed-point numbers (s2f6), of scale factors (ue8m0),
/// and to bf16 with scale factors.
namespace simt::functional {

/// Op::a is the upper number, or both; Op::b the lower one, or of a conversion to bf16 the pair of scale
/// factors, if there is one; Op::c that of a conversion to s2f6. Op::immediate is 1 for .relu, plus 2 for
/// .satfinite of bf16; of scale factors it is 1 for .satfinite.
struct SmallConversion {
  std::string_view to, from;
  bool up = false;  ///< scale factors are rounded up, not down
};
/// nullptr if there is none.
Handler small_conversion(const SmallConversion& conversion);
/// A half of Op::a as f32: the upper one if Op::immediate is 1.
Handler half_of_pair(bool bfloat);

}  // namespace simt::functional
