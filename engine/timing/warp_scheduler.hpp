#pragma once
#include <cstdint>
#include <memory>

#include "timing/policy.hpp"
#include "timing/registry.hpp"
#include "timing/warp_table.hpp"

namespace simt {

/// Chooses which of a sub-core's ready warps issues. One per sub-core; independent of why warps are ready.
/// Each policy has a file in timing/schedulers.
class WarpScheduler {
 public:
  struct Setup {
    const SchedulerSpec& spec;
    SchedulerFunction custom;  ///< for the policy `custom`
    uint32_t scheduler;        ///< its index in the SM
    uint32_t positions;        ///< number of warps it can hold, at most 64
  };

  explicit WarpScheduler(const Setup& setup)
      : scheduler_(setup.scheduler), positions_(setup.positions), last_(setup.positions - 1) {}
  virtual ~WarpScheduler() = default;

  /// Updates the policy's own state; call once per cycle before choose(), if any warp could issue.
  virtual void begin_cycle(const WarpTable& /*warps*/) {}
  /// Position among `candidates` (nonempty; one bit per position) to try first, or -1 for none.
  virtual int32_t choose(const WarpTable& warps, uint64_t candidates, uint64_t cycle) = 0;
  /// The warp at `position` has issued.
  void issued(int32_t position) { last_ = static_cast<uint32_t>(position); }

 protected:
  /// The order in which the warp at a position was launched: smaller is older.
  uint64_t age(const WarpTable& warps, uint32_t position) const {
    return warps[warps.slot_at(scheduler_, position)].age;
  }
  /// Whether the warp that issued last is a candidate.
  bool last_is_in(uint64_t candidates) const { return last_ < 64 && (candidates >> last_ & 1); }
  /// The next candidate after the one that issued last, or -1.
  int32_t after_last(uint64_t candidates) const;
  int32_t oldest(const WarpTable& warps, uint64_t candidates) const;

  uint32_t scheduler_;
  uint32_t positions_;
  uint32_t last_;  ///< position that issued last; initially the highest one
};

/// A warp scheduler that a specification can choose.
struct SchedulerPolicy : PolicyText {
  std::unique_ptr<WarpScheduler> (*make)(const WarpScheduler::Setup& setup);
};

template <class Scheduler>
std::unique_ptr<WarpScheduler> make_scheduler(const WarpScheduler::Setup& setup) {
  return std::make_unique<Scheduler>(setup);
}

}  // namespace simt
