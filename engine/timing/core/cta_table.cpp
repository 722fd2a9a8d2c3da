#include "timing/core/cta_table.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace simt {

void CtaTable::place(const CtaStart& start, bool at_once) {
  const uint32_t warps = start.kernel->warps_per_cta;
  Cta& cta = ctas_[start.cta_slot];
  cta = Cta{start.kernel,
            start.stream,
            start.ordinal,
            start.cycle,
            start.first_warp,
            warps,
            0,
            next_age_,
            at_once ? 0 : warp_start_interval_,
            start.cycle,
            start.thread_base,
            start.concurrent_threads,
            CtaBarriers(warps >= 64 ? ~uint64_t{0} : (uint64_t{1} << warps) - 1),
            {},
            0,
            start.cta_slot % 2 * turn_ % warps};
  next_age_ += warps;
  ++resident_;
  starting_.push_back(start.cta_slot);
  start_warps(start.cycle);
}

bool CtaTable::start_warps(Cycle now) {
  bool any = false;
  for (const uint32_t slot : starting_) {
    Cta& cta = ctas_[slot];
    for (; cta.next_start <= now && cta.warps_started < cta.kernel->warps_per_cta; ++cta.warps_started) {
      const uint32_t i = cta.warps_started;
      warps_.start(cta.slot_of(i), *cta.kernel, *cta.stream, static_cast<uint16_t>(slot),
                   static_cast<uint16_t>(i), cta.first_age + i);
      cta.next_start += cta.start_interval;
      any = true;
    }
  }
  if (any)
    std::erase_if(starting_, [&](uint32_t slot) {
      return ctas_[slot].warps_started == ctas_[slot].kernel->warps_per_cta;
    });
  return any;
}

Cycle CtaTable::next_start() const {
  Cycle next = ~Cycle{0};
  for (const uint32_t slot : starting_) next = std::min(next, ctas_[slot].next_start);
  return next;
}

bool CtaTable::drop(uint32_t slot) {
  Cta& cta = ctas_[slot];
  std::erase(starting_, slot);
  return lose(cta, cta.kernel->warps_per_cta - std::exchange(cta.warps_started, cta.kernel->warps_per_cta));
}

bool CtaTable::retire(uint32_t warp) {
  warps_.retire(warp);
  Cta& cta = ctas_[warps_[warp].cta_slot];
  cta.instructions += warps_[warp].issued;
  return lose(cta, 1);
}

bool CtaTable::lose(Cta& cta, uint32_t warps) {
  cta.warps_left -= warps;
  if (cta.warps_left > 0) return false;
  cta.stream.reset();
  --resident_;
  return true;
}

void CtaTable::arrive(uint32_t warp, uint32_t barrier, bool waits, uint32_t expected, Cycle now) {
  Cta& cta = ctas_[warps_[warp].cta_slot];
  if (waits) warps_.change_masks(warps_.scheduler_of(warp)).barrier |= warps_.bit_of(warp);
  barriers_counted_ = std::max(barriers_counted_, now) + barrier_interval_;
  release(cta, cta.barriers.arrive(barrier, warps_[warp].index_in_cta, waits, expected), now);
}

void CtaTable::release(const Cta& cta, uint64_t warps, Cycle now) {
  const Cycle at = std::max(barriers_counted_, now) + barrier_latency_;
  for (; warps; warps &= warps - 1) {
    const uint32_t w = cta.slot_of(static_cast<uint32_t>(std::countr_zero(warps)));
    if (at == now)
      warps_.change_masks(warps_.scheduler_of(w)).barrier &= ~warps_.bit_of(w);
    else
      releases_.push_back({at, w, warps_.age(w)});
  }
}

bool CtaTable::open_barriers(Cycle now) {
  bool any = false;
  for (; !releases_.empty() && releases_.front().cycle <= now; releases_.pop_front()) {
    const Release& r = releases_.front();
    if (warps_.age(r.warp) != r.age) continue;
    warps_.change_masks(warps_.scheduler_of(r.warp)).barrier &= ~warps_.bit_of(r.warp);
    any = true;
  }
  return any;
}

void CtaTable::bulk_copy_started(uint32_t cta_slot, uint64_t mbarrier) {
  auto& copies = ctas_[cta_slot].bulk_copies;
  for (auto& [address, count] : copies)
    if (address == mbarrier) {
      ++count;
      return;
    }
  copies.emplace_back(mbarrier, 1);
}

bool CtaTable::bulk_copies_pending(uint32_t cta_slot, uint64_t mbarrier) const {
  for (const auto& [address, count] : ctas_[cta_slot].bulk_copies)
    if (count > 0 && (mbarrier == 0 || address == 0 || address == mbarrier)) return true;
  return false;
}

void CtaTable::wait_for_bulk_copies(uint32_t w, uint64_t mbarrier) {
  WarpTable::Warp& warp = warps_[w];
  if (!bulk_copies_pending(warp.cta_slot, mbarrier)) return;
  warp.awaited_mbarrier = mbarrier;
  warp.awaits_bulk_copies = true;
  warps_.change_masks(warps_.scheduler_of(w)).async_copy |= warps_.bit_of(w);
}

void CtaTable::bulk_copy_done(uint32_t cta_slot, uint64_t mbarrier) {
  Cta& cta = ctas_[cta_slot];
  for (auto& [address, count] : cta.bulk_copies)
    if (address == mbarrier && count > 0) --count;
  for (uint32_t i = 0; i < cta.kernel->warps_per_cta; ++i) {
    const uint32_t w = cta.first_warp + i;
    if (warps_[w].dropped) warps_.touch(w);
    if (!warps_[w].awaits_bulk_copies || bulk_copies_pending(cta_slot, warps_[w].awaited_mbarrier)) continue;
    warps_[w].awaits_bulk_copies = false;
    warps_.change_masks(warps_.scheduler_of(w)).async_copy &= ~warps_.bit_of(w);
  }
}

bool CtaTable::wake(uint32_t cta_slot) {
  const Cta& cta = ctas_[cta_slot];
  if (!cta.stream) return false;
  for (uint32_t i = 0; i < cta.kernel->warps_per_cta; ++i) warps_.source_goes_on(cta.first_warp + i);
  return true;
}

}  // namespace simt
