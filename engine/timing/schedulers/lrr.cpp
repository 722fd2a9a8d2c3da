#include "timing/schedulers/warp_scheduler.hpp"

namespace simt {
namespace {

class LooseRoundRobin final : public WarpScheduler {
 public:
  using WarpScheduler::WarpScheduler;
  int32_t choose(uint64_t candidates, uint64_t /*cycle*/) override { return after_last(candidates); }
};

const Registered<SchedulerPolicy> registered_lrr{
    {{"lrr", "Loose round robin: the next ready warp after the one that issued last.", "GPGPU-Sim"},
     make_scheduler<LooseRoundRobin>}};

}  // namespace
}  // namespace simt
