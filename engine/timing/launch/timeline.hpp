#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "timing/base/request.hpp"
#include "timing/core/sm.hpp"
#include "timing/memory/memory_system.hpp"

namespace simt {

// What a timeline counts per interval, besides states of warps and DRAM. SIMT_TIMELINE_COUNT(name).
#define SIMT_TIMELINE_COUNTS(SIMT_TIMELINE_COUNT)     \
  SIMT_TIMELINE_COUNT(warp_instructions)              \
  SIMT_TIMELINE_COUNT(thread_instructions)            \
  SIMT_TIMELINE_COUNT(active_warps) /* warp-cycles */ \
  SIMT_TIMELINE_COUNT(ctas)                           \
  SIMT_TIMELINE_COUNT(ctas_finished)                  \
  SIMT_TIMELINE_COUNT(finished_instructions)          \
  SIMT_TIMELINE_COUNT(l1_accesses)                    \
  SIMT_TIMELINE_COUNT(l1_hits)                        \
  SIMT_TIMELINE_COUNT(l2_accesses)                    \
  SIMT_TIMELINE_COUNT(l2_hits)

enum class TimelineCount : uint8_t {
#define SIMT_TIMELINE_COUNT(name) name,
  SIMT_TIMELINE_COUNTS(SIMT_TIMELINE_COUNT)
#undef SIMT_TIMELINE_COUNT
      Count
};

/// Activity of the whole GPU in an interval, or since the start.
struct GpuActivity {
  std::array<uint64_t, static_cast<size_t>(TimelineCount::Count)> counts{};
  std::array<uint64_t, LaunchActivity::reasons> stalls{};       ///< scheduler cycles by outcome
  std::array<uint64_t, LaunchActivity::reasons> warp_states{};  ///< warp-cycles by state
  std::vector<ChannelActivity> channels;

  uint64_t& operator[](TimelineCount c) { return counts[static_cast<size_t>(c)]; }
  GpuActivity& operator+=(const GpuActivity& other);
  GpuActivity& operator-=(const GpuActivity& other);
};

/// A DRAM bank that was in use during an interval.
struct BankUse {
  uint16_t channel = 0, bank = 0;
  uint32_t bus_cycles = 0, pending_cycles = 0;
  bool before(const BankUse& other) const {
    return std::pair{channel, bank} < std::pair{other.channel, other.bank};
  }
  void add(const BankUse& other) {
    bus_cycles += other.bus_cycles;
    pending_cycles += other.pending_cycles;
  }
};

/// A static instruction at which a launch's warps were during an interval.
struct InstructionUse {
  uint32_t instruction = 0;
  uint32_t issued = 0;   ///< warp instructions
  uint32_t waiting = 0;  ///< samples that found a warp there which did not issue
  bool before(const InstructionUse& other) const { return instruction < other.instruction; }
  void add(const InstructionUse& other) {
    issued += other.issued;
    waiting += other.waiting;
  }
};

/// Activity over time while a launch runs: of the whole GPU, and the launch's own instructions. Intervals end
/// at multiples of `interval`, the last when the launch does.
class Timeline {
 public:
  struct Interval {
    Cycle end = 0;
    GpuActivity activity;
    // Ascending; what was not in use is left out.
    std::vector<BankUse> banks;
    std::vector<InstructionUse> instructions;
    size_t rows() const { return banks.size() + instructions.size(); }
  };

  // Beyond these, `interval` doubles and neighbours are merged.
  static constexpr size_t most_intervals = size_t{1} << 14, most_rows = size_t{1} << 22;

  explicit Timeline(Cycle interval = 0) : interval_(interval) {}
  Cycle interval() const { return interval_; }
  const std::vector<Interval>& intervals() const { return intervals_; }

  /// Appends what happened since the previous call. It belongs to the last interval if that has not reached
  /// its end.
  void add(const Interval& latest);

 private:
  static void merge(Interval& into, const Interval& later);
  bool complete(const Interval& last) const { return last.end % interval_ == 0; }
  void double_interval();

  Cycle interval_;
  std::vector<Interval> intervals_;
  size_t rows_ = 0;
};

/// The launch slots in use.
using LaunchSlots = std::vector<uint16_t>;

/// Computes the differences between samples that make up a Timeline.
class TimelineSampler {
 public:
  /// Makes the current state the reference.
  void restart(Cycle now, const std::vector<std::unique_ptr<Sm>>& sms, const MemorySystem& memory,
               const LaunchSlots& slots);
  /// Adds what happened since the last call to the timeline of each of `slots`.
  void sample(Cycle now, const std::vector<std::unique_ptr<Sm>>& sms, const MemorySystem& memory,
              const LaunchSlots& slots, const std::vector<Timeline*>& timelines);

 private:
  Cycle last_cycle_ = 0;
  GpuActivity last_;
  std::vector<BankActivity> last_banks_;
  std::map<uint16_t, std::vector<InstructionUse>> last_instructions_;  // by launch slot: since it began
};

}  // namespace simt
