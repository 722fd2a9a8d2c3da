#pragma once
#include <array>
#include <cstdint>

namespace simt {

/// The barriers of one CTA. Masks have one bit per warp of the CTA.
class CtaBarriers {
 public:
  static constexpr uint32_t count = 32;

  explicit CtaBarriers(uint64_t warps = 0) : running_(warps) {}

  /// A warp arrives at a barrier, at which `expected` warps must arrive (0: all running ones). Returns the
  /// waiting warps to release. A warp that has arrived without waiting may arrive once more and counts again.
  uint64_t arrive(uint32_t barrier, uint32_t warp, bool waits, uint32_t expected) {
    One& one = barriers_[barrier % count];
    const uint64_t bit = uint64_t{1} << warp;
    if (!(one.waiting & bit)) ++one.arrivals;
    one.arrived |= bit;
    if (waits) one.waiting |= bit;
    one.expected = expected;
    return release_if_complete(one);
  }

  /// A warp has exited: barriers for all running warps no longer wait for it.
  uint64_t exit(uint32_t warp) {
    running_ &= ~(uint64_t{1} << warp);
    uint64_t released = 0;
    for (One& one : barriers_)
      if (one.arrived) released |= release_if_complete(one);
    return released;
  }

  uint64_t running() const { return running_; }
  uint64_t arrived(uint32_t barrier) const { return barriers_[barrier % count].arrived; }

 private:
  struct One {
    uint64_t arrived = 0, waiting = 0;
    uint32_t arrivals = 0, expected = 0;
  };
  uint64_t release_if_complete(One& one) {
    const bool complete =
        one.expected > 0 ? one.arrivals >= one.expected : (one.arrived & running_) == running_;
    if (!complete) return 0;
    const uint64_t released = one.waiting;
    one = One{};
    return released;
  }

  uint64_t running_;
  std::array<One, count> barriers_{};
};

}  // namespace simt
