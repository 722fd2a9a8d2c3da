#include "timing/timeline.hpp"

namespace simt {

TimelineSampler::Totals TimelineSampler::read(const std::vector<std::unique_ptr<Sm>>& sms,
                                              MemorySystem& memory, const LaunchSlots& slots) {
  Totals totals;
  const auto add_table = [](const Counters::CacheTable& table, uint64_t& accesses, uint64_t& hits) {
    for (const auto& kind : table)
      for (size_t o = 0; o < kind.size(); ++o) {
        if (o == static_cast<size_t>(CacheOutcome::ReservationFail)) continue;
        accesses += kind[o];
        if (o == static_cast<size_t>(CacheOutcome::Hit)) hits += kind[o];
      }
  };
  for (uint16_t slot : slots) {
    for (const auto& sm : sms) {
      const Counters& c = sm->counters(slot);
      totals.warp_instructions += c[Counter::warp_instructions];
      totals.thread_instructions += c[Counter::thread_instructions];
      totals.active_warps += c[Counter::active_warp_cycles];
      totals.ctas += c[Counter::ctas];
      totals.ctas_finished += c[Counter::ctas_finished];
      totals.finished_instructions += c[Counter::finished_instructions];
      add_table(c.l1, totals.l1_accesses, totals.l1_hits);
    }
    const Counters counters = memory.counters(slot);
    add_table(counters.l2, totals.l2_accesses, totals.l2_hits);
  }
  for (const ChannelActivity& channel : memory.channel_activity()) {
    totals.dram_reads.push_back(channel.reads);
    totals.dram_writes.push_back(channel.writes);
    totals.dram_bus_cycles.push_back(channel.bus_cycles);
    totals.dram_pending_cycles.push_back(channel.pending_cycles);
  }
  return totals;
}

void TimelineSampler::restart(const std::vector<std::unique_ptr<Sm>>& sms, MemorySystem& memory,
                              const LaunchSlots& slots) {
  last_ = read(sms, memory, slots);
}

void TimelineSampler::sample(Cycle now, const std::vector<std::unique_ptr<Sm>>& sms, MemorySystem& memory,
                             const LaunchSlots& slots, const std::vector<Timeline*>& timelines) {
  const Totals totals = read(sms, memory, slots);
  const auto differences = [](const std::vector<uint64_t>& a, const std::vector<uint64_t>& b) {
    std::vector<uint64_t> result(a.size());
    for (size_t i = 0; i < a.size(); ++i) result[i] = a[i] - b[i];
    return result;
  };
  for (Timeline* t : timelines) {
    t->cycle.push_back(now);
    t->warp_instructions.push_back(totals.warp_instructions - last_.warp_instructions);
    t->thread_instructions.push_back(totals.thread_instructions - last_.thread_instructions);
    t->active_warps.push_back(totals.active_warps - last_.active_warps);
    t->ctas.push_back(totals.ctas - last_.ctas);
    t->ctas_finished.push_back(totals.ctas_finished - last_.ctas_finished);
    t->finished_instructions.push_back(totals.finished_instructions - last_.finished_instructions);
    t->l1_accesses.push_back(totals.l1_accesses - last_.l1_accesses);
    t->l1_hits.push_back(totals.l1_hits - last_.l1_hits);
    t->l2_accesses.push_back(totals.l2_accesses - last_.l2_accesses);
    t->l2_hits.push_back(totals.l2_hits - last_.l2_hits);
    t->dram_reads.push_back(differences(totals.dram_reads, last_.dram_reads));
    t->dram_writes.push_back(differences(totals.dram_writes, last_.dram_writes));
    t->dram_bus_cycles.push_back(differences(totals.dram_bus_cycles, last_.dram_bus_cycles));
    t->dram_pending_cycles.push_back(differences(totals.dram_pending_cycles, last_.dram_pending_cycles));
  }
  last_ = totals;
}

}  // namespace simt
