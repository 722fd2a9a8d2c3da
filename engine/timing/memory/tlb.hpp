#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>

#include "timing/base/request.hpp"
#include "timing/base/spec.hpp"

namespace simt {

/// A TLB: translations of addresses, kept for a group of SMs. A miss takes the place of the oldest one when
/// its translation comes. Look-ups change nothing, so that they may be made on several threads.
class Tlb {
 public:
  explicit Tlb(const TlbSpec& spec);

  /// The cycle in which an access of cycle `now` can go on: the same one, or the end of a miss under way.
  /// None if it misses.
  std::optional<Cycle> known(uint64_t address, Cycle now) const {
    const auto found = known_.find(address >> page_bits_);
    if (found == known_.end() || now >= found->second.ends) return std::nullopt;
    return found->second.begins > now ? found->second.begins : now;
  }
  /// An access that misses; those of a TLB come in ascending cycles. Returns when it can go on.
  Cycle miss(uint64_t address, Cycle now);
  /// The translation is known, as after an access that was not simulated.
  void insert(uint64_t address);

 private:
  static constexpr Cycle never = ~Cycle{0};
  struct Lifetime {
    Cycle begins = 0, ends = never;
  };

  uint32_t page_bits_, entries_;
  Cycle miss_latency_;
  std::unordered_map<uint64_t, Lifetime> known_;  // by page
  std::deque<uint64_t> staying_;                  // pages, the oldest first
  std::deque<uint64_t> leaving_;                  // pages whose successors are on their way, in this order
};

}  // namespace simt
