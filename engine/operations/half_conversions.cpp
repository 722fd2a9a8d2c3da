/// Conversions to f16 and bf16, which round.
#include "operations/conversion_families.hpp"

namespace simt::functional {
namespace {

using ptx::Type;

/// Code of v in a small format.
template <class Format>
uint32_t rounded(double v, const ConversionModes& modes) {
  if (modes.saturates) v = clamped<Clamp::Sat>(v);
  if (modes.relu) v = clamped<Clamp::Relu>(v);
  if (v != v) return Format::nan;
  const auto bits = std::bit_cast<uint64_t>(v);
  const bool negative = bits >> 63;
  const uint64_t magnitude = bits & ~(uint64_t{1} << 63);
  const uint32_t sign = negative ? Format::sign : 0;
  constexpr uint64_t implicit = uint64_t{1} << 52;
  constexpr int least_exponent = 1 - Format::bias;
  if (magnitude >= 0x7ffull << 52) return sign | (modes.finite ? Format::most : Format::infinite);
  const int exponent = static_cast<int>(magnitude >> 52) - 1023;
  const uint64_t fraction = (magnitude & (implicit - 1)) | (magnitude >= implicit ? implicit : 0);
  // From 54 on, everything is less than half a unit in the last place.
  const int shift = std::min(54, 52 - Format::mantissa + std::max(0, least_exponent - exponent));
  const uint64_t rest = fraction & ((uint64_t{1} << shift) - 1), half = uint64_t{1} << (shift - 1);
  uint64_t kept = fraction >> shift;
  const bool outwards = modes.rounding == (negative ? Rounding::Down : Rounding::Up);
  switch (modes.rounding) {
    case Rounding::Nearest:
      kept += rest > half || (rest == half && (kept & 1));
      break;
    case Rounding::Away:
      kept += rest >= half;
      break;
    default:
      kept += outwards && rest;
  }
  uint64_t code = kept;
  // A carry out of the mantissa increments the exponent, as intended.
  if (exponent >= least_exponent)
    code += static_cast<uint64_t>(exponent - least_exponent) << Format::mantissa;
  if (code > Format::most) {
    const bool nearest = modes.rounding == Rounding::Nearest || modes.rounding == Rounding::Away;
    code = (nearest || outwards) && !modes.finite ? Format::infinite : Format::most;
  }
  return sign | static_cast<uint32_t>(code);
}

/// Exact in f64, or rounded to odd if it has more than 53 bits, so that it can be rounded again.
template <class S>
double exact_or_odd(S v) {
  if constexpr (sizeof(S) < 8) {
    return v;
  } else {
    const bool negative = v < 0;
    uint64_t m = negative ? -static_cast<uint64_t>(v) : static_cast<uint64_t>(v);
    if (m >> 53) m = (m & ~uint64_t{0x7ff}) | ((m & 0x7ff) ? 0x800 : 0);
    const double d = to_float<double>(m);
    return negative ? -d : d;
  }
}

// Lossless conversions of a source's lanes to f64.
template <class S>
struct Source {
  using Bits = Lane<S>;
  static double value(Bits lane, bool) { return exact_or_odd(from_lane<S>(lane)); }
};
template <>
struct Source<float> {
  using Bits = uint32_t;
  static double value(Bits lane, bool ftz) {
    const auto v = std::bit_cast<float>(lane);
    return ftz ? flushed(v) : v;
  }
};
template <>
struct Source<double> {
  using Bits = uint64_t;
  static double value(Bits lane, bool) { return std::bit_cast<double>(lane); }
};
template <>
struct Source<Half> {
  using Bits = uint32_t;
  static double value(Bits lane, bool) { return Half::widen_one(static_cast<uint16_t>(lane)); }
};
template <>
struct Source<Bfloat> {
  using Bits = uint32_t;
  static double value(Bits lane, bool) { return Bfloat::widen_one(static_cast<uint16_t>(lane)); }
};

/// Converts any source to f16 or bf16, in any rounding direction.
template <class Format, class S>
void run_to_half(Context& c, const Op& op) {
  const ConversionModes modes = ConversionModes::of(op);
  map_lanes<uint32_t, typename Source<S>::Bits>(
      c, op.destination,
      [&modes](typename Source<S>::Bits lane) {
        return rounded<Format>(Source<S>::value(lane, modes.ftz), modes);
      },
      op.a);
}

/// Clamps f32 numbers before they are rounded to nearest in a half format.
template <class H>
void clamp_for(const ConversionModes& modes, float* v) {
  if (modes.saturates)
    for (uint32_t i = 0; i < warp_lanes; ++i) v[i] = clamped<Clamp::Sat>(v[i]);
  if (modes.relu)
    for (uint32_t i = 0; i < warp_lanes; ++i) v[i] = clamped<Clamp::Relu>(v[i]);
  if (modes.finite) {
    const float most = H::widen_one(H::most);
    for (uint32_t i = 0; i < warp_lanes; ++i) v[i] = v[i] > most ? most : v[i] < -most ? -most : v[i];
  }
  if (modes.ftz)
    for (uint32_t i = 0; i < warp_lanes; ++i) v[i] = flushed(v[i]);
}
template <class H>
void narrow_source(Context& c, Place source, const ConversionModes& modes, uint16_t* to) {
  alignas(64) float v[warp_lanes];
  std::memcpy(v, c.lanes<const float>(source), sizeof v);
  clamp_for<H>(modes, v);
  H::template narrow<warp_lanes>(v, to);
}

/// cvt.rn.f16.f32, cvt.rn.bf16.f32
template <class H>
void run_narrow(Context& c, const Op& op) {
  alignas(64) uint16_t half[warp_lanes];
  narrow_source<H>(c, op.a, ConversionModes::of(op), half);
  alignas(64) uint32_t r[warp_lanes];
  for (uint32_t i = 0; i < warp_lanes; ++i) r[i] = half[i];
  write_lanes(c, c.lanes<uint32_t>(op.destination), r);
}

/// cvt.rn.f16x2.f32 d, upper, lower
template <class H>
void run_narrow_pair(Context& c, const Op& op) {
  alignas(64) uint16_t upper[warp_lanes], lower[warp_lanes];
  narrow_source<H>(c, op.a, ConversionModes::of(op), upper);
  narrow_source<H>(c, op.b, ConversionModes::of(op), lower);
  alignas(64) uint32_t r[warp_lanes];
  for (uint32_t i = 0; i < warp_lanes; ++i) r[i] = uint32_t{upper[i]} << 16 | lower[i];
  write_lanes(c, c.lanes<uint32_t>(op.destination), r);
}

/// The same in any rounding direction.
template <class Format>
void run_round_pair(Context& c, const Op& op) {
  const ConversionModes modes = ConversionModes::of(op);
  map_lanes<uint32_t, float, float>(
      c, op.destination,
      [&modes](float upper, float lower) {
        return rounded<Format>(upper, modes) << 16 | rounded<Format>(lower, modes);
      },
      op.a, op.b);
}

template <class Format>
Handler to_half_handler(Type from) {
  switch (from) {
    case Type::F16:
      return run_to_half<Format, Half>;
    case Type::BF16:
      return run_to_half<Format, Bfloat>;
    case Type::F32:
      return run_to_half<Format, float>;
    case Type::F64:
      return run_to_half<Format, double>;
    default:
      return with_integer(from, [](auto v) -> Handler { return run_to_half<Format, decltype(v)>; });
  }
}

template <class H>
Handler narrowing_handler(Type from, Rounding rounding) {
  return from == Type::F32 && rounding == Rounding::Nearest ? run_narrow<H> : to_half_handler<H>(from);
}
template <class H>
Handler pair_handler(Type from, Rounding rounding) {
  if (from != Type::F32) return nullptr;
  return rounding == Rounding::Nearest ? run_narrow_pair<H> : run_round_pair<H>;
}

}  // namespace

Handler half_conversion(const Conversion& conversion) {
  const auto [to, from, modes] = conversion;
  switch (to) {
    case Type::F16:
      return narrowing_handler<Half>(from, modes.rounding);
    case Type::BF16:
      return narrowing_handler<Bfloat>(from, modes.rounding);
    case Type::F16x2:
      return pair_handler<Half>(from, modes.rounding);
    case Type::BF16x2:
      return pair_handler<Bfloat>(from, modes.rounding);
    default:
      return nullptr;
  }
}

}  // namespace simt::functional
