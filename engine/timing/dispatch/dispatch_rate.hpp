#pragma once
#include <algorithm>
#include <cstdint>

#include "timing/base/request.hpp"

namespace simt {

/// A limit on how many CTAs start: `rate` per 1,000 cycles in the long run, and `burst` more after a time in
/// which none did. It is the generic cell rate algorithm of ITU-T I.371: each start moves the time at which
/// the next one is due by 1 / rate, and a start may be early by what `burst` starts take.
class DispatchRate {
 public:
  /// rate 0: no limit.
  DispatchRate(uint32_t rate, uint32_t burst)
      : interval_(rate == 0 ? 0 : (1000 * unit + rate - 1) / rate), early_(burst * interval_) {}

  /// The first cycle in which another CTA may start.
  Cycle next() const { return due_ > early_ ? (due_ - early_) / unit : 0; }
  void started(Cycle cycle) { due_ = std::max(due_, cycle * unit) + interval_; }

 private:
  static constexpr uint64_t unit = 1000;  // of times, per cycle
  uint64_t interval_, early_;
  uint64_t due_ = 0;
};

}  // namespace simt
