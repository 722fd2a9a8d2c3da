#include "timing/warp_scheduler.hpp"

#include <algorithm>
#include <bit>

namespace simt {

void WarpScheduler::begin_cycle(const WarpTable& warps) {
  if (spec_.policy != SchedulerPolicy::TwoLevel) return;
  const WarpTable::SchedulerMasks& m = warps.masks(scheduler_);
  const uint64_t long_wait = m.waiting() | m.blocked_long | ~m.resident;
  std::erase_if(pending_, [&](uint32_t p) { return !(m.resident >> p & 1); });
  uint64_t known = active_;
  for (uint32_t p : pending_) known |= uint64_t{1} << p;
  for (uint64_t fresh = m.resident & ~known; fresh; fresh &= fresh - 1)
    pending_.push_back(static_cast<uint32_t>(std::countr_zero(fresh)));
  for (uint64_t out = active_ & long_wait; out; out &= out - 1) {
    const auto p = static_cast<uint32_t>(std::countr_zero(out));
    active_ &= ~(uint64_t{1} << p);
    if (m.resident >> p & 1) pending_.push_back(p);
  }
  for (auto it = pending_.begin(); it != pending_.end();) {
    if (static_cast<uint32_t>(std::popcount(active_)) >= std::max(1u, spec_.active_warps)) break;
    if (long_wait >> *it & 1) {
      ++it;
      continue;
    }
    active_ |= uint64_t{1} << *it;
    it = pending_.erase(it);
  }
}

int32_t WarpScheduler::after_last(uint64_t candidates) const {
  const uint64_t later = last_ >= 63 ? 0 : candidates & (~uint64_t{0} << (last_ + 1));
  const uint64_t from = later ? later : candidates;
  return from ? std::countr_zero(from) : -1;
}

int32_t WarpScheduler::oldest(const WarpTable& warps, uint64_t candidates) const {
  int32_t best = -1;
  for (; candidates; candidates &= candidates - 1) {
    const int32_t p = std::countr_zero(candidates);
    if (best < 0 || warps[warps.slot_at(scheduler_, static_cast<uint32_t>(p))].age <
                        warps[warps.slot_at(scheduler_, static_cast<uint32_t>(best))].age)
      best = p;
  }
  return best;
}

int32_t WarpScheduler::youngest(const WarpTable& warps, uint64_t candidates) const {
  int32_t best = -1;
  for (; candidates; candidates &= candidates - 1) {
    const int32_t p = std::countr_zero(candidates);
    if (best < 0 || warps[warps.slot_at(scheduler_, static_cast<uint32_t>(p))].age >
                        warps[warps.slot_at(scheduler_, static_cast<uint32_t>(best))].age)
      best = p;
  }
  return best;
}

int32_t WarpScheduler::choose(const WarpTable& warps, uint64_t candidates, uint64_t cycle) {
  const bool last_ready = last_ < 64 && (candidates >> last_ & 1);
  switch (spec_.policy) {
    case SchedulerPolicy::Lrr:
      return after_last(candidates);
    case SchedulerPolicy::Gto:
      return last_ready ? static_cast<int32_t>(last_) : oldest(warps, candidates);
    case SchedulerPolicy::Cggty:
      return last_ready ? static_cast<int32_t>(last_) : youngest(warps, candidates);
    case SchedulerPolicy::Oldest:
      return oldest(warps, candidates);
    case SchedulerPolicy::TwoLevel:
      return after_last(candidates & active_);
    case SchedulerPolicy::Custom:
      break;
  }
  ready_flags_.resize(positions_);
  ages_.resize(positions_);
  for (uint32_t p = 0; p < positions_; ++p) {
    ready_flags_[p] = static_cast<uint8_t>(candidates >> p & 1);
    ages_[p] = warps[warps.slot_at(scheduler_, p)].age;
  }
  const int32_t chosen = custom_(ready_flags_.data(), ages_.data(), static_cast<int32_t>(positions_),
                                 static_cast<int32_t>(last_), cycle);
  const bool valid = chosen >= 0 && chosen < static_cast<int32_t>(positions_) && (candidates >> chosen & 1);
  return valid ? chosen : -1;
}

}  // namespace simt
