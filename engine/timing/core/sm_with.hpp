#pragma once
#include <bit>

#include "timing/core/core_parts.hpp"
#include "timing/core/sm.hpp"

namespace simt {

/// An SM with one of the core models. The model's functions are bound at compile time, so choosing between
/// models costs nothing per cycle.
template <CoreModel Core>
class SmWith final : public Sm {
 public:
  SmWith(const Spec& spec, uint16_t id, uint32_t launch_slots, Cycle deferral, MemoryPort& port)
      : Sm(spec, Core::traits, id, launch_slots, deferral, port),
        core_(CoreParts{spec_, warps_, pool_, front_end_, constant_cache_, load_store_,
                        recorder_.counters()}) {}

  void run(Cycle begin, Cycle end) override;

 private:
  void tick(Cycle now, bool arrivals);
  void issue(Cycle now);
  void issue_from(uint32_t scheduler, bool changed, Cycle now);
  void issue_warp(uint32_t scheduler, uint32_t w, uint64_t chosen, uint64_t others, Cycle now);
  void issue_instruction(uint32_t w, const DecodedInstruction& d, Cycle now);
  uint32_t put_in_flight(uint32_t w, const DecodedInstruction& d, const DynamicRecord& record);
  uint64_t available(uint32_t scheduler, uint64_t candidates, uint32_t excluded_units, Cycle now);
  Cycle find_next_event(Cycle now) const { return std::min(next_shared_event(now), core_.next_event(now)); }
  void forget_fetch(uint32_t w) override { core_.forget_fetch(w); }

  uint32_t issuable_ = 0;  // bit per scheduler: some warp could issue in the last cycle
  Core core_;
};

template <CoreModel Core>
void SmWith<Core>::run(Cycle begin, Cycle end) {
  load_store_.take_departures(port_.departures);
  load_store_.prefetch(begin, end, port_.replies);
  for (Cycle now = begin; now < end;) {
    const Cycle outside = next_outside_event();
    const Cycle wake = std::min(end, std::min(own_event_, outside));
    if (wake > now) {
      pass_idle(now, wake);
      now = wake;
      continue;
    }
    tick(now, outside <= now);
    own_event_ = changed_ ? now + 1 : find_next_event(now);
    if (ctas_.resident() > 0) recorder_.count_cycles(1);
    recorder_.sample(now, now + 1);
    ++now;
  }
  drop_taken_replies();
}

template <CoreModel Core>
void SmWith<Core>::tick(Cycle now, bool arrivals) {
  warps_.set_time(now);
  changed_ = false;
  if (arrivals) take_arrivals(now);
  if (!sleepers_.empty()) wake_sleepers(now);
  if (ctas_.next_opening() <= now) changed_ |= ctas_.open_barriers(now);
  changed_ |= core_.write_back(now);
  if (constant_cache_.next_event() <= now) take_constants(now);
  changed_ |= core_.execute(now);
  changed_ |= load_store_.write_back(now, [&](const DecodedInstruction& d, uint32_t w, uint8_t& written) {
    return core_.write_port_free(d, w, written);
  });
  changed_ |= load_store_.cycle(now, port_.replies, next_reply_);
  finish_bulk_copies();
  if (tensor_queue_.next_event() <= now) finish_tensor_commits(now);
  if (load_store_.can_accept(now)) changed_ |= core_.send_access(now);
  changed_ |= core_.read_operands(recorder_.current_counters());
  issue(now);
  changed_ |= front_end_.cycle(now, load_store_, constant_cache_);
  changed_ |= core_.fetch(now);
  retire_warps(now, core_.retirable());
}

template <CoreModel Core>
inline uint64_t SmWith<Core>::available(uint32_t scheduler, uint64_t candidates, uint32_t excluded_units,
                                        Cycle now) {
  if (candidates == 0) return 0;
  const SchedulerMasks& m = warps_.masks(scheduler);
  for (uint32_t refused = core_.refused(scheduler, now) | excluded_units; refused; refused &= refused - 1)
    candidates &= ~m.needs[static_cast<size_t>(std::countr_zero(refused))];
  return candidates;
}

template <CoreModel Core>
void SmWith<Core>::issue(Cycle now) {
  if (membars_) check_membars();
  const uint32_t count = spec_.sm.sub_cores, first = issue_first_;
  if (ctas_.resident() > 0) issue_first_ = first + 1 < count ? first + 1 : 0;
  // If none of a scheduler's warps could issue and none has changed, what the recorder has of the last cycle
  // is true of this one. What one scheduler issues may change warps of the next.
  const auto issue_in_turn = [&](uint32_t from, uint32_t to) {
    for (uint32_t s = from; s < to; ++s) {
      const uint32_t open = (warps_.masks_changed() | issuable_) >> s;
      if (open == 0) return;
      s += static_cast<uint32_t>(std::countr_zero(open));
      if (s >= to) return;
      const bool changed = warps_.masks_changed() >> s & 1;
      warps_.forget_masks_changed(s);
      issue_from(s, changed, now);
    }
  };
  issue_in_turn(first, count);
  issue_in_turn(0, first);
}

/// Units that an instruction for `unit` makes unavailable to the next instruction of the same warp and cycle.
/// The specialised units share their path from the scheduler.
constexpr uint32_t units_excluded_by(Unit unit) {
  constexpr auto bit = [](Unit u) { return 1u << static_cast<uint32_t>(u); };
  constexpr uint32_t specialised =
      bit(Unit::Branch) | bit(Unit::Texture) | bit(Unit::Tensor) | bit(Unit::Uniform);
  constexpr uint32_t own = ((1u << special_units) - 1) << static_cast<uint32_t>(Unit::Special);
  return bit(unit) & (specialised | own) ? specialised | own : bit(unit);
}

template <CoreModel Core>
void SmWith<Core>::issue_from(uint32_t s, bool changed, Cycle now) {
  const SchedulerMasks& m = warps_.masks(s);
  uint64_t waiting = m.waiting(), ready = m.issuable(waiting), could_issue = 0, chosen = 0;
  issuable_ = (issuable_ & ~(1u << s)) | uint32_t{ready != 0} << s;
  uint32_t w = 0;
  if (m.resident != 0 && core_.may_issue(s, now)) {
    schedulers_[s]->begin_cycle();
    could_issue = available(s, ready, 0, now);
    const int32_t position = could_issue ? schedulers_[s]->choose(could_issue, now) : -1;
    if (position < 0) {
      if (could_issue) asked_in_vain(s, now);
    } else {
      changed_ = true;
      chosen = uint64_t{1} << position;
      w = warps_.slot_at(s, static_cast<uint32_t>(position));
      if (!constant_operand_there(w, warps_.next_instruction(w), now)) {
        waiting = m.waiting();
        ready = m.issuable(waiting);
        could_issue &= ~chosen;
        chosen = 0;
        core_.operand_missing(s, now);
      }
    }
  }
  // The same may be true of this cycle if the units of all warps that are ready still accept nothing.
  if (!changed && could_issue == 0 && recorder_.units_refused(s) == ready) return;
  recorder_.count_scheduler(s, waiting, ready, chosen, could_issue);
  if (chosen) issue_warp(s, w, chosen, could_issue & ~chosen, now);
}

/// Issues the chosen warp's instructions. others: warps that could have issued too.
/// This and issue_instruction() are inlined by force: the compiler finds them too long, but calls cost 2 to 5
/// %.
template <CoreModel Core>
[[gnu::always_inline]] inline void SmWith<Core>::issue_warp(uint32_t s, uint32_t w, uint64_t chosen,
                                                            uint64_t others, Cycle now) {
  const SchedulerMasks& m = warps_.masks(s);
  uint32_t used_units = 0;
  const uint32_t width = spec_.sm.scheduler.issue_width;
  for (uint32_t n = 0; n < width; ++n) {
    if (n > 0 && available(s, chosen & m.issuable(), used_units, now) == 0) break;
    const DecodedInstruction& next = warps_.next_instruction(w);
    if (n > 0 && !constant_operand_there(w, next, now)) break;
    if (n + 1 < width && spec_.sm.scheduler.dual_issue_different_units)
      used_units |= units_excluded_by(next.unit);
    issue_instruction(w, next, now);
  }
  schedulers_[s]->issued(std::countr_zero(chosen));
  // A warp that may issue in the next cycle comes into the host's caches meanwhile.
  if (others) {
    const uint64_t later = others & ~(chosen | (chosen - 1));
    warps_.prefetch(warps_.slot_at(s, static_cast<uint32_t>(std::countr_zero(later ? later : others))));
  }
}

template <CoreModel Core>
uint32_t SmWith<Core>::put_in_flight(uint32_t w, const DecodedInstruction& d, const DynamicRecord& record) {
  const uint32_t index = pool_.allocate();
  InFlight& instruction = pool_[index];
  instruction.instruction = &d;
  instruction.mask = record.mask;
  instruction.warp = static_cast<uint16_t>(w);
  instruction.slot = warps_[w].kernel->slot;
  instruction.space = d.fixed.space;
  instruction.passes = 0;
  instruction.outstanding = 0;
  instruction.counts_as_store = instruction.has_turn = instruction.data_there = false;
  instruction.transactions.clear();
  addresses_.start(instruction, record);
  return index;
}

template <CoreModel Core>
[[gnu::always_inline]] inline void SmWith<Core>::issue_instruction(uint32_t w, const DecodedInstruction& d,
                                                                   Cycle now) {
  WarpTable::Warp& warp = warps_[w];
  const WarpTable::Buffered next = warps_.next(w);
  const DynamicRecord& record = warps_.next_record(w);  // valid until advance()
  const uint16_t slot = warp.kernel->slot;
  recorder_.issued(slot, next);
  ++warp.issued;
  warp.issued_index = next.static_index;
  if (warp.kernel->observed_blocks) [[unlikely]]
    observer_.issued(w, next.static_index, now);

  uint32_t in_flight = InFlightPool::none;
  if (d.memory_pipeline) in_flight = put_in_flight(w, d, record);
  if (d.synchronises) synchronise(w, d, record, in_flight, now);
  warps_.reserve(w, d);
  if (d.issue.present && !warps_.dependences().issue(w, d, next.mask, now)) [[unlikely]]
    recorder_.uncovered(slot, next);
  core_.dispatch({d, record, w, slot, in_flight}, now);
  if (core_.in_turn(d.unit)) [[unlikely]]
    put_last(warps_.scheduler_of(w), d.initiation_interval);
  if (next.ticket) defer(warp, next.ticket, now);
  const uint16_t cta_slot = warp.cta_slot, index_in_cta = warp.index_in_cta;
  if (warps_.advance(w)) ctas_.exit(cta_slot, index_in_cta, now);
  // What is fetched in a cycle can issue in the next.
  if (warps_.has_jumped(w)) front_end_.fetch_target(w, now + spec_.sm.front_end.branch_latency - 1);
}

}  // namespace simt
