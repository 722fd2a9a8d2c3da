
#include "timing/base/ring_queue.hpp"
#include "timing/memory/dram_scheduler.hpp"

namespace simt {
namespace {

class FirstComeFirstServed final : public DramScheduler {
 public:
  explicit FirstComeFirstServed(const DramSpec& /*spec*/) {}

  bool full(bool /*write*/) const override { return pending_ >= 2; }

  void push(const DramRequest& request) override {
    requests_.push_back(request);
    ++pending_;
  }

  bool next(std::span<const uint32_t> /*rows*/, uint64_t busy, uint32_t& /*turn*/,
            DramRequest& chosen) override {
    if (busy >> requests_.front().bank & 1) return false;
    chosen = requests_.front();
    requests_.pop_front();
    --pending_;
    return true;
  }

 private:
  RingQueue<DramRequest> requests_;
};

const Registered<DramSchedulerPolicy> registered_fcfs{
    {{"fcfs", "First come, first served.", "GPGPU-Sim"}, make_dram_scheduler<FirstComeFirstServed>}};

}  // namespace
}  // namespace simt
