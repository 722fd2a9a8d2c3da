#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "timing/base/registry.hpp"
#include "timing/base/spec.hpp"

namespace simt {

/// A transfer between a slice and DRAM: one sector, or the modified sectors of an evicted line.
struct DramRequest {
  uint64_t address = 0;
  uint32_t row = 0;
  uint32_t mshr = 0;  ///< of the slice, that waits for a read
  uint16_t slot = 0;
  uint16_t slice = 0;  ///< within the channel
  uint8_t bank = 0;    ///< at most 64
  uint8_t sectors = 1;
  bool write = false;
};

/// Holds a channel's requests that are not yet in a bank, and chooses among them.
class DramScheduler {
 public:
  virtual ~DramScheduler() = default;
  /// Whether there is no room for another read or write.
  virtual bool full(bool write) const = 0;
  virtual void push(const DramRequest& request) = 0;
  /// Removes the request that a free bank serves next, if any; called at most once per command cycle, while
  /// requests are pending. `rows`: for each bank, the row open now or last. `busy`: bit mask of banks serving
  /// a request. `turn`: the bank whose turn it is, for both requests and commands; the scheduler may advance
  /// it. After false, it is called again when a request has been pushed or a bank has become free.
  virtual bool next(std::span<const uint32_t> rows, uint64_t busy, uint32_t& turn, DramRequest& chosen) = 0;

  uint32_t pending() const { return pending_; }

 protected:
  uint32_t pending_ = 0;  ///< number of requests held
};

/// A scheduler that a specification can choose. Each has a file in timing/memory/dram_schedulers.
struct DramSchedulerPolicy : PolicyText {
  static constexpr const char* kind = "dram_scheduler";

  std::function<std::unique_ptr<DramScheduler>(const DramSpec& spec)> make;
};

template <class Scheduler>
std::unique_ptr<DramScheduler> make_dram_scheduler(const DramSpec& spec) {
  return std::make_unique<Scheduler>(spec);
}

}  // namespace simt
