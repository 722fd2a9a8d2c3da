#include <bit>

#include "timing/schedulers/warp_scheduler.hpp"

namespace simt {
namespace {

/// Of warps of one CTA, the youngest has the highest position. That positions count across CTAs, too, and not
/// their ages, is what block sizes of a kernel on an RTX 2060 say (docs/whole-programs.md).
class GreedyThenYoungest final : public WarpScheduler {
 public:
  using WarpScheduler::WarpScheduler;
  int32_t choose(uint64_t candidates, uint64_t /*cycle*/) override {
    return last_is_in(candidates) ? static_cast<int32_t>(last_) : 63 - std::countl_zero(candidates);
  }
};

const Registered<SchedulerPolicy> registered_cggty{
    {{"cggty",
      "Compiler-guided greedy then youngest: the same warp while it is ready, else the highest slot.",
      "Huerta et al., MICRO 2025"},
     make_scheduler<GreedyThenYoungest>}};

}  // namespace
}  // namespace simt
