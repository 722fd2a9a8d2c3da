#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "timing/base/ring_queue.hpp"
#include "timing/base/spec.hpp"
#include "timing/core/instruction_cache.hpp"
#include "timing/memory/line_assembly.hpp"
#include "timing/memory/sectored_cache.hpp"

namespace simt {

/// An L1 instruction cache that several SMs share, with a port of its own to the interconnect.
///
/// SMs run independently during a window, so their requests are looked up after it, in order of cycle and SM.
/// An answer arrives no earlier than the cache's latency after its request, and no window is longer than
/// that. One line is looked up per cycle.
class SharedInstructionCache {
 public:
  struct Answer {
    uint32_t sm = 0;  ///< relative to the first of its SMs
    LineArrival arrival{};
  };

  SharedInstructionCache(const InstructionCacheSpec& spec, uint16_t port);

  /// Before the SMs run a window: takes the L2's replies. Appends answers to earlier requests.
  void take_replies(std::vector<MemoryReply>& replies, std::vector<Answer>& answers);
  /// After it: takes the SMs' requests (by SM; ascending cycles); appends hits to `answers` and misses to
  /// `requests`.
  void look_up(const std::vector<std::vector<LineFetch>*>& fetches, std::vector<MemoryRequest>& requests,
               std::vector<Answer>& answers);
  /// Puts the instructions at [begin, end) into it without time or traffic.
  void insert_code(uint64_t begin, uint64_t end);

 private:
  struct Waiter {
    uint32_t sm;
    Cycle earliest;
  };
  struct Outstanding {
    std::vector<Waiter> waiters;
    bool arrives = false;  ///< its arrival time is known
    Cycle at = 0;
  };

  uint16_t port_;
  uint32_t line_bytes_;
  Cycle latency_;
  SectoredCache cache_;
  LineAssembly assembly_;
  std::unordered_map<uint64_t, Outstanding> outstanding_;  ///< by line; never iterated over
  RingQueue<uint64_t> arrivals_;                           ///< lines arriving, in order of time
  Cycle free_at_ = 0;
};

}  // namespace simt
