#include <bit>
#include <vector>

#include "timing/base/ring_queue.hpp"
#include "timing/base/spec.hpp"
#include "timing/memory/dram_scheduler.hpp"

namespace simt {
namespace {

/// Lowest set bit at or after `start`, else the lowest set bit.
uint32_t first_from(uint64_t bits, uint32_t start) {
  const uint64_t later = bits & ~((uint64_t{1} << start) - 1);
  return static_cast<uint32_t>(std::countr_zero(later ? later : bits));
}

class FirstReady final : public DramScheduler {
 public:
  explicit FirstReady(const DramSpec& spec) : spec_(spec), reads_(spec.banks), writes_(spec.banks) {}

  bool full(bool write) const override {
    if (spec_.write_queue && write) return pending_writes_ >= spec_.write_queue_size;
    return pending_ - pending_writes_ >= spec_.scheduler_queue;
  }

  void push(const DramRequest& request) override {
    ++pending_;
    const bool separate = spec_.write_queue && request.write;
    pending_writes_ += separate;
    (separate ? writes_ : reads_)[request.bank].requests.push_back(request);
    (separate ? write_banks_ : read_banks_) |= uint64_t{1} << request.bank;
  }

  bool next(std::span<const uint32_t> rows, uint64_t busy, uint32_t& turn, DramRequest& chosen) override {
    if (spec_.write_queue) {
      if (!write_mode_ && pending_writes_ >= spec_.write_high)
        write_mode_ = true;
      else if (write_mode_ && pending_writes_ < spec_.write_low)
        write_mode_ = false;
      // Without pending reads, writes do not wait for the high mark, or they might never be served.
      if (!write_mode_ && pending_ == pending_writes_) write_mode_ = true;
    }
    std::vector<Queue>& queues = write_mode_ ? writes_ : reads_;
    uint64_t& queued = write_mode_ ? write_banks_ : read_banks_;
    const uint64_t candidates = queued & ~busy;
    if (candidates == 0) return false;
    const uint32_t b = first_from(candidates, turn);
    take(queues[b], rows[b], chosen);
    if (queues[b].requests.empty()) queued &= ~(uint64_t{1} << b);
    --pending_;
    if (write_mode_) --pending_writes_;
    turn = (turn + 1) & (spec_.banks - 1);
    return true;
  }

 private:
  static constexpr uint32_t no_row = ~0u;
  struct Queue {
    RingQueue<DramRequest> requests;  ///< oldest first
    uint32_t serving = no_row;        ///< row served until no request needs it
  };

  static void take(Queue& queue, uint32_t current_row, DramRequest& chosen) {
    RingQueue<DramRequest>& requests = queue.requests;
    const auto find_row = [&](size_t from, uint32_t row) {
      while (from < requests.size() && requests[from].row != row) ++from;
      return from;
    };
    size_t found = find_row(0, queue.serving == no_row ? current_row : queue.serving);
    if (found == requests.size()) found = 0;
    chosen = requests[found];
    requests.erase(found);
    queue.serving = find_row(found, chosen.row) == requests.size() ? no_row : chosen.row;
  }

  const DramSpec spec_;
  std::vector<Queue> reads_, writes_;  ///< per bank; without a write queue, all requests are in reads_
  uint64_t read_banks_ = 0, write_banks_ = 0;  ///< banks with requests in reads_, writes_
  uint32_t pending_writes_ = 0;                ///< in the write queue
  bool write_mode_ = false;
};

const Registered<DramSchedulerPolicy> registered_fr_fcfs{
    {{"fr_fcfs", "Row hits first, then the oldest request.", "Rixner et al., ISCA 2000; GPGPU-Sim"},
     make_dram_scheduler<FirstReady>}};

}  // namespace
}  // namespace simt
