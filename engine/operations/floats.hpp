#pragma once
#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "machine/lanes.hpp"

/// Floating-point formats: post-processing of f32 and f64 results, and vectors of f16, bf16 and f8 computed
/// in f32.
namespace simt::functional {

constexpr uint32_t nan_f32 = 0x7fffffffu;                   ///< the NaN that f32 operations return
constexpr uint64_t invalid_f64 = 0xfff8000000000000ull;     ///< the NaN of f64 operations without a NaN
                                                            ///< operand
constexpr uint64_t coarse_nan_f64 = 0x7fffffff00000000ull;  ///< the NaN of rcp.approx.ftz.f64 and similar

inline float canonical(float v) {
  return v == v ? v : std::bit_cast<float>(nan_f32);
}

/// Replaces a subnormal number by a zero of the same sign.
inline float flushed(float v) {
  const auto bits = std::bit_cast<uint32_t>(v);
  return std::bit_cast<float>((bits & 0x7f800000u) == 0 ? bits & 0x80000000u : bits);
}

template <bool ftz, class T>
inline T operand(T v) {
  if constexpr (ftz)
    return flushed(v);
  else
    return v;
}

enum class Clamp : uint8_t {
  None,
  Sat,  ///< to [0, 1]; NaN becomes 0
  Relu  ///< negative numbers become 0
};

template <Clamp clamp, class T>
inline T clamped(T v) {
  if constexpr (clamp == Clamp::Sat) return v > 0 ? (v < 1 ? v : T{1}) : T{0};
  if constexpr (clamp == Clamp::Relu) return v <= 0 ? T{0} : v;
  return v;
}

/// Whether a result is flushed to zero is decided after rounding it with unbounded exponent range: a result
/// in (1 - 2^-24, 1) times 2^-126 is not tiny, although it may round up to 2^-126 as a subnormal number.
/// `scaled` is the same result times 2^64, and is rounded that way.
inline float flushed_result(float result, float scaled) {
  return std::fabs(scaled) < 0x1p-62f ? std::copysign(0.0f, result) : flushed(result);
}

/// The value an f32 instruction writes.
template <bool ftz, Clamp clamp>
inline float finished(float result) {
  return clamped<clamp>(canonical(operand<ftz>(result)));
}

inline double quiet(double v) {
  return std::bit_cast<double>(std::bit_cast<uint64_t>(v) | 0x0008000000000000ull);
}
inline double first_nan() {
  return std::bit_cast<double>(invalid_f64);
}
template <class... Rest>
inline double first_nan(double a, Rest... rest) {
  return a == a ? first_nan(rest...) : quiet(a);
}
/// The value an f64 instruction writes. Keeps the payload of the first NaN operand.
template <Clamp clamp, class... Operands>
inline double finished(double result, Operands... operands) {
  return clamped<clamp>(result == result ? result : first_nan(operands...));
}

/// Sets the host's rounding direction for its lifetime. Values must be stored to memory before it ends and
/// loaded after it begins: that keeps compilers from moving arithmetic across its bounds.
class RoundingScope {
 public:
#if defined(__SSE2__)
  // Only MXCSR: much faster than the C library, which also sets the x87's mode.
  explicit RoundingScope(int direction) : before_(_mm_getcsr()) {
    // MXCSR and the x87 control word encode directions alike, in two bits from bit 13 and bit 10
    // respectively.
    _mm_setcsr((before_ & ~0x6000u) | static_cast<uint32_t>(direction) << 3);
    barrier();
  }
  ~RoundingScope() {
    barrier();
    _mm_setcsr(before_);
  }
#else
  explicit RoundingScope(int direction) : before_(static_cast<uint32_t>(std::fegetround())) {
    std::fesetround(direction);
    barrier();
  }
  ~RoundingScope() {
    barrier();
    std::fesetround(static_cast<int>(before_));
  }
#endif
  RoundingScope(const RoundingScope&) = delete;
  RoundingScope& operator=(const RoundingScope&) = delete;

 private:
  static void barrier() { asm volatile("" ::: "memory"); }
  uint32_t before_;
};
/// Runs in a rounding direction other than to nearest even: FE_* in Op::immediate.
template <Handler run>
void run_directed(Context& c, const Op& op) {
  const RoundingScope scope(static_cast<int>(op.immediate));
  run(c, op);
}

/// FE_* for the rn, rz, rm or rp that the instruction has; `otherwise` if it has none.
inline int take_rounding(auto& translation, int otherwise) {
  static constexpr int directions[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
  const int index = translation.take_one_of({"rn", "rz", "rm", "rp"});
  return index < 0 ? otherwise : directions[index];
}

/// |s| rounded to odd, given s rounded to nearest and its exact rounding error: if the error is not 0, the
/// last bit becomes 1. A number rounded to odd can be rounded again, to a format with at least 2 bits less,
/// as if rounded once (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
inline float to_odd(float s, float error) {
  const auto bits = std::bit_cast<uint32_t>(s);
  const uint32_t step = (error > 0) == (s > 0) ? 1u : ~0u;
  const bool inexact = error > 0 || error < 0;
  return std::bit_cast<float>(inexact && (bits & 1) == 0 ? bits + step : bits);
}
inline double to_odd(double s, double error) {
  const auto bits = std::bit_cast<uint64_t>(s);
  const uint64_t step = (error > 0) == (s > 0) ? 1u : ~uint64_t{0};
  const bool inexact = error > 0 || error < 0;
  return std::bit_cast<double>(inexact && (bits & 1) == 0 ? bits + step : bits);
}
/// a + b rounded to odd. The sum must not overflow (Knuth's two-sum gives the error).
template <class T>
inline T sum_to_odd(T a, T b) {
  const T s = a + b, part = s - a;
  return to_odd(s, (a - (s - part)) + (b - part));
}
/// The double as float, rounded to odd.
inline float narrowed_to_odd(double v) {
  const auto f = static_cast<float>(v);
  const double back = f;
  const auto bits = std::bit_cast<uint32_t>(f);
  // A finite number that became infinite is also rounded towards zero: the largest finite number is odd.
  const uint32_t step = std::fabs(v) > std::fabs(back) ? 1u : ~0u;
  return std::bit_cast<float>(back != v && v == v && (bits & 1) == 0 ? bits + step : bits);
}

/// Toward zero, except that what f32 cannot hold is infinite. A zero is +0.
inline float cut_off_to_f32(double v) {
  auto bits = std::bit_cast<uint32_t>(static_cast<float>(v));
  if (std::fabs(v) >= 0x1p128) return std::bit_cast<float>((bits & 0x80000000u) | 0x7f800000u);
  if (std::fabs(double{std::bit_cast<float>(bits)}) > std::fabs(v)) --bits;
  return std::bit_cast<float>(bits << 1 == 0 ? 0 : bits);
}

/// Code of v in a narrower format whose values are all f32 values, rounded to nearest even. Beyond `most`,
/// saturates, or becomes infinite if `overflows`.
template <class Format, bool overflows>
inline uint32_t nearest_code(float v) {
  constexpr int shift = 23 - Format::mantissa;
  constexpr uint32_t rebias = static_cast<uint32_t>(127 - Format::bias) << 23;
  // In the binade of this number, the last place is that of the format's subnormal numbers.
  constexpr uint32_t magic = static_cast<uint32_t>(127 + 1 - Format::bias + shift) << 23;
  const auto bits = std::bit_cast<uint32_t>(v);
  const uint32_t magnitude = bits & 0x7fffffffu;
  const uint32_t normal = (magnitude - rebias + (1u << (shift - 1)) - 1 + (magnitude >> shift & 1)) >> shift;
  const float sum = std::bit_cast<float>(magnitude) + std::bit_cast<float>(magic);
  uint32_t code = magnitude < rebias + (1u << 23) ? std::bit_cast<uint32_t>(sum) - magic : normal;
  code = code > Format::most ? (overflows ? Format::infinite : Format::most) : code;
  return magnitude > 0x7f800000u ? Format::nan : code | ((bits >> 31) ? Format::sign : 0);
}

/// f16
struct Half {
  static constexpr int mantissa = 10, bias = 15;
  static constexpr uint32_t most = 0x7bff, infinite = 0x7c00, nan = 0x7fff, sign = 0x8000;
  static constexpr float least = 0x1p-14f;  ///< smallest normal number

  static float widen_one(uint16_t h) {
    const uint32_t negative = uint32_t{h & sign} << 16, magnitude = h & 0x7fffu;
    const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
    const uint32_t bits =
        magnitude >= infinite ? 0x7f800000u | magnitude << 13 : std::bit_cast<uint32_t>(scaled);
    return std::bit_cast<float>(bits | negative);
  }
  static uint16_t narrow_one(float v) { return static_cast<uint16_t>(nearest_code<Half, true>(v)); }
  template <uint32_t count>
  static void widen(const uint16_t* __restrict from, float* __restrict to) {
#if defined(__F16C__)
    for (uint32_t i = 0; i < count; i += 8)
      _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
#else
    for (uint32_t i = 0; i < count; ++i) to[i] = widen_one(from[i]);
#endif
  }
  template <uint32_t count>
  static void narrow(const float* __restrict from, uint16_t* __restrict to) {
#if defined(__F16C__)
    for (uint32_t i = 0; i < count; i += 8)
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                       _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
    for (uint32_t i = 0; i < count; ++i) to[i] = (to[i] & 0x7fffu) > infinite ? nan : to[i];
#else
    for (uint32_t i = 0; i < count; ++i) to[i] = narrow_one(from[i]);
#endif
  }
  /// a * b + c, to be narrowed: the product is exact in f32, and neither it nor the sum overflows there.
  static float fused(float a, float b, float c) { return sum_to_odd(a * b, c); }
};

/// bf16: the upper half of an f32.
struct Bfloat {
  static constexpr int mantissa = 7, bias = 127;
  static constexpr uint32_t most = 0x7f7f, infinite = 0x7f80, nan = 0x7fff, sign = 0x8000;
  static constexpr float least = 0x1p-126f;

  static float widen_one(uint16_t h) { return std::bit_cast<float>(uint32_t{h} << 16); }
  static uint16_t narrow_one(float v) {
    const auto bits = std::bit_cast<uint32_t>(v);
    const uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
    return static_cast<uint16_t>(v == v ? rounded : nan);
  }
  template <uint32_t count>
  static void widen(const uint16_t* __restrict from, float* __restrict to) {
    for (uint32_t i = 0; i < count; ++i) to[i] = widen_one(from[i]);
  }
  template <uint32_t count>
  static void narrow(const float* __restrict from, uint16_t* __restrict to) {
    for (uint32_t i = 0; i < count; ++i) to[i] = narrow_one(from[i]);
  }
  /// The product is exact in f64, and the sum cannot overflow.
  static float fused(float a, float b, float c) {
    return narrowed_to_odd(sum_to_odd(double{a} * double{b}, double{c}));
  }
  /// The same in f32, for products that are exact there: neither overflowing nor subnormal.
  static float fused_quickly(float a, float b, float c) { return sum_to_odd(a * b, c); }
  static bool quick(float a, float b) {
    const float m = std::fabs(a * b);
    return (m >= 0x1p-126f && m < std::numeric_limits<float>::infinity()) || a == 0 || b == 0;
  }
};

/// Each lane holds one number, or two packed ones.
template <bool packed>
constexpr uint32_t elements = packed ? 2 * warp_lanes : warp_lanes;

// map_halves in three steps; only the middle one is compiled for each operation.

template <class H, bool packed, bool ftz = false>
[[gnu::noinline]] void widen_lanes(const uint32_t* lanes, float* to) {
  constexpr uint32_t n = elements<packed>;
  alignas(64) uint16_t halves[n];
  if constexpr (packed)
    std::memcpy(halves, lanes, sizeof halves);
  else
    for (uint32_t i = 0; i < warp_lanes; ++i) halves[i] = static_cast<uint16_t>(lanes[i]);
  H::template widen<n>(halves, to);
  if constexpr (ftz)
    for (uint32_t i = 0; i < n; ++i) to[i] = std::fabs(to[i]) < H::least ? std::copysign(0.0f, to[i]) : to[i];
}

template <bool packed>
inline void halves_to_lanes(const uint16_t* halves, uint32_t* lanes) {
  if constexpr (packed)
    std::memcpy(lanes, halves, 4 * warp_lanes);
  else
    for (uint32_t i = 0; i < warp_lanes; ++i) lanes[i] = halves[i];
}

/// r = f(in...) for `count` numbers per operand, a multiple of 32.
template <size_t operands, class F>
[[gnu::noinline]] void compute_f32(F f, const float (*in)[2 * warp_lanes], uint32_t count, float* r) {
  const auto each = [&](auto one) {
    for (uint32_t at = 0; at < count; at += warp_lanes)
      for (uint32_t i = at; i < at + warp_lanes; ++i) r[i] = one(i);
  };
  const auto exact = [&](uint32_t i) {
    if constexpr (operands == 1)
      return f(in[0][i]);
    else if constexpr (operands == 2)
      return f(in[0][i], in[1][i]);
    else
      return f(in[0][i], in[1][i], in[2][i]);
  };
  if constexpr (requires { F::quick(0.0f, 0.0f); }) {
    uint32_t others = 0;
    for (uint32_t i = 0; i < count; ++i) others |= F::quick(in[0][i], in[1][i]) ? 0 : 1;
    if (!others) return each([&](uint32_t i) { return F::quickly(in[0][i], in[1][i], in[2][i]); });
  }
  each(exact);
}

template <class H, bool packed, bool ftz>
[[gnu::noinline]] void write_halves(Context& c, Place destination, float* r) {
  constexpr uint32_t n = elements<packed>;
  if constexpr (ftz) {
    // Results that would round up to the least normal number with unbounded exponents are not tiny.
    constexpr float tiny = H::least - H::least / static_cast<float>(4 << H::mantissa);
    for (uint32_t i = 0; i < n; ++i) r[i] = std::fabs(r[i]) < tiny ? std::copysign(0.0f, r[i]) : r[i];
  }
  alignas(64) uint16_t halves[n];
  H::template narrow<n>(r, halves);
  alignas(64) uint32_t result[warp_lanes];
  halves_to_lanes<packed>(halves, result);
  write_lanes(c, c.lanes<uint32_t>(destination), result);
}

/// destination = f(sources...) for packed or single numbers of format H; f computes in f32. With ftz,
/// subnormal numbers of H are flushed to zero, both as operands and as results.
template <class H, bool packed, bool ftz, class F, class... P>
inline void map_halves(Context& c, Place destination, F f, P... sources) {
  alignas(64) float in[sizeof...(P)][2 * warp_lanes], r[2 * warp_lanes];
  uint32_t k = 0;
  (widen_lanes<H, packed, ftz>(c.lanes<const uint32_t>(sources), in[k++]), ...);
  compute_f32<sizeof...(P)>(f, in, elements<packed>, r);
  write_halves<H, packed, ftz>(c, destination, r);
}

}  // namespace simt::functional
