#pragma once
#include "operations/floats.hpp"

/// Operations on floating-point numbers, as function objects, before results are flushed and clamped.
namespace simt::functional::float_operations {

struct Add {
  template <class T>
  T operator()(T a, T b) const {
    return a + b;
  }
};
struct Sub {
  template <class T>
  T operator()(T a, T b) const {
    return a - b;
  }
};
/// `scaled` is the result times 2^64, used to decide on flushing to zero (see flushed_result). If the scaled
/// operand overflows, the result is exact or not tiny.
struct Mul {
  template <class T>
  T operator()(T a, T b) const {
    return a * b;
  }
  static float scaled(float a, float b) { return a * 0x1p64f * b; }
};
struct Fma {
  template <class T>
  T operator()(T a, T b, T c) const {
    return std::fma(a, b, c);
  }
  static float scaled(float a, float b, float c) { return std::fma(a * 0x1p64f, b, c * 0x1p64f); }
};
struct Div {
  template <class T>
  T operator()(T a, T b) const {
    return a / b;
  }
  static float scaled(float a, float b) { return a * 0x1p64f / b; }
};
/// div.approx: a times the reciprocal of b, which is 0 for b from 2^126 on.
struct DivApprox {
  float operator()(float a, float b) const {
    return std::fabs(b) > 0x1p126f ? a * std::copysign(0.0f, b) : a / b;
  }
};
struct Reciprocal {
  template <class T>
  T operator()(T a) const {
    return T{1} / a;
  }
  static float scaled(float a) { return 0x1p64f / a; }
};
struct SquareRoot {
  template <class T>
  T operator()(T a) const {
    return std::sqrt(a);
  }
};
struct Abs {
  template <class T>
  T operator()(T a) const {
    return std::fabs(a);
  }
};
struct Neg {
  template <class T>
  T operator()(T a) const {
    return -a;
  }
};

/// Minimum or maximum; -0 is less than +0. With one NaN operand, returns the number, or with `nan` a NaN.
/// With xorsign, magnitudes are compared, and the sign of the result is the product of the operands' signs.
template <bool greater, bool nan, bool xorsign>
struct Extreme {
  template <class T>
  T operator()(T a0, T b0) const {
    const T a = xorsign ? std::fabs(a0) : a0, b = xorsign ? std::fabs(b0) : b0;
    const auto bits_a = std::bit_cast<BitsOf<T>>(a), bits_b = std::bit_cast<BitsOf<T>>(b);
    // Equal numbers have the same bits, except for the signs of zeros.
    const T same = std::bit_cast<T>(greater ? bits_a & bits_b : bits_a | bits_b);
    T r = (greater ? a > b : a < b) ? a : b;
    r = a == b ? same : r;
    if constexpr (nan) {
      r = a == a ? r : a;
      r = b == b ? r : b;
    } else {
      r = b == b ? r : a;
    }
    if constexpr (xorsign) {
      constexpr auto sign = static_cast<BitsOf<T>>(BitsOf<T>{1} << (8 * sizeof(T) - 1));
      const auto signs = (std::bit_cast<BitsOf<T>>(a0) ^ std::bit_cast<BitsOf<T>>(b0)) & sign;
      r = std::bit_cast<T>(std::bit_cast<BitsOf<T>>(r) | signs);
    }
    return r;
  }
};

/// Minimum or maximum of three, or of their magnitudes.
template <bool greater, bool nan, bool magnitudes>
struct ExtremeOfThree {
  float operator()(float a, float b, float c) const {
    const Extreme<greater, nan, false> of;
    return magnitudes ? of(of(std::fabs(a), std::fabs(b)), std::fabs(c)) : of(of(a, b), c);
  }
};

/// An f32 result of F as an instruction writes it.
template <class F, bool ftz, Clamp clamp, class... T>
inline float rounded(T... operands) {
  const float r = F{}(operands...);
  if constexpr (ftz && requires { F::scaled(operands...); })
    return finished<false, clamp>(flushed_result(r, F::scaled(operands...)));
  else
    return finished<ftz, clamp>(r);
}

}  // namespace simt::functional::float_operations
