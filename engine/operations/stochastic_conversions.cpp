#include "operations/stochastic_conversions.hpp"

#include "operations/floats.hpp"
#include "operations/small_floats.hpp"

namespace simt::functional {
namespace {

/// The code of v; `random` has `count` bits.
template <class Format, int count>
uint32_t stochastic_code(float v, uint32_t random, bool relu, bool finite) {
  const auto bits = std::bit_cast<uint32_t>(v);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return Format::nan;
  if (relu && bits >> 31) return 0;
  const uint32_t sign = bits >> 31 ? Format::sign : 0;
  const bool normal = magnitude >= 1u << 23;
  const int exponent = (normal ? static_cast<int>(magnitude >> 23) : 1) - 127;
  const uint64_t fraction = (magnitude & 0x7fffffu) | (normal ? 1u << 23 : 0);
  constexpr int least_exponent = 1 - Format::bias;
  // Where more bits are lost, no carry reaches the last place.
  const int shift = std::min(24 + count, 23 - Format::mantissa + std::max(0, least_exponent - exponent));
  const auto kept = static_cast<uint32_t>((fraction + (uint64_t{random} << (shift - count))) >> shift);
  // A carry out of the mantissa increments the exponent, as intended.
  const uint32_t code =
      kept + (static_cast<uint32_t>(std::max(0, exponent - least_exponent)) << Format::mantissa);
  return sign | (code <= Format::most ? code : finite ? Format::most : Format::infinite);
}

template <class Format, int count>
void run_halves(Context& c, const Op& op) {
  const bool relu = op.immediate & 1, finite = op.immediate & 2;
  constexpr uint32_t mask = (1u << count) - 1;
  map_lanes<uint32_t, float, float, uint32_t>(
      c, op.destination,
      [=](float upper, float lower, uint32_t random) {
        return stochastic_code<Format, count>(upper, random >> 16 & mask, relu, finite) << 16 |
               stochastic_code<Format, count>(lower, random & mask, relu, finite);
      },
      op.a, op.b, op.c);
}

constexpr uint32_t reversed16(uint32_t bits) {
  uint32_t r = 0;
  for (uint32_t k = 0; k < 16; ++k) r |= (bits >> k & 1) << (15 - k);
  return r;
}

/// Both numbers of a small pair use the same 16 bits, the upper one in reverse order.
template <class F>
void run_small(Context& c, const Op& op) {
  const bool relu = op.immediate & 1;
  constexpr bool bytes = F::bits > 4;
  const auto pair = [relu](float upper, float lower, uint32_t word) {
    const uint32_t random = bytes ? word >> 16 : (word >> 16 & 0xff00) | (word >> 8 & 0xff);
    const uint32_t codes = stochastic_code<Codes<F>, 16>(upper, reversed16(random), relu, true)
                               << (bytes ? 8 : 4) |
                           stochastic_code<Codes<F>, 16>(lower, random, relu, true);
    return word << (bytes ? 16 : 8) | codes;
  };
  map_lanes<uint32_t, float, float, uint32_t>(c, op.destination, pair, op.a, op.b, op.c);
}

}  // namespace

Handler stochastic_conversion(std::string_view to) {
  if (to == "f16x2") return run_halves<Half, 13>;
  if (to == "bf16x2") return run_halves<Bfloat, 16>;
  if (to == "e4m3x2") return run_small<E4m3>;
  if (to == "e5m2x2") return run_small<E5m2>;
  if (to == "e2m3x2") return run_small<E2m3>;
  if (to == "e3m2x2") return run_small<E3m2>;
  return to == "e2m1x2" ? run_small<E2m1> : nullptr;
}

}  // namespace simt::functional
