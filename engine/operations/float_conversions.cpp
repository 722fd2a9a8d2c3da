/// Conversions between floating-point numbers that are not narrowed to half precision.
#include "operations/conversion_families.hpp"

namespace simt::functional {
namespace {

using ptx::Type;

/// f32 from f32: .ftz and .sat only.
template <bool ftz, Clamp clamp>
void run_same(Context& c, const Op& op) {
  map_lanes<float, float>(
      c, op.destination, [](float v) { return finished<ftz, clamp>(operand<ftz>(v)); }, op.a);
}
template <Clamp clamp>
void run_same_f64(Context& c, const Op& op) {
  map_lanes<double, double>(c, op.destination, [](double v) { return finished<clamp>(v, v); }, op.a);
}
template <class H>
void run_same_half(Context& c, const Op& op) {
  const bool sat = ConversionModes::of(op).saturates;
  map_halves<H, false, false>(
      c, op.destination, [sat](float v) { return sat ? clamped<Clamp::Sat>(v) : v; }, op.a);
}

template <bool ftz, Clamp clamp>
void run_f64_of_f32(Context& c, const Op& op) {
  map_lanes<double, float>(
      c, op.destination, [](float v) { return clamped<clamp>(static_cast<double>(operand<ftz>(v))); }, op.a);
}
/// A NaN keeps as much of its payload as fits.
template <bool ftz, Clamp clamp>
void run_f32_of_f64(Context& c, const Op& op) {
  map_lanes<float, double>(
      c, op.destination,
      [](double v) {
        const auto r = static_cast<float>(v);
        return clamped<clamp>(ftz ? flushed_result(r, static_cast<float>(v * 0x1p64)) : r);
      },
      op.a);
}
template <bool ftz, Clamp clamp>
void run_f32_of_f64_directed(Context& c, const Op& op) {
  const RoundingScope scope(fenv_direction(ConversionModes::of(op).rounding));
  run_f32_of_f64<ftz, clamp>(c, op);
}

/// Exact. An f16 NaN becomes the NaN of f32 results; a bf16 NaN keeps its bits, which are also those of an
/// f32.
template <class H, class T>
void run_widen(Context& c, const Op& op) {
  const ConversionModes modes = ConversionModes::of(op);
  alignas(64) float v[warp_lanes];
  widen_lanes<H, false>(c.lanes<const uint32_t>(op.a), v);
  if constexpr (std::is_same_v<H, Half>)
    for (float& x : v) x = canonical(x);
  if (modes.ftz && sizeof(T) == 4)
    for (float& x : v) x = flushed(x);
  if (modes.saturates)
    for (float& x : v) x = clamped<Clamp::Sat>(x);
  alignas(64) Lane<T> r[warp_lanes];
  for (uint32_t i = 0; i < warp_lanes; ++i) r[i] = to_lane(static_cast<T>(v[i]));
  write_lanes(c, c.lanes<Lane<T>>(op.destination), r);
}

Handler same_size_handler(Type type, const ConversionModes& modes) {
  switch (type) {
    case Type::F32:
      return modes.ftz ? (modes.saturates ? run_same<true, Clamp::Sat> : run_same<true, Clamp::None>)
                       : (modes.saturates ? run_same<false, Clamp::Sat> : run_same<false, Clamp::None>);
    case Type::F64:
      return modes.saturates ? run_same_f64<Clamp::Sat> : run_same_f64<Clamp::None>;
    case Type::F16:
      return run_same_half<Half>;
    case Type::BF16:
      return run_same_half<Bfloat>;
    default:
      return nullptr;
  }
}

Handler widening_handler(Type to, Type from) {
  if (to == Type::F32) return from == Type::F16 ? run_widen<Half, float> : run_widen<Bfloat, float>;
  return from == Type::F16 ? run_widen<Half, double> : run_widen<Bfloat, double>;
}

Handler f64_of_f32_handler(const ConversionModes& modes) {
  if (modes.ftz)
    return modes.saturates ? run_f64_of_f32<true, Clamp::Sat> : run_f64_of_f32<true, Clamp::None>;
  return modes.saturates ? run_f64_of_f32<false, Clamp::Sat> : run_f64_of_f32<false, Clamp::None>;
}

template <bool ftz>
Handler f32_of_f64_handler(const ConversionModes& modes) {
  if (modes.rounding != Rounding::Nearest)
    return modes.saturates ? run_f32_of_f64_directed<ftz, Clamp::Sat>
                           : run_f32_of_f64_directed<ftz, Clamp::None>;
  return modes.saturates ? run_f32_of_f64<ftz, Clamp::Sat> : run_f32_of_f64<ftz, Clamp::None>;
}

}  // namespace

Handler float_conversion(const Conversion& conversion) {
  const auto [to, from, modes] = conversion;
  if (to == from) return same_size_handler(to, modes);
  if ((from == Type::F16 || from == Type::BF16) && (to == Type::F32 || to == Type::F64))
    return widening_handler(to, from);
  if (to == Type::F64 && from == Type::F32) return f64_of_f32_handler(modes);
  if (to == Type::F32 && from == Type::F64)
    return modes.ftz ? f32_of_f64_handler<true>(modes) : f32_of_f64_handler<false>(modes);
  return nullptr;
}

}  // namespace simt::functional
