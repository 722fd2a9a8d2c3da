#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <limits>

namespace simt::functional {

/// Floating-point formats of 4 to 8 bits: without infinities and NaN where `special` is None, with a single
/// NaN (all ones) or as IEEE 754's.
enum class SmallSpecials : uint8_t { None, Nan, Ieee };
template <int exponent_bits, int mantissa_bits, int exponent_bias, SmallSpecials specials_of>
struct SmallFormat {
  static constexpr int exponent = exponent_bits, mantissa = mantissa_bits, bias = exponent_bias;
  static constexpr SmallSpecials specials = specials_of;
  static constexpr uint32_t bits = 1 + exponent + mantissa;
};
using E4m3 = SmallFormat<4, 3, 7, SmallSpecials::Nan>;
using E5m2 = SmallFormat<5, 2, 15, SmallSpecials::Ieee>;
using E2m3 = SmallFormat<2, 3, 1, SmallSpecials::None>;
using E3m2 = SmallFormat<3, 2, 3, SmallSpecials::None>;
using E2m1 = SmallFormat<2, 1, 1, SmallSpecials::None>;
/// A signed integer of 8 bits, in units of 2^-6.
struct S2f6 {
  static constexpr uint32_t bits = 8;
};

/// The codes of a format's limits, as nearest_code takes them. Without NaN and infinities, the largest number
/// stands for them.
template <class F>
struct Codes {
  static constexpr int mantissa = F::mantissa, bias = F::bias;
  static constexpr uint32_t sign = 1u << (F::bits - 1), nan = sign - 1,
                            most = F::specials == SmallSpecials::None  ? nan
                                   : F::specials == SmallSpecials::Nan ? nan - 1
                                                                       : nan - (1u << mantissa),
                            infinite = F::specials == SmallSpecials::None ? most : most + 1;
};

template <class F>
constexpr float decoded_small_float(uint32_t code) {
  const bool negative = code >> (F::bits - 1) & 1;
  const auto field = static_cast<int>(code >> F::mantissa & ((1u << F::exponent) - 1));
  const uint32_t fraction = code & ((1u << F::mantissa) - 1), most = (1u << F::mantissa) - 1;
  const bool top = field == (1 << F::exponent) - 1;
  float v = 0;
  if (top && F::specials == SmallSpecials::Ieee)
    v = fraction ? std::numeric_limits<float>::quiet_NaN() : std::numeric_limits<float>::infinity();
  else if (top && F::specials == SmallSpecials::Nan && fraction == most)
    v = std::numeric_limits<float>::quiet_NaN();
  else {
    const int e = (field ? field : 1) - F::bias - F::mantissa;
    const auto significand = static_cast<float>(fraction + (field ? most + 1 : 0));
    v = significand * std::bit_cast<float>(static_cast<uint32_t>(e + 127) << 23);
  }
  return negative ? -v : v;
}

template <>
constexpr float decoded_small_float<S2f6>(uint32_t code) {
  return static_cast<float>(static_cast<int8_t>(code)) / 64;
}

template <class F>
consteval auto small_float_table() {
  std::array<float, 1u << F::bits> table{};
  for (uint32_t code = 0; code < table.size(); ++code) table[code] = decoded_small_float<F>(code);
  return table;
}

/// The number of a code; bits above the format's do not count.
template <class F>
inline float small_float(uint32_t code) {
  static constexpr auto table = small_float_table<F>();
  return table[code & (table.size() - 1)];
}

}  // namespace simt::functional
