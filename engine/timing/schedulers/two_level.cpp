#include <algorithm>
#include <bit>
#include <vector>

#include "timing/schedulers/warp_scheduler.hpp"

namespace simt {
namespace {

class TwoLevel final : public WarpScheduler {
 public:
  explicit TwoLevel(const Setup& setup)
      : WarpScheduler(setup), active_warps_(std::max(1u, setup.spec.active_warps)) {}

  void begin_cycle() override {
    const SchedulerMasks& m = warps_.masks();
    const uint64_t long_wait = m.waiting() | m.blocked_long | ~m.resident;
    std::erase_if(pending_, [&](uint32_t p) { return !(m.resident >> p & 1); });
    uint64_t known = active_;
    for (uint32_t p : pending_) known |= uint64_t{1} << p;
    for (uint64_t fresh = m.resident & ~known; fresh; fresh &= fresh - 1)
      pending_.push_back(static_cast<uint32_t>(std::countr_zero(fresh)));
    for (uint64_t out = active_ & long_wait; out; out &= out - 1) {
      const auto p = static_cast<uint32_t>(std::countr_zero(out));
      active_ &= ~(uint64_t{1} << p);
      if (m.resident >> p & 1) pending_.push_back(p);
    }
    for (auto it = pending_.begin(); it != pending_.end();) {
      if (static_cast<uint32_t>(std::popcount(active_)) >= active_warps_) break;
      if (long_wait >> *it & 1) {
        ++it;
        continue;
      }
      active_ |= uint64_t{1} << *it;
      it = pending_.erase(it);
    }
  }

  int32_t choose(uint64_t candidates, uint64_t /*cycle*/) override {
    return after_last(candidates & active_);
  }

 private:
  uint32_t active_warps_;
  uint64_t active_ = 0;            // positions in the active set
  std::vector<uint32_t> pending_;  // resident positions outside it, longest-waiting first
};

const Registered<SchedulerPolicy> registered_two_level{
    {{"two_level",
      "Loose round robin among active_warps warps; one that waits for memory gives its place to the "
      "longest-waiting other.",
      "Narasiman et al., MICRO 2011"},
     make_scheduler<TwoLevel>}};

}  // namespace
}  // namespace simt
