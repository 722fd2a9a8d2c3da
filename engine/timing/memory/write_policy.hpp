#pragma once
#include "timing/base/registry.hpp"

namespace simt {

/// What a write does to a cache and the next level. Each policy has a file in timing/memory/write_policies.
struct WritePolicy : PolicyText {
  static constexpr const char* kind = "write_policy";

  /// Writes go to the next level immediately, and modified lines are not written back on eviction.
  bool through = false;
  /// A write hit goes to the next level and removes its sector: for local memory, and for all other memory.
  bool removes_local = false, removes_global = false;
};

}  // namespace simt
