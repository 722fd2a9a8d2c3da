#include "timing/schedulers/warp_scheduler.hpp"

namespace simt {
namespace {

class GreedyThenOldest final : public WarpScheduler {
 public:
  using WarpScheduler::WarpScheduler;
  int32_t choose(uint64_t candidates, uint64_t /*cycle*/) override {
    return last_is_in(candidates) ? static_cast<int32_t>(last_) : oldest(candidates);
  }
};

const Registered<SchedulerPolicy> registered_gto{
    {{"gto", "Greedy then oldest: the same warp while it is ready, else the oldest.",
      "Rogers, O'Connor, Aamodt, MICRO 2012"},
     make_scheduler<GreedyThenOldest>}};

}  // namespace
}  // namespace simt
