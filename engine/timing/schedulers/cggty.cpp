#include "timing/warp_scheduler.hpp"

namespace simt {
namespace {

class GreedyThenYoungest final : public WarpScheduler {
 public:
  using WarpScheduler::WarpScheduler;
  int32_t choose(const WarpTable& warps, uint64_t candidates, uint64_t /*cycle*/) override {
    return last_is_in(candidates) ? static_cast<int32_t>(last_) : youngest(warps, candidates);
  }
};

const Registered<SchedulerPolicy> registered_cggty{
    {{"cggty", "Compiler-guided greedy then youngest: the same warp while it is ready, else the youngest.",
      "Huerta et al., MICRO 2025"},
     make_scheduler<GreedyThenYoungest>}};

}  // namespace
}  // namespace simt
