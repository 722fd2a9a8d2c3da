#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "machine/lanes.hpp"

/// The semantics of integer instructions, for PTX and machine code: functions of numbers of type T, and
/// handlers that apply them to the lanes of a warp.
namespace simt::functional {

/// An unsigned type wide enough that its arithmetic wraps and is never promoted to int.
template <class T>
using Wrapping = std::conditional_t<sizeof(T) == 16, unsigned __int128,
                                    std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>>;

/// d = F(a), F(a, b) or F(a, b, c), all of type T.
template <class F, class T>
void run_unary(Context& c, const Op& op) {
  map_lanes<T, T>(c, op.destination, F{}, op.a);
}
template <class F, class T>
void run_binary(Context& c, const Op& op) {
  map_lanes<T, T, T>(c, op.destination, F{}, op.a, op.b);
}
template <class F, class T>
void run_ternary(Context& c, const Op& op) {
  map_lanes<T, T, T, T>(c, op.destination, F{}, op.a, op.b, op.c);
}

/// Applies F to each 16-bit half, of type H.
template <class F, class H>
struct Halves {
  uint32_t operator()(uint32_t a, uint32_t b) const {
    const auto low = static_cast<uint16_t>(F{}(static_cast<H>(a), static_cast<H>(b)));
    const auto high = static_cast<uint16_t>(F{}(static_cast<H>(a >> 16), static_cast<H>(b >> 16)));
    return low | uint32_t{high} << 16;
  }
};

/// Applies F to each byte, of type H.
template <class F, class H>
struct Bytes {
  uint32_t operator()(uint32_t a, uint32_t b) const {
    uint32_t r = 0;
    for (uint32_t k = 0; k < 32; k += 8)
      r |= uint32_t{static_cast<uint8_t>(F{}(static_cast<H>(a >> k), static_cast<H>(b >> k)))} << k;
    return r;
  }
};

/// The type of twice the width.
template <class T>
struct Wide;
template <>
struct Wide<uint16_t> {
  using type = uint32_t;
};
template <>
struct Wide<int16_t> {
  using type = int32_t;
};
template <>
struct Wide<uint32_t> {
  using type = uint64_t;
};
template <>
struct Wide<int32_t> {
  using type = int64_t;
};
template <>
struct Wide<uint64_t> {
  using type = unsigned __int128;
};
template <>
struct Wide<int64_t> {
  using type = __int128;
};

struct Add {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(Wrapping<T>(a) + Wrapping<T>(b));
  }
};
struct Sub {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(Wrapping<T>(a) - Wrapping<T>(b));
  }
};
struct NegatedBytes {
  uint32_t operator()(uint32_t a) const { return Bytes<Sub, uint8_t>{}(0, a); }
};
/// F of numbers of up to 32 bits, which does not go beyond the least and the greatest number of their type.
template <class F>
struct Saturated {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(std::clamp<int64_t>(F{}(int64_t{a}, int64_t{b}), std::numeric_limits<T>::min(),
                                              std::numeric_limits<T>::max()));
  }
};
struct MulLow {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(Wrapping<T>(a) * Wrapping<T>(b));
  }
};
struct MulWide {
  template <class T>
  typename Wide<T>::type operator()(T a, T b) const {
    using W = typename Wide<T>::type;
    return static_cast<W>(static_cast<W>(a) * static_cast<W>(b));
  }
};
struct MulHigh {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(MulWide{}(a, b) >> (8 * sizeof(T)));
  }
};
/// The low 24 bits of an operand, sign- or zero-extended.
template <class T>
inline T low24(T v) {
  if constexpr (std::is_signed_v<T>)
    return static_cast<T>(static_cast<uint32_t>(v) << 8) >> 8;
  else
    return v & 0xffffffu;
}
struct Mul24Low {
  template <class T>
  T operator()(T a, T b) const {
    return MulLow{}(low24(a), low24(b));
  }
};
/// Bits 16 to 47 of the 48-bit product.
struct Mul24High {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(MulWide{}(low24(a), low24(b)) >> 16);
  }
};
/// A product, then a sum.
template <class Product, class Sum>
struct MulThen {
  template <class T>
  T operator()(T a, T b, T c) const {
    return Sum{}(Product{}(a, b), c);
  }
};
struct AbsoluteDifference {
  template <class T>
  T operator()(T a, T b) const {
    return a < b ? Sub{}(b, a) : Sub{}(a, b);
  }
};
/// The absolute difference of a and b, plus c.
struct Sad {
  template <class T>
  T operator()(T a, T b, T c) const {
    return Add{}(c, AbsoluteDifference{}(a, b));
  }
};

/// Division as in the code that ptxas generates: division by zero gives all ones for both quotient and
/// remainder; the most negative number divided by -1 gives itself, with remainder 0.
template <class T>
inline T quotient(T a, T b) {
  if constexpr (sizeof(T) <= 4) {
    // Exact: a quotient that is not an integer is further from the next integer than the rounding error of a
    // type with more bits than the operands.
    using Real = std::conditional_t<sizeof(T) == 4, double, float>;
    const bool negates = std::is_signed_v<T> && b == static_cast<T>(-1);  // the quotient may overflow
    const Real q = static_cast<Real>(a) / static_cast<Real>(b == 0 || negates ? T{1} : b);
    using Whole = std::conditional_t<sizeof(T) == 4, T, int32_t>;
    const T result = negates ? Sub{}(T{0}, a) : static_cast<T>(static_cast<Whole>(q));
    return b == 0 ? static_cast<T>(-1) : result;
  } else {
    if (b == 0) return static_cast<T>(-1);
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return Sub{}(T{0}, a);
    // Processors divide short numbers faster.
    if ((static_cast<uint64_t>(a | b) >> 32) == 0)
      return static_cast<T>(static_cast<uint32_t>(a) / static_cast<uint32_t>(b));
    return static_cast<T>(a / b);
  }
}
struct Div {
  template <class T>
  T operator()(T a, T b) const {
    return quotient(a, b);
  }
};
struct Rem {
  template <class T>
  T operator()(T a, T b) const {
    const T rest = Sub{}(a, MulLow{}(quotient(a, b), b));
    return b == 0 ? static_cast<T>(-1) : rest;
  }
};

struct Neg {
  template <class T>
  T operator()(T a) const {
    return Sub{}(T{0}, a);
  }
};
struct Abs {
  template <class T>
  T operator()(T a) const {
    return a < 0 ? Sub{}(T{0}, a) : a;
  }
};
struct Min {
  template <class T>
  T operator()(T a, T b) const {
    return a < b ? a : b;
  }
};
struct Max {
  template <class T>
  T operator()(T a, T b) const {
    return a > b ? a : b;
  }
};
/// Applies F, then replaces negative results by 0.
template <class F>
struct Relu {
  template <class T>
  T operator()(T a, T b) const {
    return Max{}(F{}(a, b), T{0});
  }
};

struct And {
  template <class T>
  T operator()(T a, T b) const {
    return a & b;
  }
};
struct Or {
  template <class T>
  T operator()(T a, T b) const {
    return a | b;
  }
};
struct Xor {
  template <class T>
  T operator()(T a, T b) const {
    return a ^ b;
  }
};
struct Not {
  template <class T>
  T operator()(T a) const {
    return static_cast<T>(~a);
  }
};
struct LogicalNot {
  template <class T>
  T operator()(T a) const {
    return a == 0;
  }
};

/// Shifts by more than the width yield zeros, or copies of the sign.
struct ShiftLeft {
  template <class T>
  T operator()(T a, uint32_t n) const {
    constexpr uint32_t bits = 8 * sizeof(T);
    const Wrapping<T> wide = a;
    return n >= bits ? T{0} : static_cast<T>(wide << (n & (8 * sizeof(wide) - 1)));
  }
};
struct ShiftRight {
  template <class T>
  T operator()(T a, uint32_t n) const {
    constexpr uint32_t bits = 8 * sizeof(T);
    if constexpr (static_cast<T>(-1) < T{0})
      return static_cast<T>(a >> (n >= bits ? bits - 1 : n));
    else
      return n >= bits ? T{0} : static_cast<T>(a >> (n & (bits - 1)));
  }
};

inline uint32_t shift_left(uint32_t v, uint32_t n) {
  return ShiftLeft{}(v, n);
}
inline uint32_t shift_right(uint32_t v, uint32_t n) {
  return ShiftRight{}(v, n);
}

/// The 64-bit number b:a shifted left or right by n, at most `bits` or, if it wraps, modulo `bits`; its upper
/// or lower half. `is_signed`: a shift to the right repeats the sign.
template <bool left, bool high, bool is_signed>
struct Funnel {
  bool wraps = false;
  uint32_t bits = 32;

  uint32_t operator()(uint32_t a, uint32_t b, uint32_t n) const {
    n = wraps ? n & (bits - 1) : std::min(n, bits);
    if constexpr (left == high && !is_signed)  // of one word each, which vectorises better
      if (bits == 32)
        return left ? shift_left(b, n) | shift_right(a, 32 - n) : shift_right(a, n) | shift_left(b, 32 - n);
    const uint64_t whole = a | uint64_t{b} << 32;
    const uint64_t shifted =
        left ? ShiftLeft{}(whole, n)
             : static_cast<uint64_t>(
                   ShiftRight{}(static_cast<std::conditional_t<is_signed, int64_t, uint64_t>>(whole), n));
    return static_cast<uint32_t>(high ? shifted >> 32 : shifted);
  }
};

struct PopulationCount {
  template <class T>
  uint32_t operator()(T a) const {
    return static_cast<uint32_t>(std::popcount(static_cast<Wrapping<T>>(a)));
  }
};
struct LeadingZeros {
  template <class T>
  uint32_t operator()(T a) const {
    return static_cast<uint32_t>(std::countl_zero(static_cast<std::make_unsigned_t<T>>(a)));
  }
};
/// Position of the highest bit that differs from the sign (for unsigned numbers: that is set), or its
/// distance from the top; all ones if there is none.
template <bool shift_amount>
struct FindLeading {
  template <class T>
  uint32_t operator()(T a) const {
    using U = std::make_unsigned_t<T>;
    const U bits = static_cast<U>(a < 0 ? ~a : a);
    if (bits == 0) return UINT32_MAX;
    const auto zeros = static_cast<uint32_t>(std::countl_zero(bits));
    return shift_amount ? zeros : 8 * sizeof(T) - 1 - zeros;
  }
};

/// Position of the offset-th set bit from `base`, upwards or, for a negative offset, downwards.
struct FindNthSet {
  uint32_t operator()(uint32_t mask, uint32_t base, uint32_t offset) const {
    const auto wanted = static_cast<int32_t>(offset);
    if (base > 31) return UINT32_MAX;
    if (wanted == 0) return (mask >> base) & 1 ? base : UINT32_MAX;
    uint32_t left = wanted < 0 ? 0u - offset : offset;
    const int32_t step = wanted < 0 ? -1 : 1;
    for (auto at = static_cast<int32_t>(base); at >= 0 && at < 32; at += step)
      if ((mask >> at) & 1 && --left == 0) return static_cast<uint32_t>(at);
    return UINT32_MAX;
  }
};
struct Reverse {
  template <class T>
  T operator()(T v) const {
    v = static_cast<T>((v >> 1 & T(0x5555555555555555)) | (v & T(0x5555555555555555)) << 1);
    v = static_cast<T>((v >> 2 & T(0x3333333333333333)) | (v & T(0x3333333333333333)) << 2);
    v = static_cast<T>((v >> 4 & T(0x0f0f0f0f0f0f0f0f)) | (v & T(0x0f0f0f0f0f0f0f0f)) << 4);
    v = static_cast<T>((v >> 8 & T(0x00ff00ff00ff00ff)) | (v & T(0x00ff00ff00ff00ff)) << 8);
    if constexpr (sizeof(T) == 4) return v >> 16 | v << 16;
    v = static_cast<T>((v >> 16 & T(0x0000ffff0000ffff)) | (v & T(0x0000ffff0000ffff)) << 16);
    return static_cast<T>(v >> (4 * sizeof(T)) | v << (4 * sizeof(T)));
  }
};
/// A mask of the `length` lowest bits.
template <class T>
inline T low_bits(uint32_t length) {
  return static_cast<T>(ShiftLeft{}(T{1}, length) - 1);
}

/// `length` bits from `position`; a signed number is extended with its sign beyond the top.
struct ExtractField {
  template <class T>
  T operator()(T a, uint32_t position, uint32_t length) const {
    constexpr uint32_t bits = 8 * sizeof(T);
    const T shifted = ShiftRight{}(a, position & 255);
    const uint32_t wanted = length & 255;
    if constexpr (std::is_signed_v<T>) {
      const uint32_t above = bits - std::clamp(wanted, 1u, bits);
      const T extended =
          static_cast<T>(static_cast<T>(static_cast<std::make_unsigned_t<T>>(shifted) << above) >> above);
      return wanted == 0 ? T{0} : extended;
    } else {
      return shifted & low_bits<T>(wanted);
    }
  }
};
/// Inserts the lowest `length` bits of a into b at `position`.
struct InsertField {
  template <class T>
  T operator()(T a, T b, uint32_t position, uint32_t length) const {
    const T mask = ShiftLeft{}(low_bits<T>(length & 255), position & 255);
    return static_cast<T>((ShiftLeft{}(a, position & 255) & mask) | (b & ~mask));
  }
};
/// The lowest b bits of a, sign- or zero-extended.
template <bool wraps>
struct Extend {
  template <class T>
  T operator()(T a, T b) const {
    const auto n = static_cast<uint32_t>(b);
    return ExtractField{}(a, 0, wraps ? n & 31 : std::min(n, 32u));
  }
};
/// b set bits, starting at bit a.
template <bool wraps>
struct BitMask {
  uint32_t operator()(uint32_t a, uint32_t b) const {
    const uint32_t position = wraps ? a & 31 : std::min(a, 32u), width = wraps ? b & 31 : std::min(b, 32u);
    return shift_left(low_bits<uint32_t>(width), position);
  }
};
/// Field `index` of `bits` bits, sign- or zero-extended according to T.
template <class T>
inline uint32_t field(uint32_t v, uint32_t index) {
  return static_cast<uint32_t>(static_cast<T>(v >> (8 * sizeof(T) * index)));
}

}  // namespace simt::functional
