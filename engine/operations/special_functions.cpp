/// The polynomials are minimax (Remez' algorithm, 40 digits); beside each are its range, and its error before
/// the coefficients are rounded to f32.
#include "operations/special_functions.hpp"

#include "operations/float_operations.hpp"

namespace simt::functional {
namespace {

using float_operations::Reciprocal;
using float_operations::SquareRoot;

template <class... C>
inline float polynomial(float x, float first, C... rest) {
  if constexpr (sizeof...(rest) == 0)
    return first;
  else
    return std::fma(x, polynomial(x, rest...), first);
}

/// 2^n for integers n in [-126, 127].
inline float power_of_two(int32_t n) {
  return std::bit_cast<float>(static_cast<uint32_t>(n + 127) << 23);
}

struct Exp2 {
  float operator()(float x) const {
    // Beyond these bounds the result is 0 or infinite. NaN is replaced by a bound and restored at the end.
    const float a = x < 129.0f ? (x > -152.0f ? x : -152.0f) : 129.0f;
    const float whole = std::nearbyint(a), f = a - whole;
    const auto n = static_cast<int32_t>(whole);
    // (2^f - 1) / f on [-1/2, 1/2]; relative error of 2^f: 2^-28.0
    const float p = polynomial(f, 0x1.62e430p-1f, 0x1.ebfbdep-3f, 0x1.c6af74p-5f, 0x1.3b2d58p-7f,
                               0x1.5f053ap-10f, 0x1.41a702p-13f);
    const float m = std::fma(f, p, 1.0f);
    // In two steps: 2^n alone may be out of range. Only the second step can round.
    const int32_t half = n >> 1;
    const float r = m * power_of_two(half) * power_of_two(n - half);
    return x == x ? r : x;
  }
};

struct Log2 {
  float operator()(float x) const {
    const bool tiny = x < 0x1p-126f;
    const float scaled = tiny ? x * 0x1p24f : x;
    const auto bits = std::bit_cast<uint32_t>(scaled);
    // x = 2^e (1 + u), 1 + u in [sqrt(1/2), sqrt(2))
    const int32_t e = static_cast<int32_t>(bits - 0x3f3504f3u) >> 23;
    const float u = std::bit_cast<float>(bits - (static_cast<uint32_t>(e) << 23)) - 1.0f;
    // log2(1 + u) / u on [-0.293, 0.415]; relative error 2^-27.9
    const float p =
        polynomial(u, 0x1.715476p+0f, -0x1.715470p-1f, 0x1.ec7096p-2f, -0x1.715a78p-2f, 0x1.277e30p-2f,
                   -0x1.eabc3cp-3f, 0x1.a306b2p-3f, -0x1.874fa6p-3f, 0x1.7d43d2p-3f, -0x1.c23912p-4f);
    const float exponent = static_cast<float>(e) - (tiny ? 24.0f : 0.0f);
    float r = std::fma(u, p, exponent);
    r = x == std::numeric_limits<float>::infinity() ? x : r;
    r = x == 0 ? -std::numeric_limits<float>::infinity() : r;
    return x >= 0 ? r : std::bit_cast<float>(nan_f32);
  }
};

/// Sine (quarter 0) or cosine (quarter 1): sin(x + quarter pi/2).
template <uint32_t quarter>
struct Sine {
  /// Up to this value, the product of the number of quarters and the first part of pi/2 has few enough bits
  /// that the first subtraction is exact.
  static constexpr float largest = 0x1p16f;

  float operator()(float x) const {
    const float n = std::nearbyint(x * 0x1.45f306p-1f);
    // pi/2 in three f32 parts (Cody and Waite).
    float r = std::fma(n, -0x1.921fb6p+0f, x);
    r = std::fma(n, 0x1.777a5cp-25f, r);
    r = std::fma(n, 0x1.ee59dap-50f, r);
    const float z = r * r;
    // (sin(r) - r) / r^3 and (cos(r) - 1 + r^2/2) / r^4 on [0, pi/4]; relative to sin and cos: 2^-37 and
    // 2^-33
    const float s =
        std::fma(r * z, polynomial(z, -0x1.555556p-3f, 0x1.111108p-7f, -0x1.a00f96p-13f, 0x1.6cd668p-19f), r);
    const float k = std::fma(z * z, polynomial(z, 0x1.55554ap-5f, -0x1.6c0c84p-10f, 0x1.99ffd6p-16f),
                             std::fma(z, -0.5f, 1.0f));
    const bool small = std::fabs(x) <= largest;
    const uint32_t which = static_cast<uint32_t>(static_cast<int32_t>(small ? n : 0.0f)) + quarter;
    const float v = which & 1 ? k : s;
    const float r0 = std::bit_cast<float>(std::bit_cast<uint32_t>(v) ^ (which & 2) << 30);
    return quarter == 0 && x == 0 ? x : r0;
  }
  static float exactly(float x) {
    const double v = x;
    return static_cast<float>(quarter ? std::cos(v) : std::sin(v));
  }
};

struct Tanh {
  float operator()(float x) const {
    const float a = std::fabs(x), z = x * x;
    // (tanh(x) - x) / x^3 on [0, 0.625]; relative error of tanh 2^-27.9
    const float near = std::fma(
        a * z,
        polynomial(z, -0x1.555534p-2f, 0x1.110768p-3f, -0x1.b84448p-5f, 0x1.5256d8p-6f, -0x1.76ac1ap-8f), a);
    // 1 - 2 / (e^2x + 1), which is 1 from x = 10 on
    const float far = 1.0f - 2.0f / (Exp2{}((a < 10.0f ? a : 10.0f) * 0x1.715476p+1f) + 1.0f);
    const float r = a < 0.625f ? near : far;
    return x == x ? std::copysign(r, x) : x;
  }
};

/// A function of the argument times 2 pi.
template <class F>
struct OfTurns {
  float operator()(float turns) const {
    // Whole turns are taken away exactly.
    const float part = turns == 0 ? turns : turns - std::nearbyint(turns);  // a zero keeps its sign
    return F{}(part * 0x1.921fb6p+2f);
  }
};

struct InverseRoot {
  float operator()(float a) const { return 1.0f / std::sqrt(a); }
  double operator()(double a) const { return 1.0 / std::sqrt(a); }
};

template <class F, bool ftz>
void run_f32(Context& c, const Op& op) {
  map_lanes<float, float>(
      c, op.destination, [](float a) { return finished<ftz, Clamp::None>(F{}(operand<ftz>(a))); }, op.a);
}

/// Sines and cosines of large angles are computed by the C library, lane by lane.
template <class F, bool ftz>
void run_sine(Context& c, const Op& op) {
  const float* a = c.lanes<const float>(op.a);
  bool small = true;
  for (uint32_t i = 0; i < warp_lanes; ++i) small &= !(std::fabs(a[i]) > F::largest);
  if (small) return run_f32<F, ftz>(c, op);
  map_lanes<float, float>(
      c, op.destination,
      [](float v) {
        const float x = operand<ftz>(v);
        return finished<ftz, Clamp::None>(std::fabs(x) <= F::largest ? F{}(x) : F::exactly(x));
      },
      op.a);
}

template <class F, class H, bool packed, bool ftz>
void run_half(Context& c, const Op& op) {
  map_halves<H, packed, ftz>(c, op.destination, F{}, op.a);
}

/// Maps the upper word of an f64 to an upper word: 20 bits of mantissa, rounded to nearest.
template <class F>
inline uint64_t coarse(uint64_t bits) {
  constexpr uint64_t exponent = 0x7ff0000000000000ull, sign = 0x8000000000000000ull;
  const uint64_t upper = bits & 0xffffffff00000000ull;
  const uint64_t in = (upper & exponent) == 0 ? upper & sign : upper;
  const auto out = std::bit_cast<uint64_t>(F{}(std::bit_cast<double>(in)));
  const uint64_t rounded = (out + 0x7fffffffull + (out >> 32 & 1)) & 0xffffffff00000000ull;
  const uint64_t result = (rounded & exponent) == 0 ? rounded & sign : rounded;
  return (out & ~sign) > exponent ? coarse_nan_f64 : result;
}

template <class F>
void run_coarse(Context& c, const Op& op) {
  map_lanes<uint64_t, uint64_t>(c, op.destination, coarse<F>, op.a);
}

template <class F>
void run_upper_word(Context& c, const Op& op) {
  map_lanes<uint32_t, uint32_t>(
      c, op.destination,
      [](uint32_t upper) { return static_cast<uint32_t>(coarse<F>(uint64_t{upper} << 32) >> 32); }, op.a);
}

template <class F>
Handler f32_handler(bool ftz) {
  return ftz ? run_f32<F, true> : run_f32<F, false>;
}
template <uint32_t quarter>
Handler sine_handler(bool ftz) {
  return ftz ? run_sine<Sine<quarter>, true> : run_sine<Sine<quarter>, false>;
}
template <class F, class H>
Handler half_handler(bool packed, bool ftz) {
  if (packed) return ftz ? run_half<F, H, true, true> : run_half<F, H, true, false>;
  return ftz ? run_half<F, H, false, true> : run_half<F, H, false, false>;
}
template <class F>
Handler half_handler(bool bfloat, bool packed, bool ftz) {
  return bfloat ? half_handler<F, Bfloat>(packed, ftz) : half_handler<F, Half>(packed, ftz);
}

}  // namespace

Handler special_function_handler(SpecialFunction function, bool ftz) {
  switch (function) {
    case SpecialFunction::Reciprocal:
      return f32_handler<Reciprocal>(ftz);
    case SpecialFunction::InverseRoot:
      return f32_handler<InverseRoot>(ftz);
    case SpecialFunction::Root:
      return f32_handler<SquareRoot>(ftz);
    case SpecialFunction::Exp2:
      return f32_handler<Exp2>(ftz);
    case SpecialFunction::Log2:
      return f32_handler<Log2>(ftz);
    case SpecialFunction::SineOfTurns:
      return f32_handler<OfTurns<Sine<0>>>(ftz);
    case SpecialFunction::CosineOfTurns:
      return f32_handler<OfTurns<Sine<1>>>(ftz);
    case SpecialFunction::Tanh:
      return f32_handler<Tanh>(ftz);
    case SpecialFunction::Sine:
      return sine_handler<0>(ftz);
    case SpecialFunction::Cosine:
      break;
  }
  return sine_handler<1>(ftz);
}

Handler half_function_handler(SpecialFunction function, bool bfloat, bool packed, bool ftz) {
  return function == SpecialFunction::Tanh ? half_handler<Tanh>(bfloat, packed, ftz)
                                           : half_handler<Exp2>(bfloat, packed, ftz);
}

void run_inverse_root_f64(Context& c, const Op& op) {
  map_lanes<double, double>(
      c, op.destination, [](double a) { return finished<Clamp::None>(InverseRoot{}(a), a); }, op.a);
}

Handler coarse_function_handler(SpecialFunction function) {
  return function == SpecialFunction::Reciprocal ? run_coarse<Reciprocal> : run_coarse<InverseRoot>;
}

Handler upper_word_handler(SpecialFunction function) {
  return function == SpecialFunction::Reciprocal ? run_upper_word<Reciprocal> : run_upper_word<InverseRoot>;
}

}  // namespace simt::functional
