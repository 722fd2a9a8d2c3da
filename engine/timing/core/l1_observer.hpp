#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "timing/core/in_flight.hpp"
#include "timing/memory/sectored_cache.hpp"
#include "timing/schedulers/warp_scheduler.hpp"
#include "timing/warps/warp_table.hpp"

namespace simt {

/// Tells policies which warps and instructions use the lines of an SM's L1. Only an SM with such policies has
/// one.
class L1Observer final : public CacheObserver {
 public:
  /// schedulers: those to tell; may be empty, if the replacement policy alone asks.
  L1Observer(const InFlightPool& pool, const WarpTable& warps,
             std::span<const std::unique_ptr<WarpScheduler>> schedulers)
      : pool_(pool), warps_(warps), schedulers_(schedulers) {}

  /// This instruction's access is the next.
  void looks_up(uint32_t in_flight) { current_ = in_flight; }
  /// Its access was not refused.
  void accessed(const CacheAccess& access, CacheOutcome outcome);

  Requester requester(uint64_t token, bool write) const override;
  void replaced(uint32_t line, bool had_tag, uint64_t tag, const CacheAccess& access) override;

 private:
  struct Owner {
    uint32_t warp = 0;
    uint64_t age = ~uint64_t{0};  // the slot may hold another warp by now
  };

  const InFlightPool& pool_;
  const WarpTable& warps_;
  std::span<const std::unique_ptr<WarpScheduler>> schedulers_;
  uint32_t current_ = 0;
  std::vector<Owner> owners_;  // of lines: whose access brought them in
};

}  // namespace simt
