/// Conversions to and from integers.
#include <utility>

#include "operations/conversion_families.hpp"

namespace simt::functional {
namespace {

using ptx::Type;

/// The value of a T in a register that may be wider: sign- or zero-extended.
template <class T>
Lane<T> extended(T v, uint8_t register_bytes) {
  if constexpr (sizeof(T) == 8) {
    return static_cast<uint64_t>(v);
  } else {
    const uint32_t keep = register_bytes < 4 ? (1u << (8 * register_bytes)) - 1 : ~0u;
    return static_cast<uint32_t>(v) & keep;
  }
}

template <class D, class S, bool sat>
void run_integer(Context& c, const Op& op) {
  const uint8_t bytes = ConversionModes::of(op).register_bytes;
  map_lanes<Lane<D>, S>(
      c, op.destination,
      [bytes](S v) {
        constexpr D least = std::numeric_limits<D>::min(), most = std::numeric_limits<D>::max();
        D d = static_cast<D>(v);
        if constexpr (sat) d = std::cmp_less(v, least) ? least : std::cmp_greater(v, most) ? most : d;
        return extended(d, bytes);
      },
      op.a);
}

template <class T, class S, Clamp clamp>
void run_from_integer(Context& c, const Op& op) {
  map_lanes<T, S>(c, op.destination, [](S v) { return clamped<clamp>(to_float<T>(v)); }, op.a);
}
template <class T, class S, Clamp clamp>
void run_from_integer_directed(Context& c, const Op& op) {
  const RoundingScope scope(fenv_direction(ConversionModes::of(op).rounding));
  run_from_integer<T, S, clamp>(c, op);
}

template <class T>
void round_lanes(Rounding how, T* v) {
  switch (how) {
    case Rounding::Zero:
      for (uint32_t i = 0; i < warp_lanes; ++i) v[i] = std::trunc(v[i]);
      break;
    case Rounding::Down:
      for (uint32_t i = 0; i < warp_lanes; ++i) v[i] = std::floor(v[i]);
      break;
    case Rounding::Up:
      for (uint32_t i = 0; i < warp_lanes; ++i) v[i] = std::ceil(v[i]);
      break;
    default:
      for (uint32_t i = 0; i < warp_lanes; ++i) v[i] = std::nearbyint(v[i]);
  }
}

/// The type in which a source is computed.
template <class S>
using Computed = std::conditional_t<std::is_same_v<S, double>, double, float>;

template <class S>
void read_lanes(const Context& c, const Op& op, Computed<S>* v) {
  if constexpr (std::is_same_v<S, Half> || std::is_same_v<S, Bfloat>)
    widen_lanes<S, false>(c.lanes<const uint32_t>(op.a), v);
  else
    std::memcpy(v, c.lanes<const S>(op.a), warp_lanes * sizeof(S));
  if constexpr (std::is_same_v<S, float>)
    if (ConversionModes::of(op).ftz)
      for (uint32_t i = 0; i < warp_lanes; ++i) v[i] = flushed(v[i]);
}

template <class D, class S>
void run_to_integer(Context& c, const Op& op) {
  using T = Computed<S>;
  const ConversionModes modes = ConversionModes::of(op);
  alignas(64) T v[warp_lanes];
  read_lanes<S>(c, op, v);
  round_lanes(modes.rounding, v);
  constexpr D least = std::numeric_limits<D>::min(), most = std::numeric_limits<D>::max();
  constexpr int digits = std::numeric_limits<D>::digits, precision = std::numeric_limits<T>::digits;
  // The largest T within D's range.
  constexpr auto top = static_cast<T>(digits > precision ? static_cast<D>(most - (most >> precision)) : most);
  constexpr auto bottom = static_cast<T>(least);
  constexpr bool wide = sizeof(D) == 8 || sizeof(T) == 8;
  constexpr D nan = wide ? static_cast<D>(std::make_unsigned_t<D>{1} << (8 * sizeof(D) - 1)) : D{0};
  alignas(64) Lane<D> r[warp_lanes];
  for (uint32_t i = 0; i < warp_lanes; ++i) {
    const T within = v[i] >= bottom ? (v[i] > top ? top : v[i]) : bottom;
    D d = static_cast<D>(within);
    d = v[i] > top ? most : d;
    d = v[i] == v[i] ? d : nan;
    r[i] = extended(d, modes.register_bytes);
  }
  write_lanes(c, c.lanes<Lane<D>>(op.destination), r);
}

/// cvt.rni.f32.f32 and the like
template <class S>
void run_integral(Context& c, const Op& op) {
  using T = Computed<S>;
  const ConversionModes modes = ConversionModes::of(op);
  alignas(64) T v[warp_lanes];
  read_lanes<S>(c, op, v);
  round_lanes(modes.rounding, v);
  if (modes.saturates)
    for (T& x : v) x = clamped<Clamp::Sat>(x);
  if constexpr (sizeof(T) == 8) {
    alignas(64) uint64_t r[warp_lanes];
    for (uint32_t i = 0; i < warp_lanes; ++i) r[i] = to_lane(finished<Clamp::None>(v[i], v[i]));
    write_lanes(c, c.lanes<uint64_t>(op.destination), r);
  } else if constexpr (std::is_same_v<S, float>) {
    alignas(64) uint32_t r[warp_lanes];
    for (uint32_t i = 0; i < warp_lanes; ++i) r[i] = to_lane(canonical(v[i]));
    write_lanes(c, c.lanes<uint32_t>(op.destination), r);
  } else {
    alignas(64) uint16_t half[warp_lanes];
    S::template narrow<warp_lanes>(v, half);
    alignas(64) uint32_t r[warp_lanes];
    halves_to_lanes<false>(half, r);
    write_lanes(c, c.lanes<uint32_t>(op.destination), r);
  }
}

template <class D>
Handler between_integers_handler(const Conversion& conversion) {
  return with_integer(conversion.from, [&](auto v) -> Handler {
    using S = decltype(v);
    return conversion.modes.saturates ? run_integer<D, S, true> : run_integer<D, S, false>;
  });
}
template <class T>
Handler from_integer_handler(Type from, const ConversionModes& modes) {
  return with_integer(from, [&](auto v) -> Handler {
    using S = decltype(v);
    if (modes.rounding != Rounding::Nearest)
      return modes.saturates ? run_from_integer_directed<T, S, Clamp::Sat>
                             : run_from_integer_directed<T, S, Clamp::None>;
    return modes.saturates ? run_from_integer<T, S, Clamp::Sat> : run_from_integer<T, S, Clamp::None>;
  });
}

template <class S>
Handler to_integer_handler(Type to) {
  return with_integer(to, [](auto v) -> Handler { return run_to_integer<decltype(v), S>; });
}

Handler integral_handler(Type type) {
  switch (type) {
    case Type::F32:
      return run_integral<float>;
    case Type::F64:
      return run_integral<double>;
    case Type::F16:
      return run_integral<Half>;
    case Type::BF16:
      return run_integral<Bfloat>;
    default:
      return nullptr;
  }
}

}  // namespace

Handler integer_conversion(const Conversion& conversion) {
  const auto [to, from, modes] = conversion;
  if (to == from && modes.to_integral) return integral_handler(to);
  switch (to) {
    case Type::F32:
      return from_integer_handler<float>(from, modes);
    case Type::F64:
      return from_integer_handler<double>(from, modes);
    default:
      break;
  }
  switch (from) {
    case Type::F16:
      return to_integer_handler<Half>(to);
    case Type::BF16:
      return to_integer_handler<Bfloat>(to);
    case Type::F32:
      return to_integer_handler<float>(to);
    case Type::F64:
      return to_integer_handler<double>(to);
    default:
      return with_integer(to, [&](auto v) { return between_integers_handler<decltype(v)>(conversion); });
  }
}

}  // namespace simt::functional
