#pragma once
#include <cstdint>
#include <deque>

#include "isa/tensor_memory_work.hpp"
#include "timing/base/request.hpp"
#include "timing/base/spec.hpp"

namespace simt {

/// An SM's products into tensor memory, and copies there: begun one after the other, in the order of issue.
/// A product occupies the tensor cores until its columns are done and its operands have come from shared
/// memory, and completes some latency later.
class TensorQueue {
 public:
  explicit TensorQueue(const Spec& spec) : spec_(spec) {}

  /// Without columns and bytes, as in traces of real GPUs: of 256 columns, A from shared memory.
  void product(TensorMemoryWork product, Cycle now);
  void copy(const TensorMemoryWork& copy, Cycle now) { take(copy, 0, now); }
  /// Everything taken so far is followed by an arrival at the mbarrier.
  void commit(uint32_t cta_slot, uint64_t mbarrier, Cycle now);

  struct Done {
    Cycle cycle = 0;
    uint32_t cta_slot = 0;
    uint64_t mbarrier = 0;
  };
  /// Calls f(done) for the commits that are due.
  template <class F>
  bool finish(Cycle now, F f) {
    bool any = false;
    for (; !commits_.empty() && commits_.front().cycle <= now; commits_.pop_front(), any = true)
      f(commits_.front());
    return any;
  }
  Cycle next_event() const { return commits_.empty() ? ~Cycle{0} : commits_.front().cycle; }

 private:
  void take(const TensorMemoryWork& product, uint32_t latency, Cycle now);
  Cycle fetched(const TensorMemoryWork& product, uint32_t bytes) const;

  const Spec& spec_;
  Cycle free_at_ = 0;         ///< the tensor cores
  Cycle done_ = 0;            ///< the last of what was taken
  std::deque<Done> commits_;  ///< in ascending order
};

}  // namespace simt
