#include "timing/timeline.hpp"

namespace simt {
namespace {

template <class Combine>
void combine(GpuActivity& a, const GpuActivity& b, Combine&& each) {
  const auto all = [&](auto& to, const auto& from) {
    for (size_t i = 0; i < to.size(); ++i) each(to[i], from[i]);
  };
  all(a.counts, b.counts);
  all(a.stalls, b.stalls);
  all(a.warp_states, b.warp_states);
  for (size_t c = 0; c < a.channels.size(); ++c) {
    each(a.channels[c].reads, b.channels[c].reads);
    each(a.channels[c].writes, b.channels[c].writes);
    each(a.channels[c].bus_cycles, b.channels[c].bus_cycles);
    each(a.channels[c].pending_cycles, b.channels[c].pending_cycles);
  }
}

/// Adds the lookups of a cache, and how many of them hit.
void add_lookups(const Counters::CacheTable& table, uint64_t& lookups, uint64_t& hits) {
  for (const auto& kind : table)
    for (size_t o = 0; o < kind.size(); ++o) {
      if (o == static_cast<size_t>(CacheOutcome::ReservationFail)) continue;
      lookups += kind[o];
      if (o == static_cast<size_t>(CacheOutcome::Hit)) hits += kind[o];
    }
}

/// What the launches did since they began; DRAM's activity since the start.
GpuActivity activity_of(const std::vector<std::unique_ptr<Sm>>& sms, const MemorySystem& memory,
                        const LaunchSlots& slots) {
  GpuActivity total;
  for (uint16_t slot : slots) {
    for (const auto& sm : sms) {
      const Counters& c = sm->counters(slot);
      total[TimelineCount::warp_instructions] += c[Counter::warp_instructions];
      total[TimelineCount::thread_instructions] += c[Counter::thread_instructions];
      total[TimelineCount::active_warps] += c[Counter::active_warp_cycles];
      total[TimelineCount::ctas] += c[Counter::ctas];
      total[TimelineCount::ctas_finished] += c[Counter::ctas_finished];
      total[TimelineCount::finished_instructions] += c[Counter::finished_instructions];
      add_lookups(c.l1, total[TimelineCount::l1_accesses], total[TimelineCount::l1_hits]);
      const LaunchActivity& activity = sm->activity(slot);
      for (size_t r = 0; r < LaunchActivity::reasons; ++r) {
        total.warp_states[r] += activity.warp_states[r];
        for (const auto& scheduler : activity.scheduler_cycles) total.stalls[r] += scheduler[r];
      }
    }
    add_lookups(memory.counters(slot).l2, total[TimelineCount::l2_accesses], total[TimelineCount::l2_hits]);
  }
  total.channels = memory.channel_activity();
  return total;
}

}  // namespace

GpuActivity& GpuActivity::operator+=(const GpuActivity& other) {
  combine(*this, other, [](uint64_t& a, uint64_t b) { a += b; });
  return *this;
}

GpuActivity& GpuActivity::operator-=(const GpuActivity& other) {
  combine(*this, other, [](uint64_t& a, uint64_t b) { a -= b; });
  return *this;
}

void Timeline::merge(Interval& into, const Interval& later) {
  into.end = later.end;
  into.activity += later.activity;
  std::vector<BankUse> banks;
  banks.reserve(into.banks.size() + later.banks.size());
  auto a = into.banks.begin();
  auto b = later.banks.begin();
  while (a != into.banks.end() || b != later.banks.end()) {
    if (b == later.banks.end() || (a != into.banks.end() && a->before(*b))) {
      banks.push_back(*a++);
    } else if (a == into.banks.end() || b->before(*a)) {
      banks.push_back(*b++);
    } else {
      banks.push_back(
          {a->channel, a->bank, a->bus_cycles + b->bus_cycles, a->pending_cycles + b->pending_cycles});
      ++a, ++b;
    }
  }
  into.banks = std::move(banks);
}

void Timeline::add(const Interval& latest) {
  if (!intervals_.empty() && !complete(intervals_.back())) {
    bank_uses_ -= intervals_.back().banks.size();
    merge(intervals_.back(), latest);
  } else {
    intervals_.push_back(latest);
  }
  bank_uses_ += intervals_.back().banks.size();
  while (intervals_.size() > most_intervals || bank_uses_ > most_bank_uses) double_interval();
}

void Timeline::double_interval() {
  interval_ *= 2;
  std::vector<Interval> merged;
  bank_uses_ = 0;
  for (Interval& next : intervals_) {
    if (merged.empty() || complete(merged.back()))
      merged.push_back(std::move(next));
    else
      merge(merged.back(), next);
  }
  intervals_ = std::move(merged);
  for (const Interval& each : intervals_) bank_uses_ += each.banks.size();
}

void TimelineSampler::restart(Cycle now, const std::vector<std::unique_ptr<Sm>>& sms,
                              const MemorySystem& memory, const LaunchSlots& slots) {
  last_cycle_ = now;
  last_ = activity_of(sms, memory, slots);
  last_banks_ = memory.bank_activity();
}

void TimelineSampler::sample(Cycle now, const std::vector<std::unique_ptr<Sm>>& sms,
                             const MemorySystem& memory, const LaunchSlots& slots,
                             const std::vector<Timeline*>& timelines) {
  if (std::exchange(last_cycle_, now) == now) return;  // nothing can have happened
  const GpuActivity before = std::exchange(last_, activity_of(sms, memory, slots));
  const std::vector<BankActivity> banks = std::exchange(last_banks_, memory.bank_activity());
  Timeline::Interval latest{now, last_, {}};
  latest.activity -= before;
  const size_t width = banks.size() / last_.channels.size();
  for (size_t b = 0; b < banks.size(); ++b) {
    const uint64_t bus = last_banks_[b].bus_cycles - banks[b].bus_cycles;
    const uint64_t pending = last_banks_[b].pending_cycles - banks[b].pending_cycles;
    if (bus > 0 || pending > 0)
      latest.banks.push_back({static_cast<uint16_t>(b / width), static_cast<uint16_t>(b % width),
                              static_cast<uint32_t>(bus), static_cast<uint32_t>(pending)});
  }
  for (Timeline* timeline : timelines) timeline->add(latest);
}

}  // namespace simt
