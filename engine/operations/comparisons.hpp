#pragma once
#include <cstdint>

/// Comparisons, for PTX and machine code.
namespace simt::functional {

/// A comparison is the set of outcomes for which it holds. Only numbers of which one is a NaN are unordered.
enum Outcome : uint32_t { Less = 1, Equal = 2, Greater = 4, Unordered = 8 };
constexpr uint32_t all_outcomes = Less | Equal | Greater | Unordered;

/// Of integers, `outcomes` may hold Unordered or not: with it, `not equal` is one operation.
template <uint32_t outcomes, class T>
inline bool compare(T a, T b) {
  switch (outcomes) {
    case 0:
      return false;
    case Less:
      return a < b;
    case Equal:
      return a == b;
    case Less | Equal:
      return a <= b;
    case Greater:
      return a > b;
    case Less | Greater:
      return a < b || a > b;
    case Greater | Equal:
      return a >= b;
    case Less | Equal | Greater:
      return a == a && b == b;
    case Unordered:
      return a != a || b != b;
    case Less | Unordered:
      return !(a >= b);
    case Equal | Unordered:
      return !(a < b || a > b);
    case Less | Equal | Unordered:
      return !(a > b);
    case Greater | Unordered:
      return !(a <= b);
    case Less | Greater | Unordered:
      return a != b;
    case Greater | Equal | Unordered:
      return !(a < b);
    default:
      return true;
  }
}

}  // namespace simt::functional
