#pragma once
#include <algorithm>
#include <cstdint>

#include "timing/base/request.hpp"
#include "timing/base/spec.hpp"

namespace simt {

/// Assigns SMs and slices to the parts of a partitioned L2. Each part caches what its SMs read: a slice has a
/// partner in each other part, which keeps copies of its lines. SMs that share an instruction cache are in
/// one part, the next ones in the next: CTAs that follow each other are placed in different GPCs.
class L2Partitions {
 public:
  explicit L2Partitions(const Spec& spec)
      : count_(std::max(1u, spec.l2.partitions)),
        slices_each_(spec.address_map.channels * spec.address_map.slices_per_channel / count_),
        sms_(spec.sm.count),
        sms_of_a_cache_(spec.sm.front_end.instruction_cache.l1_shared_by),
        far_(spec.l2.far_latency > in_slices + 2 ? spec.l2.far_latency - in_slices : 2) {}

  uint32_t count() const { return count_; }
  uint32_t of_slice(uint32_t slice) const { return slice / slices_each_; }
  /// Partition of an SM, or of a shared instruction cache, which is located with the first of its SMs.
  uint32_t of_port(uint32_t port) const {
    const uint32_t sm = port < sms_ ? port : (port - sms_) * sms_of_a_cache_;
    return sm / sms_of_a_cache_ % count_;
  }
  /// The slice that receives a request whose address lives in slice `home`: reads go to the SM's own part.
  /// Writes and atomics are performed at home.
  uint32_t slice_for(const MemoryRequest& request, uint32_t home) const {
    if (count_ == 1 || request.write || request.kind == AccessKind::Atomic) return home;
    return partner(home, of_port(request.sm));
  }
  /// A slice's partner in a partition; the slice itself in its own.
  uint32_t partner(uint32_t slice, uint32_t partition) const {
    return slice % slices_each_ + partition * slices_each_;
  }
  /// L2 cycles from one part to another, and back. A load that misses in the near part and hits in the far
  /// one takes `l2.far_latency` longer than one that hits near.
  uint64_t there() const { return far_ / 2; }
  uint64_t back() const { return far_ - far_ / 2; }

 private:
  static constexpr uint32_t in_slices = 2;  // cycles a far load spends in the queues of both slices
  uint32_t count_, slices_each_, sms_, sms_of_a_cache_;
  uint64_t far_;
};

}  // namespace simt
