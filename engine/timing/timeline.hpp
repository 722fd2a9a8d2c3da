#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "timing/core/sm.hpp"
#include "timing/memory/memory_system.hpp"
#include "timing/memory/request.hpp"

namespace simt {

/// Activity of the whole GPU over time, one entry per interval; the last may be shorter.
struct Timeline {
  Cycle interval = 0;
  std::vector<Cycle> cycle;                                                    ///< end of the interval
  std::vector<uint64_t> warp_instructions, thread_instructions, active_warps;  ///< active_warps: warp-cycles
  std::vector<uint64_t> ctas, ctas_finished, finished_instructions;            ///< see Counter
  std::vector<uint64_t> l1_accesses, l1_hits, l2_accesses, l2_hits;
  // One entry per interval, each with one value per DRAM channel.
  std::vector<std::vector<uint64_t>> dram_reads, dram_writes, dram_bus_cycles, dram_pending_cycles;
};

/// The launch slots in use.
using LaunchSlots = std::vector<uint16_t>;

/// Computes the differences between samples that make up a Timeline.
class TimelineSampler {
 public:
  /// Makes the current state the reference.
  void restart(const std::vector<std::unique_ptr<Sm>>& sms, MemorySystem& memory, const LaunchSlots& slots);
  /// Appends what happened since the last call to `timelines`.
  void sample(Cycle now, const std::vector<std::unique_ptr<Sm>>& sms, MemorySystem& memory,
              const LaunchSlots& slots, const std::vector<Timeline*>& timelines);

 private:
  struct Totals {
    uint64_t warp_instructions = 0, thread_instructions = 0, active_warps = 0, ctas = 0, ctas_finished = 0,
             finished_instructions = 0, l1_accesses = 0, l1_hits = 0, l2_accesses = 0, l2_hits = 0;
    std::vector<uint64_t> dram_reads, dram_writes, dram_bus_cycles, dram_pending_cycles;
  };
  static Totals read(const std::vector<std::unique_ptr<Sm>>& sms, MemorySystem& memory,
                     const LaunchSlots& slots);
  Totals last_;
};

}  // namespace simt
