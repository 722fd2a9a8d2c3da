#pragma once
#include "machine/context.hpp"

/// Pairs of integers that become narrower.
namespace simt::functional {

/// Op::destination is {the lowest bits of Op::c, Op::a, Op::b}, with Op::a and Op::b clamped to so many bits;
/// of 16 bits each there is no Op::c.
struct Packing : Detail {
  Packing() = default;
  Packing(uint32_t bits_of_each, bool is_signed)
      : bits(bits_of_each),
        least(is_signed ? -(1 << (bits - 1)) : 0),
        most((1 << (is_signed ? bits - 1 : bits)) - 1) {}
  uint32_t bits = 0;
  int32_t least = 0, most = 0;
};
void run_packing(Context& c, const Op& op);

}  // namespace simt::functional
