#pragma once
#include <cstdint>
#include <deque>
#include <vector>

#include "stats/counters.hpp"
#include "timing/base/spec.hpp"
#include "timing/core/load_store_unit.hpp"
#include "timing/memory/line_assembly.hpp"
#include "timing/memory/sectored_cache.hpp"

namespace simt {

/// A line that an SM requests from a shared L1 instruction cache.
struct LineFetch {
  Cycle cycle = 0;
  uint64_t line = 0;
  uint16_t slot = 0;
};
/// When a requested line arrives.
struct LineArrival {
  Cycle cycle = 0;
  uint64_t line = 0;
  bool hit = false;  ///< found in the cache
};

/// Instruction fetch: per sub-core, an L0 cache with a stream buffer (if the specification has one), in front
/// of the SM's L1 instruction cache. Its misses go to the L2, or to a cache shared with other SMs. A perfect
/// cache always hits. The L1 also holds lines of constants.
class InstructionCache {
 public:
  InstructionCache(const Spec& spec);

  bool perfect() const { return perfect_; }
  /// Whether cycle() would do nothing, and nothing that it found waits to be taken.
  bool idle() const {
    return waiting_.empty() && l1_.miss_queue_empty() && !l1_.ready() && constants_.empty();
  }
  /// Requests the instructions at `address` for a warp. True: present in this cycle. False: cycle() will
  /// report the warp when they have arrived.
  bool fetch(uint32_t warp, uint32_t sub_core, uint64_t address, uint16_t slot, Cycle now,
             Counters& counters) {
    const uint64_t line = line_of(address);
    if (!l0_.empty()) {
      L0& l0 = l0_[sub_core];
      L0::Line& last = l0.lines[last_hits_[warp]];
      if (last.address == line) {
        last.used = ++l0.clock;
        ++counters[Counter::instruction_cache_hits];
        return true;
      }
    }
    return fetch_line(warp, sub_core, line, slot, now, counters);
  }
  /// Looks up a line of constants in the L1. A missing line is listed in constants() once it has arrived;
  /// ReservationFail: retry.
  CacheOutcome fetch_constants(uint64_t address, uint16_t slot, Cycle now, Counters& counters);
  /// Puts the constants at [begin, end) into the L1 without time or traffic.
  void insert_constants(uint64_t begin, uint64_t end);
  /// Puts the instructions at [begin, end) into its own caches, as if every sub-core had executed them.
  void insert_code(uint64_t begin, uint64_t end);
  /// Lines of constants that have arrived; the caller empties it.
  std::vector<uint64_t>& constants() { return constants_; }
  /// Lines have powers of two of bytes.
  uint64_t line_of(uint64_t address) const { return address & ~uint64_t{line_bytes_ - 1}; }
  /// One cycle: sends misses through the load/store unit's port; appends the warps whose instructions have
  /// arrived.
  bool cycle(Cycle now, LoadStoreUnit& port, std::vector<uint32_t>& woken);
  void fill(uint64_t address, Cycle now);
  /// Lines to request from the shared L1; the caller empties it.
  std::vector<LineFetch>& fetches() { return fetches_; }
  /// A line of the shared L1 has arrived. `counters`: by launch slot.
  void arrive(const LineArrival& arrival, Cycle now, std::vector<Counters>& counters);
  Cycle next_event(Cycle now) const;

 private:
  struct Waiting {
    uint32_t warp, sub_core;
    uint64_t line;
    Cycle ready;  // ~0: waits for the L2 or the shared L1
    uint16_t slot;
    Cycle asked = 0;          // when the prefetches that follow it start
    bool refused = false;     // by the L1, which had no room for the miss
    bool prefetched = false;  // in the stream buffer from `ready` on
  };
  struct L0 {
    struct Line {
      uint64_t address = ~uint64_t{0}, used = 0;
    };
    struct Prefetch {
      uint64_t line;
      Cycle arrives;
    };
    std::vector<Line> lines;
    std::vector<Prefetch> stream;
    uint64_t clock = 0;
  };
  /// Looks up the L1 and records when the line arrives; retries a little later if the cache is full.
  CacheOutcome ask(Waiting& waiting, Cycle now);
  /// As fetch(), of a line that is not where the warp's last hit in the L0 was.
  bool fetch_line(uint32_t warp, uint32_t sub_core, uint64_t line, uint16_t slot, Cycle now,
                  Counters& counters);
  bool l0_hit(uint32_t warp, uint32_t sub_core, uint64_t line);
  void l0_insert(uint32_t sub_core, uint64_t line);
  /// The stream buffer's entry for the line, or nullptr.
  L0::Prefetch* prefetched(uint32_t sub_core, uint64_t line);
  void start_prefetches(const Waiting& miss, Cycle now);
  /// A line that has arrived in the stream buffer moves to the L0, and makes room for others.
  void take_prefetched(uint32_t sub_core, uint64_t line, Cycle now);
  /// When a line that the stream buffer asks for at `asked` arrives, at `earliest` or later.
  Cycle prefetch_arrives(uint64_t line, Cycle asked, Cycle earliest) const;

  bool perfect_, shared_;
  uint32_t line_bytes_;
  uint32_t l1_latency_;
  uint32_t prefetch_lines_;
  uint32_t prefetch_latency_;
  SectoredCache l1_;
  std::vector<L0> l0_;
  std::vector<uint32_t> last_hits_;  // by warp: where in its L0, since the next is often there too
  std::vector<Waiting> waiting_;
  LineAssembly arriving_;
  std::vector<LineFetch> fetches_;
  std::vector<uint64_t> constants_;
};

}  // namespace simt
