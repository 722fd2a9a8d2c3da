#pragma once
#include <string_view>

#include "machine/context.hpp"

/// Stochastic rounding (cvt.rs) of a pair of f32 numbers. Of the bits that a number loses, random bits are
/// added to the upper ones; a carry rounds away from zero.
namespace simt::functional {

/// To f16x2, bf16x2, e4m3x2, e5m2x2, e2m3x2, e3m2x2 or e2m1x2; nullptr for other names. Op::a is the upper
/// number, Op::b the lower one, Op::c the word with the random bits. Op::immediate is 1 for .relu, plus 2 for
/// .satfinite. A pair of halves is the whole result, and each half of the word is of the number in the same
/// half. Smaller pairs follow the low bits of the word, from which the next pair takes its random bits: four
/// numbers are two such conversions, of which the second has the first's result as its word.
Handler stochastic_conversion(std::string_view to);

}  // namespace simt::functional
