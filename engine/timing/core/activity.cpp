#include "timing/core/activity.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace simt {
namespace {

size_t index(StallReason reason) {
  return static_cast<size_t>(reason);
}

}  // namespace

void LaunchActivity::add_cycles(const LaunchActivity& other) {
  for (size_t r = 0; r < reasons; ++r) warp_states[r] += other.warp_states[r];
  scheduler_cycles.resize(std::max(scheduler_cycles.size(), other.scheduler_cycles.size()));
  for (size_t s = 0; s < other.scheduler_cycles.size(); ++s)
    for (size_t r = 0; r < reasons; ++r) scheduler_cycles[s][r] += other.scheduler_cycles[s][r];
}

ActivityRecorder::ActivityRecorder(const WarpTable& warps)
    : warps_(warps), counters_(1), activity_(1), unprepared_(1) {
  scheduler_did_.fill(StallReason::NoInstruction);
}

void ActivityRecorder::begin_launch(const DecodedKernel& kernel, bool resident) {
  write_cycles();
  add_up();
  const uint16_t slot = kernel.slot;
  if (slot >= counters_.size()) {
    counters_.resize(slot + 1u);
    activity_.resize(slot + 1u);
    unprepared_.resize(slot + 1u);
  }
  counters_[slot] = Counters{};
  unprepared_[slot] = &kernel;
  if (resident && current_ == slot) prepare(slot);  // their cycles count for the launch from here on
}

void ActivityRecorder::clear_activity(uint16_t slot) {
  const DecodedKernel& kernel = *std::exchange(unprepared_[slot], nullptr);
  LaunchActivity& activity = activity_[slot];
  // In the memory of the slot's last launch: programs may have tens of thousands of small ones.
  const size_t instructions = kernel.instructions.size();
  activity.warp_states = {};
  activity.scheduler_cycles.assign(warps_.schedulers(), {});
  activity.executions.assign(instructions, {});
  activity.samples.assign(instructions, {});
  activity.uncovered.assign(kernel.control_bits ? instructions : 0, 0);
}

void ActivityRecorder::count_residents() {
  write_cycles();
  residents_changed_ = false;
  residents_ = occupied_ = 0;
  for (uint32_t s = 0; s < warps_.schedulers(); ++s) {
    const auto here = static_cast<uint32_t>(std::popcount(warps_.masks(s).resident));
    residents_ += here;
    if (here > 0) occupied_ |= 1u << s;
  }
}

void ActivityRecorder::write_repeated() {
  const Cycle all = std::exchange(repeated_, 0);
  const bool many = all > most_cycles;
  const Cycle cycles = many ? 1 : all;
  if (many || written_ + cycles > most_cycles) add_up();
  constexpr uint64_t even_bytes = 0x00ff00ff00ff00ff;
  for (size_t i = 0; i < all_states_.words.size(); ++i) {
    warp_states_[2 * i] += cycles * (all_states_.words[i] & even_bytes);
    warp_states_[2 * i + 1] += cycles * (all_states_.words[i] >> 8 & even_bytes);
  }
  for (uint32_t rest = occupied_; rest; rest &= rest - 1) {
    const auto s = static_cast<uint32_t>(std::countr_zero(rest));
    outcomes_[index(scheduler_did_[s])][s] += static_cast<uint16_t>(cycles);
  }
  written_ += cycles;
  if (many) add_up(all);
  Counters& counters = counters_[current_];
  counters[Counter::sm_active_cycles] += all;
  counters[Counter::active_warp_cycles] += all * residents_;
}

void ActivityRecorder::add_up(Cycle times) {
  if (std::exchange(written_, 0) == 0) return;
  LaunchActivity& activity = activity_[current_];
  for (size_t r = 0; r < LaunchActivity::reasons; ++r) {
    activity.warp_states[r] += times * (warp_states_[r / 8 * 2 + r % 2] >> r % 8 / 2 * 16 & 0xffff);
    for (size_t s = 0; s < activity.scheduler_cycles.size(); ++s)
      activity.scheduler_cycles[s][r] += times * outcomes_[r][s];
  }
  warp_states_ = {};
  outcomes_ = {};
}

/// Calls use(state, mask of positions) for the states of a scheduler's warps.
template <typename Use>
void ActivityRecorder::for_each_state(uint32_t scheduler, Use use) const {
  const SchedulerMasks& m = warps_.masks(scheduler);
  uint64_t left = m.resident;
  const auto take = [&](StallReason reason, uint64_t mask) {
    if (mask & left) use(reason, mask & left);
    left &= ~mask;
  };
  // The first that holds is a warp's state.
  take(StallReason::Drain, m.finished);
  take(StallReason::Barrier, m.barrier);
  take(StallReason::Membar, m.membar);
  take(StallReason::AsyncCopy, m.async_copy);
  take(StallReason::Sleeping, m.sleeping);
  take(StallReason::ImcMiss, m.constant);
  take(StallReason::LongScoreboard, m.atomics);
  const uint64_t stopped = m.stopped & ~m.has_instruction;
  take(StallReason::WarpgroupArrive, stopped & m.stopped_group);
  take(StallReason::LongScoreboard, stopped & m.stopped_value);
  take(StallReason::Barrier, stopped);
  take(StallReason::NoInstruction, ~m.has_instruction);
  take(StallReason::LongScoreboard, m.blocked_long);
  take(StallReason::ShortScoreboard, m.blocked_short);
  take(StallReason::WarpgroupArrive, m.blocked_group);
  take(StallReason::Wait, m.blocked);
  take(StallReason::NotSelected, ~unit_busy_[scheduler]);
  take(StallReason::MioThrottle, m.needs[static_cast<size_t>(Unit::Memory)] & m.shared);
  take(StallReason::LgThrottle, m.needs[static_cast<size_t>(Unit::Memory)]);
  take(StallReason::MathPipeThrottle, left);
}

StallReason ActivityRecorder::state_of(uint32_t w) const {
  StallReason state = StallReason::NoInstruction;
  for_each_state(warps_.scheduler_of(w), [&](StallReason reason, uint64_t warps) {
    if (warps & warps_.bit_of(w)) state = reason;
  });
  return state;
}

void ActivityRecorder::take_samples(uint64_t times) {
  for (uint32_t s = 0; s < warps_.schedulers(); ++s) {
    if (warps_.masks(s).resident == 0) continue;
    for_each_state(s, [&](StallReason reason, uint64_t warps) {
      for (; warps; warps &= warps - 1) {
        const uint32_t w = warps_.slot_at(s, static_cast<uint32_t>(std::countr_zero(warps)));
        const uint32_t at = warps_.position(w);
        if (at == WarpTable::nowhere) continue;
        activity_[warps_.launch_slot(w)].samples[at][index(reason)] += static_cast<uint32_t>(times);
      }
    });
  }
}

}  // namespace simt
