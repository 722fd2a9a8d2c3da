#pragma once
#include <bit>
#include <cstdint>
#include <functional>
#include <memory>

#include "timing/base/registry.hpp"
#include "timing/base/spec.hpp"
#include "timing/warps/warp_view.hpp"

namespace simt {

/// A global or local access of a warp in the SM's L1: one sector.
struct L1Access {
  uint64_t address;  ///< of the sector
  uint64_t pc;       ///< of the instruction
  uint64_t cycle;
  bool hit;  ///< also true where the data is already on its way
  bool write;
};

/// Chooses which of a sub-core's ready warps issues. One per sub-core; independent of why warps are ready.
/// Each policy has a file in timing/schedulers.
class WarpScheduler {
 public:
  static constexpr uint64_t never = ~uint64_t{0};

  struct Setup {
    const SchedulerSpec& spec;
    const WarpView& warps;
    uint32_t sm;         ///< number of its SM
    uint32_t scheduler;  ///< its number in the SM
    uint32_t positions;  ///< number of warps it can hold, at most 64
  };

  explicit WarpScheduler(const Setup& setup)
      : warps_(setup.warps), positions_(setup.positions), last_(setup.positions - 1) {}
  virtual ~WarpScheduler() = default;

  /// Updates the policy's own state; called once per cycle in which any warp is resident and could issue,
  /// before choose(). Cycles in which nothing changes are left out.
  virtual void begin_cycle() {}
  /// Position among `candidates` (nonempty; one bit per position) to try first, or -1 for none.
  virtual int32_t choose(uint64_t candidates, uint64_t cycle) = 0;
  /// When choose() is to be called again after it has chosen none in `cycle`, if nothing happens to the warps
  /// until then. Asked in vain for 65,536 cycles, the SM gives up, which ends in a deadlock's report.
  virtual uint64_t asks_again(uint64_t /*cycle*/) const { return never; }
  /// The warp at `position` has issued.
  void issued(int32_t position) { last_ = static_cast<uint32_t>(position); }

  /// What its warps' accesses do in the L1, if SchedulerPolicy::observes_l1.
  virtual void l1_accessed(uint32_t /*position*/, const L1Access& /*access*/) {}
  /// A line that an access of this resident warp had brought into the L1 has been replaced.
  virtual void l1_evicted(uint32_t /*position*/, uint64_t /*line_address*/, uint64_t /*cycle*/) {}

 protected:
  /// Whether the warp that issued last is a candidate.
  bool last_is_in(uint64_t candidates) const { return last_ < 64 && (candidates >> last_ & 1); }
  /// The next candidate after the one that issued last, or -1.
  int32_t after_last(uint64_t candidates) const {
    const uint64_t later = last_ >= 63 ? 0 : candidates & (~uint64_t{0} << (last_ + 1));
    const uint64_t from = later ? later : candidates;
    return from ? std::countr_zero(from) : -1;
  }
  /// The candidate that was launched first, or last; -1 without candidates.
  int32_t oldest(uint64_t candidates) const {
    return best_of(candidates, [](uint64_t a, uint64_t b) { return a < b; });
  }
  int32_t youngest(uint64_t candidates) const {
    return best_of(candidates, [](uint64_t a, uint64_t b) { return a > b; });
  }

  const WarpView& warps_;
  uint32_t positions_;
  uint32_t last_;  ///< position that issued last; initially the highest one

 private:
  template <typename Before>
  int32_t best_of(uint64_t candidates, Before before) const {
    int32_t best = -1;
    for (; candidates; candidates &= candidates - 1) {
      const int32_t p = std::countr_zero(candidates);
      if (best < 0 || before(warps_.age(static_cast<uint32_t>(p)), warps_.age(static_cast<uint32_t>(best))))
        best = p;
    }
    return best;
  }
};

/// A warp scheduler that a specification can choose.
struct SchedulerPolicy : PolicyText {
  static constexpr const char* kind = "scheduler";

  std::function<std::unique_ptr<WarpScheduler>(const WarpScheduler::Setup& setup)> make;
  bool observes_l1 = false;  ///< is told of accesses to the L1
};

template <class Scheduler>
std::unique_ptr<WarpScheduler> make_scheduler(const WarpScheduler::Setup& setup) {
  return std::make_unique<Scheduler>(setup);
}

}  // namespace simt
