#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "timing/base/registry.hpp"

namespace simt {

struct CacheShape {
  uint32_t sets = 0, ways = 0;
  uint32_t line_bytes = 0;

  uint32_t lines() const { return sets * ways; }
};

/// An access for which a line is taken, or that uses it.
struct LineUse {
  static constexpr uint32_t unknown = ~0u;

  uint64_t line_address = 0;
  uint64_t time = 0;        ///< never decreases
  bool write = false;       ///< false also where a line is taken when its data arrives
  uint64_t pc = 0;          ///< in an L1: of the instruction; elsewhere, and in one that runs no program, 0
  uint32_t warp = unknown;  ///< in an L1: slot of the warp
};

/// Chooses the line of a cache's set to evict, for policies that do not simply evict the set's oldest. Lines
/// are numbered set by set.
class Replacement {
 public:
  virtual ~Replacement() = default;
  /// A line now holds another tag.
  virtual void allocated(uint32_t line, const LineUse& use) = 0;
  virtual void used(uint32_t line, const LineUse& use) = 0;
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
  static constexpr const char* kind = "replacement";

  bool renewed_by_use = false;  ///< a line moves to the end of its set's order when used
  /// For one cache, again when its number of ways changes; empty: the order decides.
  std::function<std::unique_ptr<Replacement>(const CacheShape& shape)> make{};
  /// If not 0 and the order decides: one of the first `ways / part` evictable lines, by a hash of addresses.
  uint32_t part = 0;
};

template <class Policy>
std::unique_ptr<Replacement> make_replacement(const CacheShape& shape) {
  return std::make_unique<Policy>(shape);
}

}  // namespace simt
