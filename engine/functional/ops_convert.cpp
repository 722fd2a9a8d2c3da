/// cvt: between all types.
#include <utility>

#include "functional/arithmetic.hpp"
#include "functional/floats.hpp"
#include "functional/handlers.hpp"
#include "functional/instructions.hpp"

namespace simt::functional {
namespace {

using ptx::Type;

enum class Round : uint8_t { Nearest, Zero, Down, Up, Away };

/// The parameters of a cvt, packed into Op::immediate.
struct Request {
  Round round = Round::Nearest;
  bool ftz = false;
  bool sat = false;
  bool satfinite = false;
  bool relu = false;
  uint8_t register_bytes = 4;  ///< for integer destinations
  uint8_t unused[2] = {};
};
Request request_of(const Op& op) {
  return std::bit_cast<Request>(op.immediate);
}
int64_t packed(const Request& r) {
  return std::bit_cast<int64_t>(r);
}

constexpr int fenv_direction(Round r) {
  switch (r) {
    case Round::Zero:
      return FE_TOWARDZERO;
    case Round::Down:
      return FE_DOWNWARD;
    case Round::Up:
      return FE_UPWARD;
    default:
      return FE_TONEAREST;
  }
}

// Integers.

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
  const uint8_t bytes = request_of(op).register_bytes;
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

template <class D, bool sat>
Handler integer_handler(Type source) {
  switch (source) {
    case Type::U8:
      return run_integer<D, uint8_t, sat>;
    case Type::S8:
      return run_integer<D, int8_t, sat>;
    case Type::U16:
      return run_integer<D, uint16_t, sat>;
    case Type::S16:
      return run_integer<D, int16_t, sat>;
    case Type::U32:
      return run_integer<D, uint32_t, sat>;
    case Type::S32:
      return run_integer<D, int32_t, sat>;
    case Type::U64:
      return run_integer<D, uint64_t, sat>;
    case Type::S64:
      return run_integer<D, int64_t, sat>;
    default:
      return nullptr;
  }
}

/// Calls f with a value of the C++ type for an integer type; returns its result, or nullptr for other types.
template <class F>
Handler with_integer(Type type, F f) {
  switch (type) {
    case Type::U8:
      return f(uint8_t{});
    case Type::S8:
      return f(int8_t{});
    case Type::U16:
      return f(uint16_t{});
    case Type::S16:
      return f(int16_t{});
    case Type::U32:
      return f(uint32_t{});
    case Type::S32:
      return f(int32_t{});
    case Type::U64:
      return f(uint64_t{});
    case Type::S64:
      return f(int64_t{});
    default:
      return nullptr;
  }
}

bool is_integer(Type type) {
  return with_integer(type, [](auto) -> Handler { return [](Context&, const Op&) {}; }) != nullptr;
}

// Integers to floating point.

/// v in the host's current rounding direction. Written out for uint64_t: compilers' own conversion gives -0
/// for 0 when rounding down.
template <class T, class S>
T to_float(S v) {
  if constexpr (std::is_same_v<S, uint64_t>) {
    const uint64_t halved = v >> 1 | (v & 1);  // the last bit is sticky
    return v >> 63 ? static_cast<T>(static_cast<int64_t>(halved)) * 2
                   : static_cast<T>(static_cast<int64_t>(v));
  } else {
    return static_cast<T>(v);
  }
}

template <class T, class S, Clamp clamp>
void run_from_integer(Context& c, const Op& op) {
  map_lanes<T, S>(c, op.destination, [](S v) { return clamped<clamp>(to_float<T>(v)); }, op.a);
}
template <class T, class S, Clamp clamp>
void run_from_integer_directed(Context& c, const Op& op) {
  const RoundingScope scope(fenv_direction(request_of(op).round));
  run_from_integer<T, S, clamp>(c, op);
}

// Rounding to small formats.

struct E4M3Format {  // without infinities
  static constexpr int mantissa = 3, bias = 7;
  static constexpr uint32_t most = 0x7e, infinite = 0x7f, nan = 0x7f, sign = 0x80;
};
struct E5M2Format {
  static constexpr int mantissa = 2, bias = 15;
  static constexpr uint32_t most = 0x7b, infinite = 0x7c, nan = 0x7f, sign = 0x80;
};

/// Code of v in a small format.
template <class Format>
uint32_t rounded(double v, const Request& request) {
  if (request.sat) v = clamped<Clamp::Sat>(v);
  if (request.relu) v = clamped<Clamp::Relu>(v);
  if (v != v) return Format::nan;
  const auto bits = std::bit_cast<uint64_t>(v);
  const bool negative = bits >> 63;
  const uint64_t magnitude = bits & ~(uint64_t{1} << 63);
  const uint32_t sign = negative ? Format::sign : 0;
  constexpr uint64_t implicit = uint64_t{1} << 52;
  constexpr int least_exponent = 1 - Format::bias;
  if (magnitude >= 0x7ffull << 52) return sign | (request.satfinite ? Format::most : Format::infinite);
  const int exponent = static_cast<int>(magnitude >> 52) - 1023;
  const uint64_t fraction = (magnitude & (implicit - 1)) | (magnitude >= implicit ? implicit : 0);
  // From 54 on, everything is less than half a unit in the last place.
  const int shift = std::min(54, 52 - Format::mantissa + std::max(0, least_exponent - exponent));
  const uint64_t rest = fraction & ((uint64_t{1} << shift) - 1), half = uint64_t{1} << (shift - 1);
  uint64_t kept = fraction >> shift;
  const bool outwards = request.round == (negative ? Round::Down : Round::Up);
  switch (request.round) {
    case Round::Nearest:
      kept += rest > half || (rest == half && (kept & 1));
      break;
    case Round::Away:
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
    const bool nearest = request.round == Round::Nearest || request.round == Round::Away;
    code = (nearest || outwards) && !request.satfinite ? Format::infinite : Format::most;
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
  const Request request = request_of(op);
  map_lanes<uint32_t, typename Source<S>::Bits>(
      c, op.destination,
      [&request](typename Source<S>::Bits lane) {
        return rounded<Format>(Source<S>::value(lane, request.ftz), request);
      },
      op.a);
}

/// Clamps f32 numbers before they are rounded to nearest in a half format.
template <class H>
void clamp_for(const Request& request, float* v) {
  if (request.sat)
    for (uint32_t i = 0; i < warp_lanes; ++i) v[i] = clamped<Clamp::Sat>(v[i]);
  if (request.relu)
    for (uint32_t i = 0; i < warp_lanes; ++i) v[i] = clamped<Clamp::Relu>(v[i]);
  if (request.satfinite) {
    const float most = H::widen_one(H::most);
    for (uint32_t i = 0; i < warp_lanes; ++i) v[i] = v[i] > most ? most : v[i] < -most ? -most : v[i];
  }
  if (request.ftz)
    for (uint32_t i = 0; i < warp_lanes; ++i) v[i] = flushed(v[i]);
}
template <class H>
void narrow_source(Context& c, Place source, const Request& request, uint16_t* to) {
  alignas(64) float v[warp_lanes];
  std::memcpy(v, c.lanes<const float>(source), sizeof v);
  clamp_for<H>(request, v);
  H::template narrow<warp_lanes>(v, to);
}

/// cvt.rn.f16.f32, cvt.rn.bf16.f32
template <class H>
void run_narrow(Context& c, const Op& op) {
  alignas(64) uint16_t half[warp_lanes];
  narrow_source<H>(c, op.a, request_of(op), half);
  alignas(64) uint32_t r[warp_lanes];
  for (uint32_t i = 0; i < warp_lanes; ++i) r[i] = half[i];
  write_lanes(c, c.lanes<uint32_t>(op.destination), r);
}

/// cvt.rn.f16x2.f32 d, upper, lower
template <class H>
void run_narrow_pair(Context& c, const Op& op) {
  alignas(64) uint16_t upper[warp_lanes], lower[warp_lanes];
  narrow_source<H>(c, op.a, request_of(op), upper);
  narrow_source<H>(c, op.b, request_of(op), lower);
  alignas(64) uint32_t r[warp_lanes];
  for (uint32_t i = 0; i < warp_lanes; ++i) r[i] = uint32_t{upper[i]} << 16 | lower[i];
  write_lanes(c, c.lanes<uint32_t>(op.destination), r);
}

/// The same in any rounding direction.
template <class Format>
void run_round_pair(Context& c, const Op& op) {
  const Request request = request_of(op);
  map_lanes<uint32_t, float, float>(
      c, op.destination,
      [&request](float upper, float lower) {
        return rounded<Format>(upper, request) << 16 | rounded<Format>(lower, request);
      },
      op.a, op.b);
}

template <class Format>
uint32_t f8_code(float v, bool relu) {
  return nearest_code<Format, false>(relu && v <= 0 ? 0.0f : v);
}
/// cvt.rn.satfinite.e4m3x2.f32 d, upper, lower
template <class Format>
void run_f8_of_f32(Context& c, const Op& op) {
  const bool relu = request_of(op).relu;
  map_lanes<uint32_t, float, float>(
      c, op.destination,
      [relu](float upper, float lower) {
        return f8_code<Format>(upper, relu) << 8 | f8_code<Format>(lower, relu);
      },
      op.a, op.b);
}
template <class Format>
void run_f8_of_f16(Context& c, const Op& op) {
  const bool relu = request_of(op).relu;
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
  const bool relu = request_of(op).relu;
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
  const Request request = request_of(op);
  const bool away = request.round == Round::Away;
  const uint32_t add = away ? 0x1000u : request.round == Round::Nearest ? 0xfffu : 0;
  const uint32_t even = request.round == Round::Nearest ? 1 : 0;
  const bool relu = request.relu;
  const uint32_t beyond = request.satfinite ? 0x2000u : 0;
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

// Floating point to integral numbers.

template <class T>
void round_lanes(Round how, T* v) {
  switch (how) {
    case Round::Zero:
      for (uint32_t i = 0; i < warp_lanes; ++i) v[i] = std::trunc(v[i]);
      break;
    case Round::Down:
      for (uint32_t i = 0; i < warp_lanes; ++i) v[i] = std::floor(v[i]);
      break;
    case Round::Up:
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
    if (request_of(op).ftz)
      for (uint32_t i = 0; i < warp_lanes; ++i) v[i] = flushed(v[i]);
}

template <class D, class S>
void run_to_integer(Context& c, const Op& op) {
  using T = Computed<S>;
  const Request request = request_of(op);
  alignas(64) T v[warp_lanes];
  read_lanes<S>(c, op, v);
  round_lanes(request.round, v);
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
    r[i] = extended(d, request.register_bytes);
  }
  write_lanes(c, c.lanes<Lane<D>>(op.destination), r);
}

/// cvt.rni.f32.f32 and the like
template <class S>
void run_integral(Context& c, const Op& op) {
  using T = Computed<S>;
  const Request request = request_of(op);
  alignas(64) T v[warp_lanes];
  read_lanes<S>(c, op, v);
  round_lanes(request.round, v);
  if (request.sat)
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

// Between floating-point types.

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
  const bool sat = request_of(op).sat;
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
  const RoundingScope scope(fenv_direction(request_of(op).round));
  run_f32_of_f64<ftz, clamp>(c, op);
}

/// Exact. An f16 NaN becomes the NaN of f32 results; a bf16 NaN keeps its bits, which are also those of an
/// f32.
template <class H, class T>
void run_widen(Context& c, const Op& op) {
  const Request request = request_of(op);
  alignas(64) float v[warp_lanes];
  widen_lanes<H, false>(c.lanes<const uint32_t>(op.a), v);
  if constexpr (std::is_same_v<H, Half>)
    for (float& x : v) x = canonical(x);
  if (request.ftz && sizeof(T) == 4)
    for (float& x : v) x = flushed(x);
  if (request.sat)
    for (float& x : v) x = clamped<Clamp::Sat>(x);
  alignas(64) Lane<T> r[warp_lanes];
  for (uint32_t i = 0; i < warp_lanes; ++i) r[i] = to_lane(static_cast<T>(v[i]));
  write_lanes(c, c.lanes<Lane<T>>(op.destination), r);
}

// Translation.

bool is_half(Type type) {
  return type == Type::F16 || type == Type::BF16;
}

/// Emits `h` with the instruction's source and destination. Integer registers may be wider than the type.
void emit(Translation& t, Handler h, Type d, Type s, Request request) {
  Place a;
  uint32_t bytes = 0;
  if (is_integer(s)) {
    a = t.source_of_any_size(t.operand(1), s, bytes);
    if (bytes < ptx::bytes(s)) t.unsupported("a register narrower than its type");
    if (bytes == 8 && ptx::bytes(s) < 8) {
      const Place narrow = t.scratch(4);
      Op& op = t.emit(run_integer<uint32_t, uint64_t, false>);
      op.destination = narrow;
      op.a = a;
      op.immediate = packed({});
      a = narrow;
    }
  } else {
    a = t.source(1, s);
  }
  if (!is_integer(d)) {
    const Place to = t.destination(0, d);
    Op& op = t.emit(h);
    op.destination = to;
    op.a = a;
    op.immediate = packed(request);
    return;
  }
  const Place to = t.destination_of_any_size(t.operand(0), d, bytes);
  if (bytes < ptx::bytes(d)) t.unsupported("a destination narrower than its type");
  const bool extends = bytes == 8 && ptx::bytes(d) < 8;
  request.register_bytes = static_cast<uint8_t>(extends ? 4 : bytes);
  const Place result = extends ? t.scratch(4) : to;
  Op& op = t.emit(h);
  op.destination = result;
  op.a = a;
  op.immediate = packed(request);
  if (!extends) return;
  Op& last = t.emit(ptx::is_signed(d) ? run_integer<int64_t, int32_t, false>
                                      : run_integer<uint64_t, uint32_t, false>);
  last.destination = to;
  last.a = result;
  last.immediate = packed(request);
}

void emit_pair(Translation& t, Handler h, Type d, const Request& request) {
  const Place to = t.destination(0, d), a = t.source(1, Type::F32), b = t.source(2, Type::F32);
  Op& op = t.emit(h);
  op.destination = to;
  op.a = a;
  op.b = b;
  op.immediate = packed(request);
}

Handler same_size_handler(Type type, const Request& r) {
  switch (type) {
    case Type::F32:
      return r.ftz ? (r.sat ? run_same<true, Clamp::Sat> : run_same<true, Clamp::None>)
                   : (r.sat ? run_same<false, Clamp::Sat> : run_same<false, Clamp::None>);
    case Type::F64:
      return r.sat ? run_same_f64<Clamp::Sat> : run_same_f64<Clamp::None>;
    case Type::F16:
      return run_same_half<Half>;
    case Type::BF16:
      return run_same_half<Bfloat>;
    default:
      return nullptr;
  }
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

template <class Format>
Handler to_half_handler(Type s) {
  switch (s) {
    case Type::F16:
      return run_to_half<Format, Half>;
    case Type::BF16:
      return run_to_half<Format, Bfloat>;
    case Type::F32:
      return run_to_half<Format, float>;
    case Type::F64:
      return run_to_half<Format, double>;
    default:
      return with_integer(s, [](auto v) -> Handler { return run_to_half<Format, decltype(v)>; });
  }
}

Handler float_handler(Type d, Type s, const Request& r) {
  if (is_half(d)) {
    if (s == Type::F32 && r.round == Round::Nearest)
      return d == Type::F16 ? run_narrow<Half> : run_narrow<Bfloat>;
    return d == Type::F16 ? to_half_handler<Half>(s) : to_half_handler<Bfloat>(s);
  }
  if (is_half(s)) {
    if (d == Type::F32) return s == Type::F16 ? run_widen<Half, float> : run_widen<Bfloat, float>;
    return s == Type::F16 ? run_widen<Half, double> : run_widen<Bfloat, double>;
  }
  if (d == Type::F64)
    return r.ftz ? (r.sat ? run_f64_of_f32<true, Clamp::Sat> : run_f64_of_f32<true, Clamp::None>)
                 : (r.sat ? run_f64_of_f32<false, Clamp::Sat> : run_f64_of_f32<false, Clamp::None>);
  if (r.round != Round::Nearest)
    return r.ftz ? (r.sat ? run_f32_of_f64_directed<true, Clamp::Sat>
                          : run_f32_of_f64_directed<true, Clamp::None>)
                 : (r.sat ? run_f32_of_f64_directed<false, Clamp::Sat>
                          : run_f32_of_f64_directed<false, Clamp::None>);
  return r.ftz ? (r.sat ? run_f32_of_f64<true, Clamp::Sat> : run_f32_of_f64<true, Clamp::None>)
               : (r.sat ? run_f32_of_f64<false, Clamp::Sat> : run_f32_of_f64<false, Clamp::None>);
}

template <class T>
Handler from_integer_handler(Type s, const Request& r) {
  return with_integer(s, [&](auto v) -> Handler {
    using S = decltype(v);
    if (r.round != Round::Nearest)
      return r.sat ? run_from_integer_directed<T, S, Clamp::Sat>
                   : run_from_integer_directed<T, S, Clamp::None>;
    return r.sat ? run_from_integer<T, S, Clamp::Sat> : run_from_integer<T, S, Clamp::None>;
  });
}

template <class S>
Handler to_integer_handler(Type d) {
  return with_integer(d, [](auto v) -> Handler { return run_to_integer<decltype(v), S>; });
}

bool is_plain_float(Type type) {
  return is_half(type) || type == Type::F32 || type == Type::F64;
}

/// d = {low bits of c, a, b}, with a and b clamped to `bits` bits.
struct Packing : Detail {
  uint32_t bits = 0;
  int32_t least = 0, most = 0;
};
void run_pack(Context& c, const Op& op) {
  const auto& d = op.details<Packing>();
  const uint32_t bits = d.bits, keep = (1u << bits) - 1;
  const int32_t least = d.least, most = d.most;
  const auto pair = [=](int32_t a, int32_t b) {
    return (static_cast<uint32_t>(std::clamp(a, least, most)) & keep) << bits |
           (static_cast<uint32_t>(std::clamp(b, least, most)) & keep);
  };
  if (bits == 16)
    map_lanes<uint32_t, int32_t, int32_t>(c, op.destination, pair, op.a, op.b);
  else
    map_lanes<uint32_t, int32_t, int32_t, uint32_t>(
        c, op.destination,
        [=](int32_t a, int32_t b, uint32_t rest) { return rest << (2 * bits) | pair(a, b); }, op.a, op.b,
        op.c);
}

/// cvt.pack.sat.s16.s32 d, a, b; cvt.pack.sat.u8.s32.b32 d, a, b, c
void translate_pack(Translation& t) {
  if (!t.take("sat")) t.unsupported(".sat is missing");
  const int which = t.take_one_of({"u16", "s16", "u8", "s8", "u4", "s4", "u2", "s2"});
  if (which < 0 || !t.take("s32")) t.unsupported("these types");
  const bool two = which < 2;
  if (!two && !t.take("b32")) t.unsupported(".b32 is missing");
  const Place d = t.destination(0, Type::B32), a = t.source(1, Type::S32), b = t.source(2, Type::S32);
  const Place rest = two ? place::none : t.source(3, Type::B32);
  Op& op = t.emit(run_pack);
  op.destination = d;
  op.a = a;
  op.b = b;
  op.c = rest;
  Packing& p = t.detail<Packing>();
  p.bits = 16u >> (which / 2);
  const bool is_signed = which % 2;
  p.least = is_signed ? -(1 << (p.bits - 1)) : 0;
  p.most = (1 << (is_signed ? p.bits - 1 : p.bits)) - 1;
}

/// The handler of a conversion between numbers; nullptr if there is none. integral: rounds to integers.
Handler handler_of(Type d, Type s, const Request& r, bool integral) {
  if (is_integer(d) && is_integer(s))
    return with_integer(d, [&](auto v) {
      return r.sat ? integer_handler<decltype(v), true>(s) : integer_handler<decltype(v), false>(s);
    });
  if (is_integer(d) && is_plain_float(s))
    return s == Type::F16    ? to_integer_handler<Half>(d)
           : s == Type::BF16 ? to_integer_handler<Bfloat>(d)
           : s == Type::F32  ? to_integer_handler<float>(d)
                             : to_integer_handler<double>(d);
  if (is_integer(s) && is_plain_float(d))
    return d == Type::F32   ? from_integer_handler<float>(s, r)
           : d == Type::F64 ? from_integer_handler<double>(s, r)
           : d == Type::F16 ? to_half_handler<Half>(s)
                            : to_half_handler<Bfloat>(s);
  if (!is_plain_float(d) || !is_plain_float(s)) return nullptr;
  if (d == s) return integral ? integral_handler(d) : same_size_handler(d, r);
  return float_handler(d, s, r);
}

/// The handler of a conversion to or from a pair of f8 numbers; nullptr if there is none.
Handler f8_handler(Type d, Type s) {
  if (d == Type::E4M3x2 || d == Type::E5M2x2) {
    const bool e4m3 = d == Type::E4M3x2;
    if (s == Type::F32) return e4m3 ? run_f8_of_f32<E4M3Format> : run_f8_of_f32<E5M2Format>;
    if (s == Type::F16x2) return e4m3 ? run_f8_of_f16<E4M3Format> : run_f8_of_f16<E5M2Format>;
  } else if (d == Type::F16x2) {
    if (s == Type::E4M3x2) return run_f16_of_f8<E4M3Format>;
    if (s == Type::E5M2x2) return run_f16_of_f8<E5M2Format>;
  }
  return nullptr;
}

}  // namespace

void translate_cvt(Translation& t) {
  if (t.take("pack")) return translate_pack(t);
  if (t.take("rs")) t.unsupported("stochastic rounding needs sm_100");
  Request r;
  const int integral = t.take_one_of({"rni", "rzi", "rmi", "rpi"});
  const int direction = t.take_one_of({"rn", "rz", "rm", "rp", "rna"});
  if (integral >= 0) r.round = static_cast<Round>(integral);
  if (direction >= 0) r.round = static_cast<Round>(direction);
  r.ftz = t.take("ftz");
  r.sat = t.take("sat");
  r.satfinite = t.take("satfinite");
  r.relu = t.take("relu");
  const Type d = t.take_type(), s = t.take_type();
  const bool nearest = r.round == Round::Nearest;

  if (s == Type::F32 && (d == Type::F16x2 || d == Type::BF16x2)) {
    if (direction < 0) t.unsupported("a rounding is missing");
    const bool f16 = d == Type::F16x2;
    return emit_pair(t,
                     nearest ? (f16 ? run_narrow_pair<Half> : run_narrow_pair<Bfloat>)
                             : (f16 ? run_round_pair<Half> : run_round_pair<Bfloat>),
                     d, r);
  }
  if (d == Type::E4M3x2 || d == Type::E5M2x2) {
    if (!r.satfinite || direction != 0) t.unsupported("conversions to f8 need .rn.satfinite");
    const Handler h = f8_handler(d, s);
    if (!h) t.unsupported("this type");
    return s == Type::F32 ? emit_pair(t, h, d, r) : emit(t, h, d, s, r);
  }
  if (s == Type::E4M3x2 || s == Type::E5M2x2) {
    const Handler h = f8_handler(d, s);
    if (!h || direction != 0) t.unsupported("f8 becomes f16x2, with .rn");
    return emit(t, h, d, s, r);
  }
  if (d == Type::TF32) {
    if (s != Type::F32 || direction < 0)
      t.unsupported("conversions to tf32 need a source of f32 and a rounding modifier");
    if (r.round == Round::Away && r.relu) t.unsupported(".relu with .rna");
    return emit(t, run_tf32, d, s, r);
  }
  if (r.round == Round::Away) t.unsupported(".rna is for tf32");
  if ((r.relu || r.satfinite) && !(is_half(d) && s == Type::F32))
    t.unsupported(".relu or .satfinite of these types");

  if (is_integer(d) && is_integer(s)) {
    if (integral >= 0 || direction >= 0) t.unsupported("integers are not rounded");
  } else if (is_integer(d) && is_plain_float(s)) {
    if (integral < 0) t.unsupported("a modifier for rounding to integers is missing");
  } else if (is_integer(s) && is_plain_float(d)) {
    if (direction < 0) t.unsupported("a rounding is missing");
  } else if (is_plain_float(d) && d == s) {
    if (direction >= 0) t.unsupported("this rounding, between the same types");
  } else if (is_plain_float(d) && is_plain_float(s)) {
    if (integral >= 0) t.unsupported("a rounding to integers, between different types");
    // ptxas also accepts conversions between f16 and bf16 without a rounding modifier.
    const bool widens = d == Type::F64 || (d == Type::F32 && s != Type::F64) || is_half(s);
    if (direction < 0 && !widens) t.unsupported("a rounding is missing");
  }
  const Handler h = handler_of(d, s, r, integral >= 0);
  if (!h) t.unsupported("these types");
  emit(t, h, d, s, r);
}

std::optional<ConversionHandler> conversion_handler(const Conversion& conversion) {
  Request r;
  r.round = static_cast<Round>(conversion.rounding);
  r.ftz = conversion.ftz;
  r.sat = conversion.saturates;
  r.relu = conversion.relu;
  r.satfinite = conversion.finite;
  Handler h = conversion.to == Type::TF32 ? run_tf32 : f8_handler(conversion.to, conversion.from);
  if (!h) h = handler_of(conversion.to, conversion.from, r, conversion.to_integral);
  if (!h) return std::nullopt;
  return ConversionHandler{h, packed(r)};
}

}  // namespace simt::functional
