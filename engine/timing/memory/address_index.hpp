#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "isa/prefetch.hpp"

namespace simt {

/// Maps addresses to the numbers of the entries that hold them: an open-addressing hash table, at most half
/// full, whose size follows the number of entries. The addresses themselves are left to the entries: a slot
/// takes eight bytes, and finding an entry touches it anyway.
class AddressIndex {
 public:
  static constexpr uint32_t none = ~0u;

  /// Addresses are multiples of `unit_bytes`, a power of two.
  explicit AddressIndex(uint32_t unit_bytes)
      : shift_(static_cast<uint32_t>(std::bit_width(unit_bytes) - 1)) {}

  /// Empties the table.
  void clear() {
    slots_.assign(least_slots, Slot{});
    mask_ = least_slots - 1;
    used_ = 0;
  }

  /// The number of the entry with this address. address_of(number): the address of an entry in the table.
  template <typename AddressOf>
  uint32_t find(uint64_t address, AddressOf address_of) const {
    const uint32_t hash = hash_of(address);
    for (size_t at = hash & mask_;; at = (at + 1) & mask_) {
      const Slot slot = slots_[at];
      if (slot.number == none) return none;
      if (slot.hash == hash && address_of(slot.number) == address) return slot.number;
    }
  }
  /// What find() returns, save that it may be another entry with the same hash. Touches no entry.
  uint32_t likely(uint64_t address) const {
    const uint32_t hash = hash_of(address);
    for (size_t at = hash & mask_;; at = (at + 1) & mask_) {
      const Slot slot = slots_[at];
      if (slot.number == none || slot.hash == hash) return slot.number;
    }
  }
  /// Brings what find() reads first into the host's caches.
  void prefetch(uint64_t address) const { simt::prefetch(&slots_[hash_of(address) & mask_]); }
  /// The address must not be in the table.
  void insert(uint64_t address, uint32_t number) {
    if (2 * ++used_ > mask_ + 1) grow();
    place({hash_of(address), number});
  }
  /// They must be in the table.
  void erase(uint64_t address, uint32_t number) {
    --used_;
    size_t hole = hash_of(address) & mask_;
    while (slots_[hole].number != number) hole = (hole + 1) & mask_;
    slots_[hole] = Slot{};
    // Entries displaced past the hole move back into it.
    for (size_t at = (hole + 1) & mask_; slots_[at].number != none; at = (at + 1) & mask_) {
      const size_t from_home = (at - slots_[at].hash) & mask_;
      if (from_home < ((at - hole) & mask_)) continue;
      slots_[hole] = slots_[at];
      slots_[at] = Slot{};
      hole = at;
    }
  }

 private:
  static constexpr size_t least_slots = 16;
  struct Slot {
    uint32_t hash = 0;
    uint32_t number = none;
  };
  /// Its low bits are the slot. Four neighbouring units share one of the host's cache lines.
  uint32_t hash_of(uint64_t address) const {
    const uint64_t unit = address >> shift_;
    return static_cast<uint32_t>((unit >> 2) * 0x9e3779b97f4a7c15ull >> 34 << 2 | (unit & 3));
  }
  void place(Slot slot) {
    size_t at = slot.hash & mask_;
    while (slots_[at].number != none) at = (at + 1) & mask_;
    slots_[at] = slot;
  }
  void grow() {
    const std::vector<Slot> before = std::exchange(slots_, std::vector<Slot>(2 * slots_.size()));
    mask_ = slots_.size() - 1;
    for (const Slot& slot : before)
      if (slot.number != none) place(slot);
  }

  uint32_t shift_;
  size_t used_ = 0;
  std::vector<Slot> slots_ = std::vector<Slot>(least_slots);
  size_t mask_ = least_slots - 1;  // their number, less one
};

/// As AddressIndex, for entries that come and go with every request: lists of those with the same hash, whose
/// links are in the entries. There are at least four times as many lists as entries: finding, adding and
/// removing one seldom touches others.
class AddressLists {
 public:
  static constexpr uint32_t none = ~0u;

  explicit AddressLists(uint32_t unit_bytes)
      : shift_(static_cast<uint32_t>(std::bit_width(unit_bytes) - 1)) {}

  bool empty() const { return used_ == 0; }
  /// next_of(number): the entry's link, a reference.
  template <typename AddressOf, typename NextOf>
  uint32_t find(uint64_t address, AddressOf address_of, NextOf next_of) const {
    uint32_t number = head(address);
    while (number != none && address_of(number) != address) number = next_of(number);
    return number;
  }
  /// The address must not be there.
  template <typename AddressOf, typename NextOf>
  void insert(uint64_t address, uint32_t number, AddressOf address_of, NextOf next_of) {
    if (4 * ++used_ > mask_ + 1) {
      std::vector<uint32_t> before(2 * heads_.size(), none);
      before.swap(heads_);
      mask_ = heads_.size() - 1;
      for (uint32_t first : before)
        while (first != none) {
          const uint32_t moved = std::exchange(first, next_of(first));
          next_of(moved) = std::exchange(head(address_of(moved)), moved);
        }
    }
    next_of(number) = std::exchange(head(address), number);
  }
  /// It must be there.
  template <typename NextOf>
  void erase(uint64_t address, uint32_t number, NextOf next_of) {
    --used_;
    uint32_t* at = &head(address);
    while (*at != number) at = &next_of(*at);
    *at = next_of(number);
  }

 private:
  size_t list_of(uint64_t address) const {
    const uint64_t unit = address >> shift_;
    return ((unit >> 2) * 0x9e3779b97f4a7c15ull >> 34 << 2 | (unit & 3)) & mask_;
  }
  uint32_t& head(uint64_t address) { return heads_[list_of(address)]; }
  uint32_t head(uint64_t address) const { return heads_[list_of(address)]; }

  uint32_t shift_;
  size_t used_ = 0;
  std::vector<uint32_t> heads_ = std::vector<uint32_t>(64, none);
  size_t mask_ = 63;  // their number, less one
};

}  // namespace simt
