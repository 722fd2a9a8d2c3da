#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ptx/module.hpp"

namespace simt::functional {

/// How bulk copies combine elements with those at their destination.
struct ElementReduction {
  /// to[k] = operation(to[k], from[k]) for `count` elements at any alignment; nullptr: there is none.
  void (*combine)(std::byte* to, const std::byte* from, size_t count) = nullptr;
  uint32_t bytes = 0;  ///< of an element
};

/// `operation`: add, min, max, inc, dec, and, or, xor.
ElementReduction element_reduction(std::string_view operation, ptx::Type type);

}  // namespace simt::functional
