#pragma once
#include <cstdint>
#include <vector>

#include "timing/policy.hpp"
#include "timing/warp_table.hpp"

namespace simt {

/// Chooses which of a sub-core's ready warps issues. One per sub-core; knows nothing of why warps are ready.
///   lrr       loose round robin: the next ready position after the one that issued last
///   gto       greedy then oldest: the same warp while it is ready, else the oldest
///   oldest    the oldest ready warp
///   two_level loose round robin among `active_warps` warps; one that waits for memory gives its place to the
///             longest-waiting other (Narasiman et al., MICRO 2011)
///   cggty     the same warp while it is ready, else the youngest (Huerta et al., MICRO 2025)
///   custom    a compiled function
class WarpScheduler {
 public:
  WarpScheduler(const SchedulerSpec& spec, SchedulerFunction custom, uint32_t scheduler, uint32_t positions)
      : spec_(spec), custom_(custom), scheduler_(scheduler), positions_(positions), last_(positions - 1) {}

  /// Brings the policy's own state up to date; call once a cycle before choose(), when any warp could issue.
  void begin_cycle(const WarpTable& warps);
  /// Position among `candidates` (not empty) to try first, or -1 for none.
  int32_t choose(const WarpTable& warps, uint64_t candidates, uint64_t cycle);
  void issued(int32_t position) { last_ = static_cast<uint32_t>(position); }

 private:
  int32_t oldest(const WarpTable& warps, uint64_t candidates) const;
  int32_t youngest(const WarpTable& warps, uint64_t candidates) const;
  int32_t after_last(uint64_t candidates) const;

  SchedulerSpec spec_;
  SchedulerFunction custom_;
  uint32_t scheduler_;
  uint32_t positions_;
  uint32_t last_;
  uint64_t active_ = 0;            // two-level: positions in the active set
  std::vector<uint32_t> pending_;  // two-level: resident positions outside it, longest-waiting first
  std::vector<uint8_t> ready_flags_;
  std::vector<uint64_t> ages_;
};

}  // namespace simt
