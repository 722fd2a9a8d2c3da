#include <vector>

#include "timing/warp_scheduler.hpp"

namespace simt {
namespace {

class CompiledScheduler final : public WarpScheduler {
 public:
  explicit CompiledScheduler(const Setup& setup)
      : WarpScheduler(setup), function_(setup.custom), ready_(setup.positions), ages_(setup.positions) {}

  int32_t choose(const WarpTable& warps, uint64_t candidates, uint64_t cycle) override {
    for (uint32_t p = 0; p < positions_; ++p) {
      ready_[p] = static_cast<uint8_t>(candidates >> p & 1);
      ages_[p] = age(warps, p);
    }
    const auto count = static_cast<int32_t>(positions_);
    const int32_t chosen = function_(ready_.data(), ages_.data(), count, static_cast<int32_t>(last_), cycle);
    const bool valid = chosen >= 0 && chosen < count && (candidates >> chosen & 1);
    return valid ? chosen : -1;
  }

 private:
  SchedulerFunction function_;
  std::vector<uint8_t> ready_;
  std::vector<uint64_t> ages_;
};

const Registered<SchedulerPolicy> registered_custom_scheduler{
    {{"custom", "A user-supplied function, for example compiled from Python.", "docs/policies.md"},
     make_scheduler<CompiledScheduler>}};

}  // namespace
}  // namespace simt
