#include "timing/dispatch/cta_dispatcher.hpp"

#include <algorithm>
#include <bit>
#include <functional>

namespace simt {
namespace {

/// The lowest `count` bits.
uint64_t bits(uint32_t count) {
  return count >= 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
}

}  // namespace

CtaDispatcher::CtaDispatcher(const Spec& spec, uint16_t launch_slots)
    : latency_(spec.launch.dispatch_latency),
      from_first_sm_(spec.launch.from_first_sm),
      peak_rate_(spec.launch.peak_dispatch_rate, 0),
      rate_(spec.launch.dispatch_rate, spec.launch.dispatch_burst),
      grids_(launch_slots),
      sms_(spec.sm.count),
      last_sm_(spec.sm.count - 1) {
  for (SmResources& sm : sms_) {
    sm.free_warps = bits(spec.sm.max_warps);
    sm.free_ctas = bits(spec.sm.max_ctas);
    sm.shared_left = spec.shared_memory.bytes;
    sm.registers_left = spec.sm.register_file.registers;
    sm.held.resize(spec.sm.max_ctas);
  }
}

void CtaDispatcher::begin(uint16_t launch_slot, const Grid& grid) {
  grids_[launch_slot] = {grid, 0, std::vector<uint32_t>(sms_.size())};
  slots_.insert(std::lower_bound(slots_.begin(), slots_.end(), launch_slot), launch_slot);
  leftover_ = true;
}

void CtaDispatcher::end(uint16_t launch_slot) {
  grids_[launch_slot] = {};
  std::erase(slots_, launch_slot);
  for (const Freed& freed : freed_) {
    Held& held = sms_[freed.sm].held[freed.cta_slot];
    if (held.launch_slot == launch_slot) held.launch_slot = ended;
  }
}

Cycle CtaDispatcher::next_event() const {
  return next_possible(decided_until_);
}

/// The first cycle, possibly before `cycle`, in which a place becomes free or a launch begins.
Cycle CtaDispatcher::next_possible(Cycle cycle) const {
  Cycle next = freed_.empty() ? ~Cycle{0} : freed_.front().cycle;
  if (held_back_) next = std::min(next, next_start());
  for (const uint16_t slot : slots_) {
    const Progress& p = grids_[slot];
    if (p.has_ctas() && p.grid.first_dispatch >= cycle) next = std::min(next, p.grid.first_dispatch);
  }
  return next;
}

/// Reclaims what is free from `cycle` on. False if no launch has a CTA to dispatch.
bool CtaDispatcher::begin_cycle(Cycle cycle) {
  while (!freed_.empty() && freed_.front().cycle <= cycle) {
    std::pop_heap(freed_.begin(), freed_.end(), std::greater<>{});
    take_back(freed_.back());
    freed_.pop_back();
  }
  dispatchable_.clear();
  const auto first = std::lower_bound(slots_.begin(), slots_.end(), last_slot_) - slots_.begin();
  for (size_t i = 0; i < slots_.size(); ++i) {
    const uint16_t slot = slots_[(static_cast<size_t>(first) + i) % slots_.size()];
    if (!grids_[slot].has_ctas() || grids_[slot].grid.first_dispatch > cycle) continue;
    dispatchable_.push_back(slot);
    if (from_first_sm_ && grids_[slot].next == 0) last_sm_ = static_cast<uint32_t>(sms_.size()) - 1;
  }
  return !dispatchable_.empty();
}

void CtaDispatcher::take_back(const Freed& freed) {
  SmResources& sm = sms_[freed.sm];
  const Held& held = sm.held[freed.cta_slot];
  sm.free_ctas |= uint64_t{1} << freed.cta_slot;
  sm.free_warps |= bits(held.warps) << held.first_warp;
  sm.shared_left += held.shared_bytes;
  sm.registers_left += held.registers;
  if (held.launch_slot != ended) --grids_[held.launch_slot].on_sm[freed.sm];
}

/// CTA slot and first warp slot.
std::optional<std::pair<uint32_t, uint32_t>> CtaDispatcher::find_place(const SmResources& sm,
                                                                       const Grid& grid) const {
  if (sm.free_ctas == 0) return std::nullopt;
  if (!grid.overcommits && (sm.shared_left < grid.shared_bytes || sm.registers_left < grid.registers))
    return std::nullopt;
  // Lowest run of free warp slots that is long enough: bit i of `runs` means that a run starts at i.
  uint64_t runs = sm.free_warps;
  for (uint32_t have = 1; have < grid.warps && runs;) {
    const uint32_t add = std::min(have, grid.warps - have);
    runs &= runs >> add;
    have += add;
  }
  if (runs == 0) return std::nullopt;
  return std::pair{static_cast<uint32_t>(std::countr_zero(sm.free_ctas)),
                   static_cast<uint32_t>(std::countr_zero(runs))};
}

/// The CTA that the SM gets in this cycle; it now occupies its place.
std::optional<CtaDispatcher::Placement> CtaDispatcher::place_on(uint16_t sm, Cycle cycle) {
  SmResources& resources = sms_[sm];
  if (resources.free_ctas == 0 || resources.free_warps == 0) return std::nullopt;
  for (const uint16_t slot : dispatchable_) {
    Progress& launch = grids_[slot];
    const Grid& grid = launch.grid;
    if (!launch.has_ctas() || launch.on_sm[sm] >= grid.ctas_per_sm) continue;
    const auto place = find_place(resources, grid);
    if (!place) continue;
    const auto [cta_slot, first_warp] = *place;
    const Held held{slot, first_warp, grid.warps, std::min(resources.shared_left, grid.shared_bytes),
                    std::min(resources.registers_left, grid.registers)};
    resources.free_ctas &= ~(uint64_t{1} << cta_slot);
    resources.free_warps &= ~(bits(held.warps) << first_warp);
    resources.shared_left -= held.shared_bytes;
    resources.registers_left -= held.registers;
    resources.held[cta_slot] = held;
    ++launch.on_sm[sm];
    last_slot_ = slot;
    return Placement{slot, sm, cta_slot, first_warp, launch.next++, cycle};
  }
  return std::nullopt;
}

void CtaDispatcher::release(uint16_t sm, uint32_t cta_slot, Cycle cycle) {
  freed_.push_back({cycle + latency_, sm, cta_slot});
  std::push_heap(freed_.begin(), freed_.end(), std::greater<>{});
}

void CtaDispatcher::release_no_later(uint16_t launch_slot, const std::vector<Cycle>& ends) {
  for (Freed& freed : freed_)
    if (sms_[freed.sm].held[freed.cta_slot].launch_slot == launch_slot)
      freed.cycle = std::min(freed.cycle, ends[freed.sm] + latency_);
  std::make_heap(freed_.begin(), freed_.end(), std::greater<>{});
}

}  // namespace simt
