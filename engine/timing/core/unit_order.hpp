#pragma once
#include <array>
#include <cstddef>

#include "isa/instruction.hpp"

namespace simt {

/// An order of units, the special ones last.
template <size_t Count>
constexpr std::array<Unit, Count + special_units> then_special(const std::array<Unit, Count>& units) {
  std::array<Unit, Count + special_units> all{};
  for (size_t k = 0; k < Count; ++k) all[k] = units[k];
  for (size_t k = 0; k < special_units; ++k)
    all[Count + k] = static_cast<Unit>(static_cast<size_t>(Unit::Special) + k);
  return all;
}

}  // namespace simt
