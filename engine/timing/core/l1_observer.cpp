#include "timing/core/l1_observer.hpp"

#include <bit>

namespace simt {

void L1Observer::accessed(const CacheAccess& access, CacheOutcome outcome) {
  if (schedulers_.empty()) return;
  const InFlight& instruction = pool_[current_];
  const uint32_t w = instruction.warp;
  const auto position = static_cast<uint32_t>(std::countr_zero(warps_.bit_of(w)));
  const bool hit = outcome == CacheOutcome::Hit || outcome == CacheOutcome::HitReserved;
  schedulers_[warps_.scheduler_of(w)]->l1_accessed(
      position, {access.address, instruction.instruction->fixed.pc, access.time, hit, access.write});
}

CacheObserver::Requester L1Observer::requester(uint64_t token, bool write) const {
  // The token of a store is for its acknowledgement.
  const InFlight& instruction = pool_[write ? current_ : static_cast<uint32_t>(token)];
  return {instruction.instruction->fixed.pc, instruction.warp};
}

void L1Observer::replaced(uint32_t line, bool had_tag, uint64_t tag, const CacheAccess& access) {
  if (schedulers_.empty()) return;
  if (line >= owners_.size()) owners_.resize(line + 1);
  Owner& owner = owners_[line];
  const bool resident = warps_[owner.warp].resident && warps_.age(owner.warp) == owner.age;
  if (had_tag && resident)
    schedulers_[warps_.scheduler_of(owner.warp)]->l1_evicted(
        static_cast<uint32_t>(std::countr_zero(warps_.bit_of(owner.warp))), tag, access.time);
  owner = {};
  if (access.token == CacheAccess::nobody) return;
  owner.warp = requester(access.token, access.write).warp;
  owner.age = warps_.age(owner.warp);
}

}  // namespace simt
