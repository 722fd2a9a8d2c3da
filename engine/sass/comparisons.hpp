#pragma once
#include "sass/rows.hpp"

/// Comparisons of floating-point numbers.
namespace simt::sass {

/// A comparison is the set of outcomes for which it holds.
enum Outcome : uint32_t { Less = 1, Equal = 2, Greater = 4, Unordered = 8 };

/// The comparison among the modifiers, which may be LT, or LTU, which holds for NaNs too.
inline uint32_t take_comparison(Translation& t) {
  static constexpr std::pair<std::string_view, uint32_t> known[] = {
      {"F", 0},
      {"LT", Less},
      {"EQ", Equal},
      {"LE", Less | Equal},
      {"GT", Greater},
      {"NE", Less | Greater},
      {"GE", Greater | Equal},
      {"NUM", Less | Equal | Greater},
      {"NAN", Unordered},
      {"LTU", Less | Unordered},
      {"EQU", Equal | Unordered},
      {"LEU", Less | Equal | Unordered},
      {"GTU", Greater | Unordered},
      {"NEU", Less | Greater | Unordered},
      {"GEU", Greater | Equal | Unordered},
      {"T", Less | Equal | Greater | Unordered}};
  for (const auto& [name, outcomes] : known)
    if (t.take(name)) return outcomes;
  t.unsupported("a comparison is missing");
}

/// A bit for each lane for which the comparison holds.
template <class T>
uint32_t compared(uint32_t outcomes, const T* x, const T* y) {
  uint32_t holds = 0;
  if (outcomes & Less) holds |= test_rows([&](uint32_t i) { return x[i] < y[i]; });
  if (outcomes & Equal) holds |= test_rows([&](uint32_t i) { return x[i] == y[i]; });
  if (outcomes & Greater) holds |= test_rows([&](uint32_t i) { return x[i] > y[i]; });
  if (outcomes & Unordered) holds |= test_rows([&](uint32_t i) { return x[i] != x[i] || y[i] != y[i]; });
  return holds;
}

}  // namespace simt::sass
