#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

/// The operations by which instructions combine a value in memory with another: of atom, red and bulk copies
/// that reduce. Each has the type of the value, and whether the order in which several act can be seen
/// afterwards by nobody.
namespace simt::functional::reduction {

template <class V>
struct Integer {
  using Value = V;
  static constexpr bool commutes = true;
};
template <class V>
struct Add : Integer<V> {
  static V apply(V old, V b) {
    using U = std::make_unsigned_t<V>;
    return static_cast<V>(static_cast<U>(old) + static_cast<U>(b));
  }
};
template <class V>
struct Min : Integer<V> {
  static V apply(V old, V b) { return std::min(old, b); }
};
template <class V>
struct Max : Integer<V> {
  static V apply(V old, V b) { return std::max(old, b); }
};
template <class V>
struct And : Integer<V> {
  static V apply(V old, V b) { return old & b; }
};
template <class V>
struct Or : Integer<V> {
  static V apply(V old, V b) { return old | b; }
};
template <class V>
struct Xor : Integer<V> {
  static V apply(V old, V b) { return old ^ b; }
};

/// Those whose outcome depends on the order.
template <class V>
struct Ordered {
  using Value = V;
  static constexpr bool commutes = false;
};
/// Counts up to b, then begins at 0 again.
template <class V>
struct Increment : Ordered<V> {
  static V apply(V old, V b) { return old >= b ? 0 : old + 1; }
};
/// Counts down to 0, then begins at b again; so it does from above b.
template <class V>
struct Decrement : Ordered<V> {
  static V apply(V old, V b) { return old == 0 || old > b ? b : old - 1; }
};
template <class V>
struct Exchange : Ordered<V> {
  static V apply(V, V b) { return b; }
};

/// One of f32 that is smaller than normal numbers becomes a zero of its sign.
inline float flushed(float x) {
  return std::fabs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0f, x) : x;
}

/// In global memory the hardware flushes subnormal f32 numbers, in shared memory it does not.
template <bool flush>
struct AddF32 : Ordered<float> {
  static float apply(float old, float b) {
    const float sum = old + b;
    constexpr float least = flush ? std::numeric_limits<float>::min() : 0.0f;
    // Branches rather than selections: sums in one place wait for each other.
    if (std::fabs(old) >= least && std::fabs(b) >= least && std::fabs(sum) >= least) [[likely]]
      return sum;
    return rare(old, b);
  }

 private:
  [[gnu::noinline]] static float rare(float old, float b) {
    const float sum = flush ? flushed(flushed(old) + flushed(b)) : old + b;
    return std::isnan(sum) ? std::bit_cast<float>(0x7fffffffu) : sum;
  }
};
struct AddF64 : Ordered<double> {
  static double apply(double old, double b) { return old + b; }
};

/// 16-bit formats, in the bits of a uint16_t.
struct Half {
  static float widen(uint16_t bits) { return static_cast<float>(std::bit_cast<_Float16>(bits)); }
  static uint16_t round(float x) { return std::bit_cast<uint16_t>(static_cast<_Float16>(x)); }
};
struct Bfloat {
  static float widen(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }
  static uint16_t round(float x) {
    const auto bits = std::bit_cast<uint32_t>(x);
    return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
};
constexpr uint16_t nan16 = 0x7fff;

/// A sum of two numbers rounded to f32 and then to 16 bits is the exact sum rounded once: f32 has more than
/// twice their bits (Figueroa, "When is double rounding innocuous?", 1995).
template <class Format>
struct Add16 : Ordered<uint16_t> {
  static uint16_t apply(uint16_t old, uint16_t b) {
    const float sum = Format::widen(old) + Format::widen(b);
    return std::isnan(sum) ? nan16 : Format::round(sum);
  }
};
template <class Format, bool greater>
struct Extreme16 : Ordered<uint16_t> {
  /// A number wins over NaN, +0 is greater than -0.
  static uint16_t apply(uint16_t old, uint16_t b) {
    const float x = Format::widen(old), y = Format::widen(b);
    if (std::isnan(x)) return std::isnan(y) ? nan16 : b;
    if (std::isnan(y)) return old;
    if (x == y) return std::signbit(x) == greater ? b : old;
    return (x > y) == greater ? old : b;
  }
};
template <class Format>
using Min16 = Extreme16<Format, false>;
template <class Format>
using Max16 = Extreme16<Format, true>;

/// Two 16-bit operations side by side.
template <class F>
struct Packed : Ordered<uint32_t> {
  static uint32_t apply(uint32_t old, uint32_t b) {
    const uint32_t low = F::apply(static_cast<uint16_t>(old), static_cast<uint16_t>(b));
    const uint32_t high = F::apply(static_cast<uint16_t>(old >> 16), static_cast<uint16_t>(b >> 16));
    return high << 16 | low;
  }
};

}  // namespace simt::functional::reduction
