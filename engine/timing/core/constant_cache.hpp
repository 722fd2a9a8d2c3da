#pragma once
#include <cstdint>
#include <vector>

#include "stats/counters.hpp"
#include "timing/base/spec.hpp"
#include "timing/core/instruction_cache.hpp"
#include "timing/memory/sectored_cache.hpp"

namespace simt {

/// The constant caches of an SM: one for loads of constant memory (LDC), and one per sub-core for constant
/// operands. Misses go to the SM's L1 instruction cache, which takes `miss_latency`, and from there to the
/// L2. Perfect caches are never looked up.
class ConstantCache {
 public:
  struct Load {
    const DecodedInstruction* instruction = nullptr;
    uint16_t warp = 0;
  };

  /// next: the SM's instruction caches.
  ConstantCache(const Spec& spec, InstructionCache& next);

  /// Looks up the constant operand of a warp's next instruction. True: it is present. False: cycle() will
  /// report the warp when it should retry.
  bool read_operand(uint32_t warp, uint32_t sub_core, uint64_t address, uint16_t slot, Cycle now,
                    Counters& counters);
  /// A load takes its turn at the port that the SM's sub-cores share. Returns the cycles until its last
  /// address is looked up.
  Cycle queue(size_t addresses, Cycle now);
  /// Looks up the distinct addresses that a load's lanes access, and consumes them. True: there is only one,
  /// it is present, and `earliest` is near. False: cycle() will report the load when its last value has
  /// arrived, but not before `earliest`.
  bool load(Load load, std::vector<uint64_t>& addresses, uint16_t slot, Cycle now, Cycle earliest,
            Counters& counters);

  /// Lines that have arrived in the L1 instruction cache (InstructionCache::constants()) are sent here.
  void take_lines(Cycle now);
  /// Appends the warps that should look up their operands again, and the loads that are complete. `counters`:
  /// by launch slot.
  void cycle(Cycle now, std::vector<uint32_t>& warps, std::vector<Load>& loads,
             std::vector<Counters>& counters);
  /// The next cycle in which cycle() has something to do, as far as is known; ~0 if none.
  Cycle next_event() const { return next_event_; }

 private:
  static constexpr Cycle unknown = ~Cycle{0};
  static constexpr Cycle retry = 4;  ///< cycles after which a full cache is retried
  /// A line being fetched into one of the caches.
  struct Coming {
    uint64_t line;
    uint32_t cache;
    uint16_t slot;
    bool asked;  ///< requested; otherwise it will be at `at`
    Cycle at;    ///< unknown: not yet arrived from the L2
  };
  /// A load with missing values.
  struct Waiting {
    Load load{};
    uint16_t slot = 0;
    std::vector<uint64_t> refused;  ///< addresses to look up again at `at`
    uint32_t missing = 0;           ///< lookups waiting for their line
    Cycle at = unknown;             ///< with nothing missing: when it completes
    Cycle earliest = 0;
    bool used = false;
  };
  uint64_t line_of(uint64_t address) const { return address / line_bytes_ * line_bytes_; }
  CacheOutcome look_up(uint32_t cache, uint64_t address, uint64_t token, uint16_t slot, Cycle now,
                       Counters& counters);
  void ask(Coming& coming, Cycle now, Counters& counters);
  void look_up_again(Waiting& waiting, Cycle now, Counters& counters);
  void expect(Cycle at) { next_event_ = at < next_event_ ? at : next_event_; }

  uint32_t line_bytes_;
  Cycle latency_, miss_latency_, access_interval_;
  Cycle port_free_ = 0;
  InstructionCache& next_;
  std::vector<SectoredCache> caches_;  ///< that of loads, then one per sub-core for operands
  std::vector<uint64_t> youngest_;     ///< by cache: the last line that hit, unless another has arrived
                                       ///< since; otherwise ~0
  std::vector<Coming> coming_;
  std::vector<Waiting> waiting_;
  std::vector<std::pair<Cycle, uint32_t>> refused_;  ///< when these warps retry
  Cycle next_event_ = unknown;
};

}  // namespace simt
