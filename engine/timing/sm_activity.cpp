#include <algorithm>
#include <bit>

#include "timing/sm.hpp"

// What the SM counts and tells of its warps, to reports and to controllers.

namespace simt {
namespace {

size_t index(StallReason reason) {
  return static_cast<size_t>(reason);
}

}  // namespace

void Sm::count_cycle(uint32_t scheduler, uint64_t issued_mask, uint64_t could_issue) {
  const WarpTable::SchedulerMasks& m = warps_.masks(scheduler);
  const uint64_t waiting = m.waiting();
  const uint64_t idle = m.resident & ~waiting & ~m.has_instruction;
  const uint64_t blocked = m.blocked & ~waiting;
  const uint64_t ready = m.issuable();
  const uint64_t unit_busy = ready & ~could_issue;
  std::array<uint64_t, LaunchActivity::reasons> masks{};
  masks[index(StallReason::Selected)] = issued_mask;
  masks[index(StallReason::NotSelected)] = could_issue & ~issued_mask;
  masks[index(StallReason::NoInstruction)] = idle;
  masks[index(StallReason::Barrier)] = m.barrier & ~m.finished;
  masks[index(StallReason::Membar)] = m.membar & ~m.finished;
  masks[index(StallReason::AsyncCopy)] = m.async_copy & ~m.finished;
  masks[index(StallReason::LongScoreboard)] = (blocked & m.blocked_long) | (m.atomics & ~m.finished);
  masks[index(StallReason::ShortScoreboard)] = blocked & m.blocked_short;
  masks[index(StallReason::Wait)] = blocked & ~m.blocked_long & ~m.blocked_short;
  masks[index(StallReason::LgThrottle)] = unit_busy & m.needs[static_cast<size_t>(Unit::Memory)];
  masks[index(StallReason::MathPipeThrottle)] = unit_busy & ~m.needs[static_cast<size_t>(Unit::Memory)];
  masks[index(StallReason::Sleeping)] = m.sleeping & ~m.finished;
  masks[index(StallReason::ImcMiss)] = m.constant & ~m.finished;
  masks[index(StallReason::Drain)] = m.finished;
  StallReason dominant = StallReason::NoInstruction;
  uint32_t most = 0;
  for (size_t r = 0; r < masks.size(); ++r) {
    const auto warps = static_cast<uint32_t>(std::popcount(masks[r]));
    last_states_[r] += warps;
    if (r != index(StallReason::NotSelected) && warps > most) {
      most = warps;
      dominant = static_cast<StallReason>(r);
    }
  }
  last_unit_busy_[scheduler] = unit_busy;
  last_reasons_[scheduler] = issued_mask ? StallReason::Selected : dominant;
}

void Sm::count_cycles(Cycle cycles) {
  LaunchActivity& activity = activity_[stall_slot_];
  uint64_t resident = 0;
  for (size_t r = 0; r < last_states_.size(); ++r) activity.warp_states[r] += cycles * last_states_[r];
  for (uint32_t s = 0; s < spec_.sm.sub_cores; ++s) {
    const auto here = static_cast<uint64_t>(std::popcount(warps_.masks(s).resident));
    resident += here;
    if (here > 0) activity.scheduler_cycles[s][index(last_reasons_[s])] += cycles;
  }
  Counters& counters = counters_[stall_slot_];
  counters[Counter::sm_active_cycles] += cycles;
  counters[Counter::active_warp_cycles] += cycles * resident;
}

StallReason Sm::state_of(uint32_t w) const {
  const WarpTable::SchedulerMasks& m = warps_.masks(warps_.scheduler_of(w));
  const uint64_t bit = warps_.bit_of(w);
  if (m.finished & bit) return StallReason::Drain;
  if (m.barrier & bit) return StallReason::Barrier;
  if (m.membar & bit) return StallReason::Membar;
  if (m.async_copy & bit) return StallReason::AsyncCopy;
  if (m.sleeping & bit) return StallReason::Sleeping;
  if (m.constant & bit) return StallReason::ImcMiss;
  if (m.atomics & bit) return StallReason::LongScoreboard;
  if (!(m.has_instruction & bit)) return StallReason::NoInstruction;
  if (m.blocked_long & bit) return StallReason::LongScoreboard;
  if (m.blocked_short & bit) return StallReason::ShortScoreboard;
  if (m.blocked & bit) return StallReason::Wait;
  if (!(last_unit_busy_[warps_.scheduler_of(w)] & bit)) return StallReason::NotSelected;
  return m.needs[static_cast<size_t>(Unit::Memory)] & bit ? StallReason::LgThrottle
                                                          : StallReason::MathPipeThrottle;
}

void Sm::sample(Cycle from, Cycle to) {
  // Multiples of the interval in [from, to).
  if ((from - 1) / sample_interval == (to - 1) / sample_interval && from > 0) return;
  const uint64_t times =
      (to + sample_interval - 1) / sample_interval - (from + sample_interval - 1) / sample_interval;
  if (times == 0) return;
  for (uint32_t w = 0; w < warps_.slots(); ++w) {
    const WarpTable::Warp& warp = warps_[w];
    if (!warp.resident || (warp.held == 0 && warp.issued == 0)) continue;
    // What a warp does that knows no next instruction, such as one at a barrier, is the last one's doing.
    const uint32_t at = warp.held > 0 ? warps_.next_record(w).static_index : warp.issued_index;
    activity_[warp.kernel->slot].samples[at][index(state_of(w))] += static_cast<uint32_t>(times);
  }
}

void Sm::observe_issue(uint32_t w, uint32_t index, Cycle now) {
  WarpTable::Warp& warp = warps_[w];
  const BasicBlocks& blocks = *warp.kernel->observed_blocks;
  if (blocks.begins(warp.last_index, index)) {
    if (warp.last_index != BasicBlocks::none) {
      const uint64_t number = ctas_[warp.cta_slot].ordinal * warp.kernel->warps_per_cta + warp.index_in_cta;
      observed_[warp.kernel->slot].blocks.push_back({warp.block, number, warp.block_begin, now});
    }
    warp.block = blocks.of(index);
    warp.block_begin = now;
  }
  warp.last_index = index;
}

void Sm::blocks_under_way(uint32_t w, Cycle now, std::vector<Dropped::Block>& out) const {
  const WarpTable::Warp& warp = warps_[w];
  const BasicBlocks& blocks = *warp.kernel->observed_blocks;
  if (warp.last_index != BasicBlocks::none)
    out.push_back({warp.index_in_cta, warp.block, now - std::min(now, warp.block_begin)});
  uint32_t previous = warp.last_index;
  for (uint32_t i = 0; i < warp.held; ++i) {
    const uint32_t index = warp.buffer[(warp.buffer_head + i) % WarpTable::buffer_capacity].static_index;
    if (blocks.begins(previous, index)) out.push_back({warp.index_in_cta, blocks.of(index), 0});
    previous = index;
  }
}

void Sm::observe_retirement(uint32_t w, Cycle now) {
  const WarpTable::Warp& warp = warps_[w];
  const Cta& cta = ctas_[warp.cta_slot];
  if (warp.dropped) return;
  if (warp.kernel->observes_warps)
    observed_[warp.kernel->slot].warps.push_back({cta.ordinal, warp.index_in_cta, cta.begin, now + 1});
  if (warp.kernel->observed_blocks && warp.last_index != BasicBlocks::none)
    observed_[warp.kernel->slot].blocks.push_back(
        {warp.block, cta.ordinal * warp.kernel->warps_per_cta + warp.index_in_cta, warp.block_begin,
         now + 1});
}

std::string Sm::describe_waits() const {
  static constexpr std::array<const char*, LaunchActivity::reasons> words = {
      "can issue",
      "can issue but no unit takes it",
      "its instruction buffer to be filled",
      "barrier",
      "memory barrier: earlier accesses have not finished",
      "asynchronous copies",
      "a value from global or local memory",
      "a value from shared memory",
      "a fixed-latency result",
      "its execution unit",
      "the memory pipeline",
      "the end of its sleep",
      "a constant operand",
      "outstanding stores or results after its last instruction"};
  std::string text;
  for (uint32_t w = 0; w < warps_.slots(); ++w) {
    const WarpTable::Warp& warp = warps_[w];
    if (!warp.resident) continue;
    const StallReason state = state_of(w);
    text += "  SM " + std::to_string(id_) + " CTA slot " + std::to_string(warp.cta_slot) + " warp " +
            std::to_string(warp.index_in_cta) + " of launch " + std::to_string(warp.kernel->launch.id) +
            ": waits for " + words[index(state)];
    if (warp.held > 0) {
      const StaticInstruction& s = warps_.next_instruction(w).fixed;
      text +=
          ", next instruction " + warp.kernel->source->opcodes()[s.opcode] + " at pc " + std::to_string(s.pc);
    }
    if (warp.source_waits) text += "; the program waits: " + warp.stream->waits_for(warp.index_in_cta);
    if (state == StallReason::Barrier) {
      const CtaBarriers& barriers = ctas_[warp.cta_slot].barriers;
      for (uint32_t b = 0; b < CtaBarriers::count; ++b) {
        const uint64_t missing = barriers.running() & ~barriers.arrived(b);
        if (!(barriers.arrived(b) >> warp.index_in_cta & 1)) continue;
        text += "; barrier " + std::to_string(b) + " still misses warps";
        for (uint64_t rest = missing; rest; rest &= rest - 1)
          text += " " + std::to_string(std::countr_zero(rest));
      }
    }
    text += "\n";
  }
  return text;
}

}  // namespace simt
