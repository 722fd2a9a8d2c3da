#pragma once
#include <cstdint>
#include <initializer_list>

namespace simt {

/// A word with ones at these positions.
constexpr uint64_t bit_mask(std::initializer_list<uint32_t> positions) {
  uint64_t mask = 0;
  for (uint32_t p : positions) mask |= uint64_t{1} << p;
  return mask;
}

}  // namespace simt
