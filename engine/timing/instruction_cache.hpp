#pragma once
#include <cstdint>
#include <deque>
#include <vector>

#include "stats/counters.hpp"
#include "timing/load_store_unit.hpp"
#include "timing/memory/line_assembly.hpp"
#include "timing/memory/sectored_cache.hpp"
#include "timing/spec.hpp"

namespace simt {

/// A line that an SM requests from a shared L1 instruction cache.
struct LineFetch {
  Cycle cycle = 0;
  uint64_t line = 0;
  uint16_t slot = 0;
};
/// When it comes.
struct LineArrival {
  Cycle cycle = 0;
  uint64_t line = 0;
  bool hit = false;  ///< the cache had it
};

/// Instruction fetch: an L0 cache with a stream buffer per sub-core (where the specification has one) in
/// front of the SM's L1 instruction cache, whose misses go to the L2, or of one that it shares with other
/// SMs. A perfect cache always hits. The L1 holds lines of constants, too.
class InstructionCache {
 public:
  InstructionCache(const Spec& spec);

  bool perfect() const { return perfect_; }
  /// Asks for the instructions at `address` on behalf of a warp. True: there this cycle. False: wake() will
  /// name the warp when they are.
  bool fetch(uint32_t warp, uint32_t sub_core, uint64_t address, uint16_t slot, Cycle now,
             Counters& counters);
  /// Looks up a line of constants in the L1. What is missing is named in constants() when it has come;
  /// ReservationFail: ask again.
  CacheOutcome fetch_constants(uint64_t address, uint16_t slot, Cycle now, Counters& counters);
  /// Puts the constants at [begin, end) into the L1 without time or traffic.
  void insert_constants(uint64_t begin, uint64_t end);
  /// Lines of constants that have come; the caller empties it.
  std::vector<uint64_t>& constants() { return constants_; }
  uint64_t line_of(uint64_t address) const { return address / line_bytes_ * line_bytes_; }
  /// One cycle: sends misses through the load/store unit's port; appends the warps whose instructions have
  /// arrived.
  bool cycle(Cycle now, LoadStoreUnit& port, std::vector<uint32_t>& woken);
  void fill(uint64_t address, Cycle now);
  /// Lines to ask the shared L1 for; the caller empties it.
  std::vector<LineFetch>& fetches() { return fetches_; }
  /// A line of the shared L1 has come. `counters`: by launch slot.
  void arrive(const LineArrival& arrival, Cycle now, std::vector<Counters>& counters);
  Cycle next_event(Cycle now) const;

 private:
  struct Waiting {
    uint32_t warp, sub_core;
    uint64_t line;
    Cycle ready;  // ~0: waits for the L2 or the shared L1
    uint16_t slot;
    bool refused = false;  // by the L1, which has no room for the miss
  };
  struct L0 {
    std::vector<uint64_t> lines, used;
    std::vector<uint64_t> stream;
    uint64_t clock = 0;
  };
  /// Looks up the L1 and records when the line arrives; a cache that is full is tried again a little later.
  CacheOutcome ask(Waiting& waiting, Cycle now);
  bool l0_hit(uint32_t sub_core, uint64_t line);
  void l0_insert(uint32_t sub_core, uint64_t line);

  bool perfect_, shared_;
  uint32_t line_bytes_;
  uint32_t l1_latency_;
  uint32_t prefetch_lines_;
  SectoredCache l1_;
  std::vector<L0> l0_;
  std::vector<Waiting> waiting_;
  LineAssembly arriving_;
  std::vector<LineFetch> fetches_;
  std::vector<uint64_t> constants_;
};

}  // namespace simt
