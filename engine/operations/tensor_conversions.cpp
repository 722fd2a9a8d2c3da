/// Conversions to and from f8, and to tf32: the formats of tensor cores.
#include "operations/conversion_families.hpp"
#include "operations/small_floats.hpp"

namespace simt::functional {
namespace {

using ptx::Type;

template <class Format>
uint32_t f8_code(float v, bool relu) {
  return nearest_code<Format, false>(relu && v <= 0 ? 0.0f : v);
}
/// cvt.rn.satfinite.e4m3x2.f32 d, upper, lower
template <class Format>
void run_f8_of_f32(Context& c, const Op& op) {
  const bool relu = ConversionModes::of(op).relu;
  map_lanes<uint32_t, float, float>(
      c, op.destination,
      [relu](float upper, float lower) {
        return f8_code<Format>(upper, relu) << 8 | f8_code<Format>(lower, relu);
      },
      op.a, op.b);
}
template <class Format>
void run_f8_of_f16(Context& c, const Op& op) {
  const bool relu = ConversionModes::of(op).relu;
  alignas(64) float v[2 * warp_lanes];
  widen_lanes<Half, true>(c.lanes<const uint32_t>(op.a), v);
  alignas(64) uint32_t code[2 * warp_lanes], r[warp_lanes];
  for (uint32_t i = 0; i < 2 * warp_lanes; ++i) code[i] = f8_code<Format>(v[i], relu);
  for (uint32_t i = 0; i < warp_lanes; ++i) r[i] = code[2 * i + 1] << 8 | code[2 * i];
  write_lanes(c, c.lanes<uint32_t>(op.destination), r);
}

/// cvt.rn.f16x2.e4m3x2: exact.
template <class Format>
void run_f16_of_f8(Context& c, const Op& op) {
  const bool relu = ConversionModes::of(op).relu;
  const uint32_t* pairs = c.lanes<const uint32_t>(op.a);
  alignas(64) uint16_t code[2 * warp_lanes], half[2 * warp_lanes];
  for (uint32_t i = 0; i < warp_lanes; ++i) {
    code[2 * i] = pairs[i] & 0xff;
    code[2 * i + 1] = pairs[i] >> 8 & 0xff;
  }
  // Interpreted as f16, the exponent bits give a number that is too small by the difference of the biases.
  for (uint32_t i = 0; i < 2 * warp_lanes; ++i)
    half[i] = static_cast<uint16_t>((code[i] & 0x80) << 8 | (code[i] & 0x7f) << (10 - Format::mantissa));
  if constexpr (Format::bias != Half::bias) {
    alignas(64) float v[2 * warp_lanes];
    Half::widen<2 * warp_lanes>(half, v);
    for (float& x : v) x *= static_cast<float>(1 << (Half::bias - Format::bias));
    Half::narrow<2 * warp_lanes>(v, half);
  }
  for (uint32_t i = 0; i < 2 * warp_lanes; ++i) {
    const bool nan = (code[i] & 0x7fu) > (Format::infinite < Format::nan ? Format::infinite : Format::most);
    const uint16_t number = relu && (code[i] & 0x80) ? 0 : half[i];
    half[i] = nan ? static_cast<uint16_t>(Half::nan) : number;
  }
  alignas(64) uint32_t r[warp_lanes];
  halves_to_lanes<true>(half, r);
  write_lanes(c, c.lanes<uint32_t>(op.destination), r);
}

/// Rounding away from zero uses the integer arithmetic that ptxas generates, in which a NaN only loses its
/// low bits.
void run_tf32(Context& c, const Op& op) {
  const ConversionModes modes = ConversionModes::of(op);
  const bool away = modes.rounding == Rounding::Away;
  const uint32_t add = away ? 0x1000u : modes.rounding == Rounding::Nearest ? 0xfffu : 0;
  const uint32_t even = modes.rounding == Rounding::Nearest ? 1 : 0;
  const bool relu = modes.relu;
  const uint32_t beyond = modes.finite ? 0x2000u : 0;
  map_lanes<uint32_t, uint32_t>(
      c, op.destination,
      [=](uint32_t bits) {
        const uint32_t sign = bits & 0x80000000u, magnitude = bits & 0x7fffffffu;
        const bool finite = magnitude < 0x7f800000u;
        uint32_t r = (magnitude + (finite ? add + (magnitude >> 13 & even) : 0)) & 0xffffe000u;
        r -= r >= 0x7f800000u ? beyond : 0;
        r = relu && sign ? 0 : r | sign;
        return magnitude > 0x7f800000u && !away ? nan_f32 : r;
      },
      op.a);
}

template <class Format>
Handler f8_handler(const Conversion& conversion, Type format) {
  const auto [to, from, modes] = conversion;
  if (to == format)
    return from == Type::F32 ? run_f8_of_f32<Format> : from == Type::F16x2 ? run_f8_of_f16<Format> : nullptr;
  return from == format && to == Type::F16x2 ? run_f16_of_f8<Format> : nullptr;
}

}  // namespace

Handler f8_conversion(const Conversion& conversion) {
  if (Handler h = f8_handler<Codes<E4m3>>(conversion, Type::E4M3x2)) return h;
  return f8_handler<Codes<E5m2>>(conversion, Type::E5M2x2);
}

Handler tf32_conversion() {
  return run_tf32;
}

}  // namespace simt::functional
