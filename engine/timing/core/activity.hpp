#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "stats/counters.hpp"
#include "timing/base/request.hpp"
#include "timing/warps/decoded_kernel.hpp"
#include "timing/warps/warp_table.hpp"

namespace simt {

/// One SM's counts for one launch, besides Counters.
struct LaunchActivity {
  static constexpr size_t reasons = static_cast<size_t>(StallReason::Count);
  Counters counters{};
  std::array<uint64_t, reasons> warp_states{};                  ///< warp-cycles by state
  std::vector<std::array<uint64_t, reasons>> scheduler_cycles;  ///< per scheduler: cycles by outcome
  struct Executions {
    uint64_t warps = 0, threads = 0;
  };
  std::vector<Executions> executions;  ///< per static instruction
  std::vector<uint64_t>
      uncovered;  ///< likewise: executions whose dependences their control bits do not cover
  std::vector<std::array<uint32_t, reasons>>
      samples;  ///< per static instruction: warps found there, by state

  /// Adds what another SM's warps and schedulers did.
  void add_cycles(const LaunchActivity& other);
};

/// An SM's counts, by launch slot. Scheduler cycles and warp states of all its launches are attributed to the
/// launch whose CTA arrived last.
class ActivityRecorder {
 public:
  static constexpr Cycle sample_interval = 64;  ///< core cycles between samples of the warps' states

  explicit ActivityRecorder(const WarpTable& warps);

  /// resident: whether CTAs of other launches are.
  void begin_launch(const DecodedKernel& kernel, bool resident);
  void cta_started(const DecodedKernel& kernel) {
    write_cycles();
    add_up();
    prepare(kernel.slot);
    residents_changed_ = true;
    current_ = kernel.slot;
    Counters& counters = counters_[current_];
    ++counters[Counter::ctas];
    counters[Counter::warps] += kernel.warps_per_cta;
  }
  void issued(uint16_t slot, const WarpTable::Buffered& record) {
    Counters& counters = counters_[slot];
    ++counters[Counter::warp_instructions];
    const auto threads = static_cast<uint64_t>(std::popcount(record.mask));
    counters[Counter::thread_instructions] += threads;
    LaunchActivity::Executions& executions = activity_[slot].executions[record.static_index];
    ++executions.warps;
    executions.threads += threads;
  }

  /// The control bits of the instruction that has issued do not cover its dependences.
  void uncovered(uint16_t slot, const WarpTable::Buffered& record) {
    ++counters_[slot][Counter::uncovered_dependences];
    ++activity_[slot].uncovered[record.static_index];
  }

  /// Which of a scheduler's warps could issue in the cycle, and which one did, as masks of positions.
  /// waiting, ready: the scheduler's, which the caller has at hand.
  void count_scheduler(uint32_t scheduler, uint64_t waiting, uint64_t ready, uint64_t issued_mask,
                       uint64_t could_issue);
  /// Of the scheduler's ready warps, those whose units accepted nothing, when it was last counted.
  uint64_t units_refused(uint32_t scheduler) const { return unit_busy_[scheduler]; }
  /// Warps have started or retired.
  void residents_changed() { residents_changed_ = true; }
  /// Adds `cycles` repetitions of the last cycle.
  void count_cycles(Cycle cycles) {
    if (residents_changed_) count_residents();
    repeated_ += cycles;
  }
  /// Samples the warps' states at multiples of the interval in [from, to).
  void sample(Cycle from, Cycle to) {
    const uint64_t times =
        (to + sample_interval - 1) / sample_interval - (from + sample_interval - 1) / sample_interval;
    if (times > 0) take_samples(times);
  }
  StallReason state_of(uint32_t w) const;

  /// For counting.
  std::vector<Counters>& counters() { return counters_; }
  const Counters& counters(uint16_t slot) {
    write_cycles();
    return counters_[slot];
  }
  Counters& current_counters() { return counters_[current_]; }
  LaunchActivity& activity(uint16_t slot) {
    write_cycles();
    add_up();
    prepare(slot);
    return activity_[slot];
  }

 private:
  static constexpr size_t max_schedulers = 8;
  void prepare(uint16_t slot) {
    if (unprepared_[slot]) clear_activity(slot);
  }
  void clear_activity(uint16_t slot);
  void count_residents();
  void write_cycles() {
    if (repeated_ > 0) write_repeated();
  }
  void write_repeated();
  /// Adds what has been written since the last call, `times`, to the activity of the launch that cycles count
  /// for.
  void add_up(Cycle times = 1);
  void take_samples(uint64_t times);
  template <typename Use>
  void for_each_state(uint32_t scheduler, Use use) const;

  const WarpTable& warps_;
  // As many launch slots as have been used: a GPU has many more.
  std::vector<Counters> counters_;
  std::vector<LaunchActivity> activity_;
  // What begin_launch() has left to prepare(): an SM without CTAs of a launch has no use for its activity.
  std::vector<const DecodedKernel*> unprepared_;
  uint16_t current_ = 0;  // launch slot that cycles count for
  bool residents_changed_ = true;
  uint32_t residents_ = 0;  // warps
  uint32_t occupied_ = 0;   // bit per scheduler that has some
  /// A byte per state: the number of warps in it, of at most 64 in an SM.
  struct States {
    std::array<uint64_t, 2> words{};
    static_assert(LaunchActivity::reasons <= 16);
    void set(StallReason reason, uint64_t warps) {
      words[static_cast<size_t>(reason) / 8] |= warps << static_cast<size_t>(reason) % 8 * 8;
    }
  };
  // The last cycle, all schedulers' and by scheduler, and how often it was repeated since that was last
  // written.
  Cycle repeated_ = 0;
  States all_states_{};
  std::array<StallReason, max_schedulers> scheduler_did_{};
  std::array<States, max_schedulers> states_{};
  std::array<uint64_t, max_schedulers> unit_busy_{};  // warps whose unit accepted nothing
  // What has been written since add_up(): cycles; warps by state, in the bytes' order but 16 bits each, the
  // even bytes of a word before the odd ones; and the cycles of each scheduler by outcome. They are few of
  // the host's cache lines, unlike what they are added to.
  static constexpr Cycle most_cycles = 0xffff / 64;
  Cycle written_ = 0;
  std::array<uint64_t, 4> warp_states_{};
  std::array<std::array<uint16_t, max_schedulers>, LaunchActivity::reasons> outcomes_{};
};

// Inline, so that SmWith can inline it: most cycles of most schedulers are counted.
inline void ActivityRecorder::count_scheduler(uint32_t scheduler, uint64_t waiting, uint64_t ready,
                                              uint64_t issued_mask, uint64_t could_issue) {
  write_cycles();
  const SchedulerMasks& m = warps_.masks(scheduler);
  const uint64_t blocked = m.blocked & ~waiting;
  const uint64_t unit_busy = ready & ~could_issue;
  States states;
  StallReason dominant = StallReason::NoInstruction;
  uint64_t most = 0;
  const auto add = [&](StallReason reason, uint64_t mask) {
    const auto warps = static_cast<uint64_t>(std::popcount(mask));
    states.set(reason, warps);
    if (warps > most) {
      most = warps;
      dominant = reason;
    }
  };
  // In the order of StallReason, of which the first wins a tie.
  states.set(StallReason::Selected, issued_mask != 0);
  states.set(StallReason::NotSelected, static_cast<uint64_t>(std::popcount(could_issue & ~issued_mask)));
  const uint64_t empty = m.resident & ~waiting & ~m.has_instruction, stopped = empty & m.stopped;
  add(StallReason::NoInstruction, empty & ~m.stopped);
  if (waiting | stopped) {
    add(StallReason::Barrier, (m.barrier & ~m.finished) | (stopped & ~m.stopped_group & ~m.stopped_value));
    add(StallReason::Membar, m.membar & ~m.finished);
    add(StallReason::AsyncCopy, m.async_copy & ~m.finished);
    add(StallReason::LongScoreboard,
        (blocked & m.blocked_long) | (m.atomics & ~m.finished) | (stopped & m.stopped_value));
  } else {
    add(StallReason::LongScoreboard, blocked & m.blocked_long);
  }
  if (blocked) {
    add(StallReason::ShortScoreboard, blocked & m.blocked_short);
    add(StallReason::Wait, blocked & ~m.blocked_long & ~m.blocked_short & ~m.blocked_group);
  }
  if (unit_busy) {
    const uint64_t memory = m.needs[static_cast<size_t>(Unit::Memory)];
    add(StallReason::MathPipeThrottle, unit_busy & ~memory);
    add(StallReason::LgThrottle, unit_busy & memory & ~m.shared);
    add(StallReason::MioThrottle, unit_busy & memory & m.shared);
  }
  if (waiting) {
    add(StallReason::Sleeping, m.sleeping & ~m.finished);
    add(StallReason::ImcMiss, m.constant & ~m.finished);
    add(StallReason::Drain, m.finished);
  }
  if (const uint64_t group = (blocked & m.blocked_group) | (stopped & m.stopped_group))
    add(StallReason::WarpgroupArrive, group);
  for (size_t i = 0; i < states.words.size(); ++i)
    all_states_.words[i] += states.words[i] - states_[scheduler].words[i];
  states_[scheduler] = states;
  unit_busy_[scheduler] = unit_busy;
  scheduler_did_[scheduler] = issued_mask ? StallReason::Selected : dominant;
}

}  // namespace simt
