#include "timing/schedulers/warp_scheduler.hpp"

namespace simt {
namespace {

class Oldest final : public WarpScheduler {
 public:
  using WarpScheduler::WarpScheduler;
  int32_t choose(uint64_t candidates, uint64_t /*cycle*/) override { return oldest(candidates); }
};

const Registered<SchedulerPolicy> registered_oldest{
    {{"oldest", "The oldest ready warp.", "GPGPU-Sim"}, make_scheduler<Oldest>}};

}  // namespace
}  // namespace simt
