#include "timing/launch/timeline.hpp"

#include <numeric>

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

/// What happened at each of a launch's instructions since it began.
std::vector<InstructionUse> instructions_of(const std::vector<std::unique_ptr<Sm>>& sms, uint16_t slot) {
  std::vector<InstructionUse> total(sms.front()->activity(slot).executions.size());
  for (uint32_t i = 0; i < total.size(); ++i) total[i].instruction = i;
  for (const auto& sm : sms) {
    if (sm->counters(slot)[Counter::ctas] == 0) continue;
    const LaunchActivity& activity = sm->activity(slot);
    for (size_t i = 0; i < total.size(); ++i) {
      total[i].issued += static_cast<uint32_t>(activity.executions[i].warps);
      const auto& states = activity.samples[i];
      static_assert(static_cast<size_t>(StallReason::Selected) == 0);
      total[i].waiting += std::accumulate(states.begin() + 1, states.end(), uint32_t{0});
    }
  }
  return total;
}

/// The sum of two lists of rows in ascending order.
template <class Row>
std::vector<Row> sum_of(const std::vector<Row>& left, const std::vector<Row>& right) {
  std::vector<Row> sum;
  sum.reserve(left.size() + right.size());
  auto a = left.begin();
  auto b = right.begin();
  while (a != left.end() && b != right.end()) {
    if (a->before(*b)) {
      sum.push_back(*a++);
    } else if (b->before(*a)) {
      sum.push_back(*b++);
    } else {
      sum.push_back(*a++);
      sum.back().add(*b++);
    }
  }
  sum.insert(sum.end(), a, left.end());
  sum.insert(sum.end(), b, right.end());
  return sum;
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
  into.banks = sum_of(into.banks, later.banks);
  into.instructions = sum_of(into.instructions, later.instructions);
}

void Timeline::add(const Interval& latest) {
  if (!intervals_.empty() && !complete(intervals_.back())) {
    rows_ -= intervals_.back().rows();
    merge(intervals_.back(), latest);
  } else {
    intervals_.push_back(latest);
  }
  rows_ += intervals_.back().rows();
  while (intervals_.size() > most_intervals || rows_ > most_rows) double_interval();
}

void Timeline::double_interval() {
  interval_ *= 2;
  std::vector<Interval> merged;
  rows_ = 0;
  for (Interval& next : intervals_) {
    if (merged.empty() || complete(merged.back()))
      merged.push_back(std::move(next));
    else
      merge(merged.back(), next);
  }
  intervals_ = std::move(merged);
  for (const Interval& each : intervals_) rows_ += each.rows();
}

void TimelineSampler::restart(Cycle now, const std::vector<std::unique_ptr<Sm>>& sms,
                              const MemorySystem& memory, const LaunchSlots& slots) {
  last_cycle_ = now;
  last_ = activity_of(sms, memory, slots);
  last_banks_ = memory.bank_activity();
  last_instructions_.clear();
  for (uint16_t slot : slots) last_instructions_[slot] = instructions_of(sms, slot);
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
  for (size_t i = 0; i < slots.size(); ++i) {
    const std::vector<InstructionUse> now_there = instructions_of(sms, slots[i]);
    std::vector<InstructionUse>& before_there = last_instructions_[slots[i]];
    before_there.resize(now_there.size());  // none for a launch that has begun since
    latest.instructions.clear();
    for (size_t p = 0; p < now_there.size(); ++p) {
      const uint32_t issued = now_there[p].issued - before_there[p].issued;
      const uint32_t waiting = now_there[p].waiting - before_there[p].waiting;
      if (issued > 0 || waiting > 0)
        latest.instructions.push_back({now_there[p].instruction, issued, waiting});
    }
    before_there = now_there;
    timelines[i]->add(latest);
  }
}

}  // namespace simt
