#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ptx/module.hpp"

namespace simt::functional {

/// How a bulk copy combines elements with those at its destination.
struct ElementReduction {
  /// to[k] = operation(to[k], from[k]) for `count` elements of any alignment; nullptr: unsupported.
  void (*combine)(std::byte* to, const std::byte* from, size_t count) = nullptr;
  uint32_t bytes = 0;  ///< per element
};

/// `operation`: add, min, max, inc, dec, and, or, xor.
ElementReduction element_reduction(std::string_view operation, ptx::Type type);

}  // namespace simt::functional
