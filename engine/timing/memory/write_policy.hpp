#pragma once
#include "timing/registry.hpp"

namespace simt {

/// What a write does to a cache and to the next level, as a specification can choose it. Each policy has a
/// file in timing/memory/write_policies.
struct WritePolicy : PolicyText {
  /// Writes go to the next level at once, and modified lines are not written back when they are evicted.
  bool through = false;
  /// A write that hits goes to the next level and removes its sector: of local memory, and of all other
  /// memory.
  bool removes_local = false, removes_global = false;
};

}  // namespace simt
