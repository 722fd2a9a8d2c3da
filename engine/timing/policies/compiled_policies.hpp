#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "timing/base/registry.hpp"

/// Policies that are functions at addresses, as Numba compiles them (simt/policies/python.py). `self` is the
/// policy's own state: a copy of its first state for each scheduler, cache or slice. Functions return
/// `raised` where their code raised an exception.
namespace simt::compiled {

inline constexpr int32_t none = -1, raised = -2;

/// A warp as scheduler functions see it. What is not of ready warps too is as it was when it was last ready.
struct WarpRow {
  uint64_t age = 0;  ///< the order in which warps were launched: smaller is older
  uint64_t pc = 0;   ///< of the next instruction, of ready warps; as all that follows up to `cta`
  uint64_t issued = 0;
  uint8_t unit = 0, operation = 0, space = 0;
  uint8_t ready = 0;         ///< can issue
  uint8_t resident = 0;      ///< there is a warp at this position
  uint8_t waits_memory = 0;  ///< for a value from global or local memory
  uint8_t waits_other = 0;   ///< for a barrier, a fence, copies, the end of its sleep; or has ended
  uint16_t cta = 0, index_in_cta = 0;
};
static_assert(sizeof(WarpRow) == 40);

struct SchedulerFunctions {
  int32_t (*choose)(void* self, const WarpRow* warps, int32_t count, int32_t last, uint64_t cycle) = nullptr;
  // nullptr: not called.
  int32_t (*l1_accessed)(void* self, int32_t warp, uint64_t address, uint64_t pc, int32_t hit, int32_t write,
                         uint64_t cycle) = nullptr;
  int32_t (*l1_evicted)(void* self, int32_t warp, uint64_t line, uint64_t cycle) = nullptr;
  bool facts = true;  ///< it reads what only ready warps have
  /// Begins with two int32_t, which become the numbers of the SM and of the scheduler in it.
  std::vector<uint8_t> state{};
};

struct ReplacementFunctions {
  int32_t (*victim)(void* self, void* lines, const uint8_t* evictable, int32_t ways, int32_t set) = nullptr;
  using Event = int32_t (*)(void* self, void* lines, int32_t ways, int32_t set, int32_t way, uint64_t address,
                            uint64_t pc, int32_t write, uint64_t time);
  Event allocated = nullptr, used = nullptr;  ///< nullptr: not called
  /// Begins with two int32_t, which become the numbers of sets and ways.
  std::vector<uint8_t> state{};
  /// Of each line. Begins with two uint64_t: the times of its last use and of its allocation.
  std::vector<uint8_t> line{};
};

using SliceHashFunction = int32_t (*)(uint64_t address, int32_t slices);

/// Register a policy for the rest of the process. The texts' memory need not last.
void add_scheduler(const std::string& name, const std::string& meaning, const SchedulerFunctions& functions);
void add_replacement(const std::string& name, const std::string& meaning,
                     const ReplacementFunctions& functions);
void add_slice_hash(const std::string& name, const std::string& meaning, SliceHashFunction function);

}  // namespace simt::compiled
