#pragma once
#include <array>
#include <utility>

#include "operations/comparisons.hpp"
#include "sass/rows.hpp"

/// The comparisons of machine code.
namespace simt::sass {

using functional::all_outcomes;
using functional::Equal;
using functional::Greater;
using functional::Less;
using functional::Unordered;

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

template <uint32_t outcomes, class T>
uint32_t compared(const T* x, const T* y) {
  return test_rows([=](uint32_t i) { return functional::compare<outcomes>(x[i], y[i]); });
}
template <class T, size_t... outcomes>
constexpr auto comparisons(std::index_sequence<outcomes...>) {
  return std::array{compared<outcomes, T>...};
}
/// A bit for each lane for which the comparison holds.
template <class T>
uint32_t compared(uint32_t outcomes, const T* x, const T* y) {
  static constexpr auto all = comparisons<T>(std::make_index_sequence<all_outcomes + 1>());
  return all[outcomes](x, y);
}

}  // namespace simt::sass
