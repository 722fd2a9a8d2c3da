#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "timing/decoded_kernel.hpp"
#include "timing/memory/request.hpp"

namespace simt {

/// Fixed-latency instructions, by the cycle in which their results are written.
class CompletionWheel {
 public:
  static constexpr uint32_t horizon = 512;  ///< largest distance into the future, in cycles
  struct Entry {
    const DecodedInstruction* instruction;
    uint16_t warp;
  };

  void schedule(Cycle cycle, Entry entry) {
    const uint32_t b = cycle % horizon;
    buckets_[b].push_back(entry);
    occupied_[b / 64] |= uint64_t{1} << (b % 64);
  }
  bool any(Cycle cycle) const { return occupied_[cycle % horizon / 64] >> (cycle % 64) & 1; }
  std::vector<Entry>& at(Cycle cycle) { return buckets_[cycle % horizon]; }
  void clear(Cycle cycle) {
    const uint32_t b = cycle % horizon;
    buckets_[b].clear();
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
  std::array<std::vector<Entry>, horizon> buckets_;
  std::array<uint64_t, horizon / 64> occupied_{};
};

}  // namespace simt
