#include "timing/launch/observation.hpp"

#include <algorithm>
#include <limits>

namespace simt {
namespace {

std::vector<uint64_t> flat(const LaunchActivity& activity) {
  std::vector<uint64_t> values(activity.counters.values.begin(), activity.counters.values.end());
  for (const Counters::CacheTable* table : {&activity.counters.l1, &activity.counters.l2})
    for (const auto& kind : *table) values.insert(values.end(), kind.begin(), kind.end());
  std::array<uint64_t, LaunchActivity::reasons> cycles{};
  for (const auto& scheduler : activity.scheduler_cycles)
    for (size_t r = 0; r < cycles.size(); ++r) cycles[r] += scheduler[r];
  values.insert(values.end(), cycles.begin(), cycles.end());
  values.insert(values.end(), activity.warp_states.begin(), activity.warp_states.end());
  return values;
}

/// Merges what the SMs recorded into one list, by end, SM, and order within the SM; cycles since `origin`.
template <class Event>
std::vector<Event> gather(const std::vector<std::unique_ptr<Sm>>& sms, uint16_t slot,
                          std::vector<Event> WarpObserver::Observed::* member, Cycle origin) {
  std::vector<Event> all;
  for (const auto& sm : sms) {
    std::vector<Event>& own = sm->observed(slot).*member;
    all.insert(all.end(), own.begin(), own.end());
    own.clear();
  }
  std::stable_sort(all.begin(), all.end(), [](const Event& a, const Event& b) { return a.end < b.end; });
  for (Event& event : all) {
    event.begin -= origin;
    event.end -= origin;
  }
  return all;
}

std::vector<double> mean_latencies(const std::vector<std::unique_ptr<Sm>>& sms, uint16_t slot, size_t count,
                                   Cycle now) {
  std::vector<WarpTable::Latency> total(count);
  for (const auto& sm : sms) {
    const std::vector<WarpTable::Latency>& own = sm->latencies(slot);
    for (size_t i = 0; i < own.size(); ++i) {
      total[i].cycles += own[i].cycles;
      total[i].issued += own[i].issued;
      total[i].ended += own[i].ended;
    }
  }
  std::vector<double> means(count, std::numeric_limits<double>::quiet_NaN());
  for (size_t i = 0; i < count; ++i) {
    const WarpTable::Latency& l = total[i];
    if (l.issued == 0 || l.ended > l.issued) continue;
    const int64_t under_way = static_cast<int64_t>(l.issued - l.ended) * static_cast<int64_t>(now);
    means[i] = static_cast<double>(l.cycles + under_way) / static_cast<double>(l.issued);
  }
  return means;
}

}  // namespace

Observation observation_of(const DecodedKernel& kernel, const std::vector<std::unique_ptr<Sm>>& sms,
                           const MemorySystem& memory, Cycle origin, Cycle now) {
  const uint16_t slot = kernel.slot;
  Observation observation;
  LaunchActivity total;
  for (const auto& sm : sms) {
    const Counters& counted = sm->counters(slot);
    total.counters += counted;
    total.add_cycles(sm->activity(slot));
    observation.sm_instructions.push_back(counted[Counter::warp_instructions]);
    observation.sm_warp_cycles.push_back(counted[Counter::active_warp_cycles]);
  }
  total.counters += memory.counters(slot);
  observation.counters = flat(total);
  observation.l2_free_lines = memory.free_l2_lines();
  if (kernel.observes_warps) observation.warps = gather(sms, slot, &WarpObserver::Observed::warps, origin);
  if (kernel.observed_blocks) {
    observation.blocks = gather(sms, slot, &WarpObserver::Observed::blocks, origin);
    observation.latencies = mean_latencies(sms, slot, kernel.instructions.size(), now);
  }
  return observation;
}

}  // namespace simt
