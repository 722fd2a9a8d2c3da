#include "timing/warp_scheduler.hpp"

#include <bit>

namespace simt {

int32_t WarpScheduler::after_last(uint64_t candidates) const {
  const uint64_t later = last_ >= 63 ? 0 : candidates & (~uint64_t{0} << (last_ + 1));
  const uint64_t from = later ? later : candidates;
  return from ? std::countr_zero(from) : -1;
}

int32_t WarpScheduler::oldest(const WarpTable& warps, uint64_t candidates) const {
  int32_t best = -1;
  for (; candidates; candidates &= candidates - 1) {
    const int32_t p = std::countr_zero(candidates);
    if (best < 0 || age(warps, static_cast<uint32_t>(p)) < age(warps, static_cast<uint32_t>(best))) best = p;
  }
  return best;
}

}  // namespace simt
