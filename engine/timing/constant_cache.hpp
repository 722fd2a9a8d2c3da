#pragma once
#include <cstdint>
#include <vector>

#include "stats/counters.hpp"
#include "timing/instruction_cache.hpp"
#include "timing/memory/sectored_cache.hpp"
#include "timing/spec.hpp"

namespace simt {

/// The constant caches of an SM: one for loads of constant memory (LDC), and one of each sub-core for
/// constant operands. What they miss comes from the SM's L1 instruction cache, `miss_latency` later, and what
/// that misses from the L2. Perfect ones are never looked up.
class ConstantCache {
 public:
  struct Load {
    const DecodedInstruction* instruction = nullptr;
    uint16_t warp = 0;
  };

  /// next: the SM's instruction caches.
  ConstantCache(const Spec& spec, InstructionCache& next);

  bool perfect() const { return caches_.empty(); }
  /// Looks up the constant operand of a warp's next instruction. True: it is there. False: cycle() will name
  /// the warp when it is to try again.
  bool read_operand(uint32_t warp, uint32_t sub_core, uint64_t address, uint16_t slot, Cycle now,
                    Counters& counters);
  /// Looks up the different addresses that a load's lanes access, which are taken. True: it is one, and it is
  /// there. False: cycle() will name the load when its last value has come, no sooner than at `earliest`.
  bool load(Load load, std::vector<uint64_t>& addresses, uint16_t slot, Cycle now, Cycle earliest,
            Counters& counters);

  /// Lines that the L1 instruction cache now has (InstructionCache::constants()) set out for here.
  void take_lines(Cycle now);
  /// Appends the warps that are to look up their operands again, and the loads that are done. `counters`: by
  /// launch slot.
  void cycle(Cycle now, std::vector<uint32_t>& warps, std::vector<Load>& loads,
             std::vector<Counters>& counters);
  /// The next cycle in which cycle() has something to do, as far as is known; ~0 for none.
  Cycle next_event() const { return next_event_; }

 private:
  static constexpr Cycle unknown = ~Cycle{0};
  static constexpr Cycle retry = 4;  ///< cycles after which a full cache is tried again
  /// A line on its way to one of the caches.
  struct Coming {
    uint64_t line;
    uint32_t cache;
    uint16_t slot;
    bool asked;  ///< else it will be requested at `at`
    Cycle at;    ///< unknown: when it has come from the L2
  };
  /// A load of which some values are missing.
  struct Waiting {
    Load load{};
    uint16_t slot = 0;
    std::vector<uint64_t> refused;  ///< addresses to be looked up again at `at`
    uint32_t missing = 0;           ///< look-ups that wait for their line
    Cycle at = unknown;             ///< with nothing missing: when it is done
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
  Cycle latency_, miss_latency_;
  InstructionCache& next_;
  std::vector<SectoredCache> caches_;  ///< that of loads, then those of the sub-cores' operands
  std::vector<uint64_t> youngest_;     ///< by cache: the line that was found last, if none came since; or ~0
  std::vector<Coming> coming_;
  std::vector<Waiting> waiting_;
  std::vector<std::pair<Cycle, uint32_t>> refused_;  ///< when warps try again
  Cycle next_event_ = unknown;
};

}  // namespace simt
