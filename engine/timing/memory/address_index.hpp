#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace simt {

/// Maps addresses to numbers: an open-addressing hash table for a bounded number of entries.
class AddressIndex {
 public:
  static constexpr uint32_t none = ~0u;

  /// Addresses are multiples of `unit_bytes`, a power of two.
  explicit AddressIndex(uint32_t unit_bytes)
      : shift_(static_cast<uint32_t>(std::bit_width(unit_bytes) - 1)) {}

  /// Empties the table and makes room for `entries`.
  void reset(size_t entries) { slots_.assign(std::bit_ceil(std::max<size_t>(4, entries * 2)), Slot{}); }

  uint32_t find(uint64_t address) const {
    const size_t mask = slots_.size() - 1;
    for (size_t at = home(address) & mask;; at = (at + 1) & mask) {
      if (slots_[at].number == none) return none;
      if (slots_[at].address == address) return slots_[at].number;
    }
  }
  void insert(uint64_t address, uint32_t number) {
    const size_t mask = slots_.size() - 1;
    size_t at = home(address) & mask;
    while (slots_[at].number != none) at = (at + 1) & mask;
    slots_[at] = {address, number};
  }
  /// The address must be in the table.
  void erase(uint64_t address) {
    const size_t mask = slots_.size() - 1;
    size_t hole = home(address) & mask;
    while (slots_[hole].address != address || slots_[hole].number == none) hole = (hole + 1) & mask;
    slots_[hole] = Slot{};
    // Entries displaced past the hole move back into it.
    for (size_t at = (hole + 1) & mask; slots_[at].number != none; at = (at + 1) & mask) {
      const size_t from_home = (at - home(slots_[at].address)) & mask;
      if (from_home < ((at - hole) & mask)) continue;
      slots_[hole] = slots_[at];
      slots_[at] = Slot{};
      hole = at;
    }
  }

 private:
  struct Slot {
    uint64_t address = 0;
    uint32_t number = none;
  };
  /// Four neighbouring units share one of the host's cache lines.
  size_t home(uint64_t address) const {
    const uint64_t unit = address >> shift_;
    return (unit >> 2) * 0x9e3779b97f4a7c15ull >> 20 << 2 | (unit & 3);
  }
  uint32_t shift_;
  std::vector<Slot> slots_ = std::vector<Slot>(4);
};

}  // namespace simt
