#pragma once
#include <cstdint>
#include <memory>
#include <span>

#include "timing/policy.hpp"
#include "timing/registry.hpp"

namespace simt {

/// Chooses the line of a cache's set to evict, for policies that do not simply evict the set's oldest. Lines
/// are numbered set by set.
class Replacement {
 public:
  virtual ~Replacement() = default;
  /// A line now holds another tag.
  virtual void allocated(uint32_t line, uint64_t time) = 0;
  virtual void used(uint32_t line, uint64_t time) = 0;
  /// Which of a set's lines to evict: an index into `evictable`, whose entries are 1 for lines that can be
  /// evicted (at least one), or -1 for none. `first`: the number of the set's first line. Must not change
  /// state, because the access may still be refused.
  virtual int32_t victim(uint32_t first, std::span<const uint8_t> evictable) const = 0;
};

/// A replacement policy that a specification can choose. Each has a file in timing/memory/replacement.
///
/// A cache keeps each set's lines in an order, new ones last, and evicts the first evictable one, unless the
/// policy chooses.
struct ReplacementPolicy : PolicyText {
  bool renewed_by_use = false;  ///< a line moves to the end of its set's order when used
  /// For a cache of `lines` lines, with this `custom` function; nullptr: the order decides.
  std::unique_ptr<Replacement> (*make)(uint32_t lines, ReplacementFunction custom) = nullptr;
};

}  // namespace simt
