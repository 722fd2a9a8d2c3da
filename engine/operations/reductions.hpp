#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "operations/floats.hpp"

/// The operations that combine a value with one in memory: those of atom, red and reducing bulk copies. Each
/// defines the type of the value, and whether the order of several operations is unobservable.
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

/// Operations whose outcome depends on their order.
template <class V>
struct Ordered {
  using Value = V;
  static constexpr bool commutes = false;
};
/// Counts up to b, then restarts at 0.
template <class V>
struct Increment : Ordered<V> {
  static V apply(V old, V b) { return old >= b ? 0 : old + 1; }
};
/// Counts down to 0, then restarts at b; values above b also become b.
template <class V>
struct Decrement : Ordered<V> {
  static V apply(V old, V b) { return old == 0 || old > b ? b : old - 1; }
};
template <class V>
struct Exchange : Ordered<V> {
  static V apply(V, V b) { return b; }
};

/// Replaces a subnormal number by a zero of the same sign.
inline float flushed(float x) {
  return std::fabs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0f, x) : x;
}

/// The hardware flushes subnormal f32 numbers in global memory, but not in shared memory.
template <bool flush>
struct AddF32 : Ordered<float> {
  static float apply(float old, float b) {
    const float sum = old + b;
    constexpr float least = flush ? std::numeric_limits<float>::min() : 0.0f;
    // Branches rather than selections: consecutive sums at one address depend on each other.
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

constexpr uint16_t nan16 = 0x7fff;

/// A sum of two numbers, rounded to f32 and then to 16 bits, is the exact sum rounded once: f32 has more than
/// twice their bits (Figueroa, "When is double rounding innocuous?", 1995).
template <class Format>
struct Add16 : Ordered<uint16_t> {
  static uint16_t apply(uint16_t old, uint16_t b) {
    const float sum = Format::widen_one(old) + Format::widen_one(b);
    return std::isnan(sum) ? nan16 : Format::narrow_one(sum);
  }
};
template <class Format, bool greater>
struct Extreme16 : Ordered<uint16_t> {
  /// A number is preferred to NaN; +0 is greater than -0.
  static uint16_t apply(uint16_t old, uint16_t b) {
    const float x = Format::widen_one(old), y = Format::widen_one(b);
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

/// Two independent 16-bit operations.
template <class F>
struct Packed : Ordered<uint32_t> {
  static uint32_t apply(uint32_t old, uint32_t b) {
    const uint32_t low = F::apply(static_cast<uint16_t>(old), static_cast<uint16_t>(b));
    const uint32_t high = F::apply(static_cast<uint16_t>(old >> 16), static_cast<uint16_t>(b >> 16));
    return high << 16 | low;
  }
};

}  // namespace simt::functional::reduction
