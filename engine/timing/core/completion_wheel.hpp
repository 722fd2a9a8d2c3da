#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "timing/base/request.hpp"
#include "timing/warps/decoded_kernel.hpp"

namespace simt {

/// Fixed-latency instructions, by the cycle in which their results are written. Each cycle's are a list in
/// one pool, whose places are reused last first: what a window touches is as large as what is in flight.
class CompletionWheel {
 public:
  static constexpr uint32_t horizon = 512;  ///< largest distance into the future, in cycles
  struct Entry {
    const DecodedInstruction* instruction;
    uint16_t warp;
  };

  void schedule(Cycle cycle, Entry entry) {
    if (free_ == none) {
      free_ = static_cast<uint32_t>(nodes_.size());
      nodes_.push_back({entry, none});
    }
    const uint32_t node = free_;
    free_ = nodes_[node].next;
    nodes_[node] = {entry, none};
    const uint32_t b = cycle % horizon;
    if (any(cycle))
      nodes_[lists_[b].last].next = node;
    else
      lists_[b].first = node;
    lists_[b].last = node;
    occupied_[b / 64] |= uint64_t{1} << (b % 64);
  }
  bool any(Cycle cycle) const { return occupied_[cycle % horizon / 64] >> (cycle % 64) & 1; }
  /// Removes the cycle's entries, in the order in which they were scheduled, and calls complete(entry) for
  /// each. There must be some.
  template <typename Complete>
  void take(Cycle cycle, Complete complete) {
    const uint32_t b = cycle % horizon;
    for (uint32_t node = lists_[b].first; node != none;) {
      const Node taken = nodes_[node];
      nodes_[node].next = std::exchange(free_, node);
      complete(taken.entry);
      node = taken.next;
    }
    occupied_[b / 64] &= ~(uint64_t{1} << (b % 64));
  }
  /// First cycle after `now` with an entry; ~0 if none.
  Cycle next_after(Cycle now) const {
    const Cycle first = now + 1;
    for (uint32_t distance = 0; distance < horizon;) {
      const uint32_t b = (first + distance) % horizon;
      const uint64_t word = occupied_[b / 64] >> (b % 64);
      if (word) return first + distance + static_cast<uint32_t>(std::countr_zero(word));
      distance += 64 - b % 64;
    }
    return ~Cycle{0};
  }

 private:
  static constexpr uint32_t none = ~0u;
  struct Node {
    Entry entry;
    uint32_t next;
  };
  struct List {
    uint32_t first, last;
  };
  std::array<uint64_t, horizon / 64> occupied_{};
  std::vector<Node> nodes_;
  uint32_t free_ = none;
  std::array<List, horizon> lists_{};  // of cycles that have entries
};

}  // namespace simt
