#include "timing/warps/warp_table.hpp"

namespace simt {
namespace {

constexpr uint64_t volta_instruction_bytes = 16;

}  // namespace

// Inline functions come first, so that they are inlined below.

inline void WarpTable::check_registers(uint32_t w, const DecodedInstruction& next, Place at) {
  const Warp& warp = warps_[w];
  const auto [m, bit] = at;
  m.blocked &= ~bit;
  m.blocked_long &= ~bit;
  m.blocked_short &= ~bit;
  m.blocked_group &= ~bit;
  if (next.issue.present) [[unlikely]] {
    check_issue_rule(w, next, at);
    return;
  }
  if (!intersects(warp.pending, next.touches)) return;
  m.blocked |= bit;
  if (intersects(warp.pending_long, next.touches))
    m.blocked_long |= bit;
  else if (intersects(warp.pending_short, next.touches))
    m.blocked_short |= bit;
}

inline void WarpTable::refresh_fetch(uint32_t w) {
  const Warp& warp = warps_[w];
  const auto finished = static_cast<bool>(finished_ >> w & 1);
  bool more = warp.resident & !finished, room = warp.buffered < buffer_entries_;
  if (!warp.obstacles.none()) {
    const Warp::Obstacles& o = warp.obstacles;
    // A record behind a taken branch is held, and may be the last that the stream has for now.
    const bool waits = o.source_waits & ((warp.held == 0) | (warp.buffered > 0));
    more &= !(o.fetch_pending | waits | o.jumps);
    room &= !o.stream_ended | (warp.held > warp.buffered);
  }
  const bool fetchable = more & (warp.buffered == 0), fillable = more & room;
  const uint64_t others = ~(uint64_t{1} << w);
  fetchable_ = (fetchable_ & others) | uint64_t{fetchable} << w;
  fillable_ = (fillable_ & others) | uint64_t{fillable} << w;
}

inline void WarpTable::refresh_next(uint32_t w, Place at) {
  Warp& warp = warps_[w];
  const DecodedInstruction& next = next_instruction(w);
  at.masks.needs[static_cast<size_t>(warp.needed)] &= ~at.bit;
  warp.needed = next.unit;
  at.masks.needs[static_cast<size_t>(warp.needed)] |= at.bit;
  at.masks.shared = (at.masks.shared & ~at.bit) | (next.fixed.space == MemorySpace::Shared ? at.bit : 0);
  check_registers(w, next, at);
}

void WarpTable::start(uint32_t w, const DecodedKernel& kernel, CtaStream& stream, uint16_t cta_slot,
                      uint16_t index, uint64_t age) {
  Warp& warp = warps_[w];
  warp = Warp{};
  warp.kernel = &kernel;
  warp.stream = &stream;
  warp.cta_slot = cta_slot;
  warp.index_in_cta = index;
  ages_[w] = age;
  warp.resident = true;
  positions_[w] = {nowhere, kernel.slot};
  if (kernel.control_bits) dependences_.start(w, kernel.launch.registers_per_thread);
  change_masks(scheduler_of(w)).resident |= bit_of(w);
  refresh(w);
}

void WarpTable::retire(uint32_t w) {
  warps_[w].resident = false;
  left_stores_[w] += warps_[w].outstanding_stores;
  positions_[w].at = nowhere;
  SchedulerMasks& m = change_masks(scheduler_of(w));
  const uint64_t keep = ~bit_of(w);
  m.resident &= keep;
  m.has_instruction &= keep;
  m.finished &= keep;
  m.barrier &= keep;
  m.membar &= keep;
  m.async_copy &= keep;
  m.atomics &= keep;
  m.sleeping &= keep;
  m.constant &= keep;
  m.blocked &= keep;
  m.blocked_long &= keep;
  m.blocked_short &= keep;
  m.blocked_group &= keep;
  m.stopped &= keep;
  m.needs[static_cast<size_t>(warps_[w].needed)] &= keep;
  fetchable_ &= ~(uint64_t{1} << w);
  fillable_ &= ~(uint64_t{1} << w);
  finished_ &= ~(uint64_t{1} << w);
}

/// At the end of the warp's buffer.
inline void WarpTable::put_record(uint32_t w, const DynamicRecord& record) {
  Warp& warp = warps_[w];
  if (warp.held == 0) positions_[w].at = record.static_index;
  const uint32_t place = (warp.buffer_head + warp.held++) % buffer_capacity;
  warp.buffer[place] = {record.static_index, record.ticket, record.mask};
  if (warp.kernel->instructions[record.static_index].uses_record) records_[w][place] = record;
}

inline bool WarpTable::take_record(uint32_t w, uint64_t now) {
  Warp& warp = warps_[w];
  if (warp.plain_left > 0) {
    put_record(w, {.static_index = warp.plain_next++, .mask = warp.plain_mask});
    if (--warp.plain_left <= 1) warp.stream->prefetch(warp.index_in_cta, warp.plain_left);
    return true;
  }
  DynamicRecord record;
  switch (warp.stream->next(warp.index_in_cta, record, now)) {
    case CtaStream::Next::Record:
      put_record(w, record);
      warp.plain_left = warp.stream->take_plain(warp.index_in_cta);
      warp.plain_next = record.static_index + 1;
      warp.plain_mask = record.mask;
      return true;
    case CtaStream::Next::End:
      warp.obstacles.stream_ended = true;
      return false;
    case CtaStream::Next::NotYet:
      warp.obstacles.source_waits = true;
      stop(w);
      return false;
  }
  return false;
}

/// Ends the first `visible` records behind the first taken branch among them, which is none of those before
/// `first`: how many are left.
inline uint8_t WarpTable::stop_at_jump(Warp& warp, uint8_t first, uint8_t visible) const {
  const std::vector<DecodedInstruction>& code = warp.kernel->instructions;
  for (uint8_t i = first; i < visible && i + 1 < warp.held; ++i) {
    const uint32_t index = warp.buffer[(warp.buffer_head + i) % buffer_capacity].static_index;
    if (code[index].fixed.operation != Operation::Branch) continue;
    const uint32_t next = warp.buffer[(warp.buffer_head + i + 1) % buffer_capacity].static_index;
    if (code[next].fixed.pc == code[index].fixed.pc + volta_instruction_bytes) continue;
    warp.obstacles.jumps = true;
    return static_cast<uint8_t>(i + 1);
  }
  return visible;
}

void WarpTable::fill_buffer(uint32_t w, uint64_t now) {
  Warp& warp = warps_[w];
  const bool same_next = warp.buffered > 0;
  // Whether the last that could issue jumps may not have been known.
  const auto unknown = static_cast<uint8_t>(same_next ? warp.buffered - 1 : 0);
  while (!warp.obstacles.stream_ended && warp.held <= buffer_entries_ && take_record(w, now)) {
  }
  auto visible = static_cast<uint8_t>(warp.held < buffer_entries_ ? warp.held : buffer_entries_);
  if (stops_at_jumps_) visible = stop_at_jump(warp, unknown, visible);
  warp.in_pipeline += visible - warp.buffered;
  warp.buffered = visible;
  if (warp.held == 0 && warp.obstacles.stream_ended) finish(w);
  // What a scoreboard says of the next instruction changes only when registers are written; control bits also
  // look at the time.
  if (same_next && !next_instruction(w).issue.present)
    refresh_fetch(w);
  else
    refresh(w);
}

void WarpTable::read_ahead(uint32_t w, uint64_t now) {
  if (!warps_[w].obstacles.stream_ended) take_record(w, now);
}

bool WarpTable::advance(uint32_t w) {
  Warp& warp = warps_[w];
  warp.buffer_head = static_cast<uint8_t>((warp.buffer_head + 1) % buffer_capacity);
  --warp.buffered;
  --warp.held;
  if (warp.held > 0) positions_[w].at = warp.buffer[warp.buffer_head].static_index;
  const Place at = change_at(w);
  if (warp.buffered > 0) {
    refresh_fetch(w);
    refresh_next(w, at);
    return false;
  }
  const bool last = warp.held == 0 && warp.obstacles.stream_ended;
  if (last)
    finish(w);
  else if (warp.plain_left == 0)
    warp.stream->prefetch(warp.index_in_cta, 1);
  refresh_fetch(w);
  // What has issued was not blocked.
  at.masks.has_instruction &= ~at.bit;
  at.masks.needs[static_cast<size_t>(warp.needed)] &= ~at.bit;
  return last;
}

WarpFacts WarpTable::View::facts(uint32_t position) const {
  const uint32_t w = table_.slot_at(scheduler_, position);
  const Warp& warp = table_.warps_[w];
  WarpFacts facts{.cta_slot = warp.cta_slot, .index_in_cta = warp.index_in_cta, .issued = warp.issued};
  if (warp.buffered == 0) return facts;
  const DecodedInstruction& next = table_.next_instruction(w);
  facts.pc = next.fixed.pc;
  facts.unit = next.unit;
  facts.operation = next.fixed.operation;
  facts.space = next.fixed.space;
  return facts;
}

void WarpTable::finish(uint32_t w) {
  change_masks(scheduler_of(w)).finished |= bit_of(w);
  finished_ |= uint64_t{1} << w;
  touched_ |= uint64_t{1} << w;
}

void WarpTable::drop(uint32_t w) {
  Warp& warp = warps_[w];
  warp.dropped = true;
  warp.obstacles.stream_ended = true;
  warp.obstacles.source_waits = false;
  forget_stop(w);
  warp.in_pipeline -= warp.buffered;
  warp.held = warp.buffered = 0;
  warp.plain_left = 0;
  positions_[w].at = warp.issued_index;
  if (!warp.obstacles.fetch_pending) finish(w);  // otherwise it finishes when the fetch returns
  refresh(w);
}

void WarpTable::release(uint32_t w, const DecodedInstruction& instruction) {
  Warp& warp = warps_[w];
  if (warp.kernel->observed_blocks && instruction.fixed.destination_count > 0) [[unlikely]] {
    Latency& l = latency(*warp.kernel, instruction);
    l.cycles += static_cast<int64_t>(time_);
    ++l.ended;
  }
  if (instruction.issue.present) [[unlikely]] {
    dependences_.finish(w, instruction, time_);
    if (instruction.fixed.operation == Operation::AsyncCommit) update_async_wait(w);
  }
  remove(warp.pending, instruction.writes);
  if (instruction.memory_pipeline || instruction.constant_load) {
    remove(warp.pending_long, instruction.writes);
    remove(warp.pending_short, instruction.writes);
  }
  touched_ |= uint64_t{1} << w;
  if (masks_[scheduler_of(w)].blocked & bit_of(w)) check_registers(w);
}

void WarpTable::check_issue_rule(uint32_t w, const DecodedInstruction& next, Place at) {
  const DependenceCounters::Wait wait = dependences_.wait(w, next.issue, time_);
  if (wait == DependenceCounters::Wait::None) return;
  at.masks.blocked |= at.bit;
  if (wait != DependenceCounters::Wait::Counter) return;
  if (dependences_.waits_for_long(w, next.issue))
    at.masks.blocked_long |= at.bit;
  else if (dependences_.waits_for_short(w, next.issue))
    at.masks.blocked_short |= at.bit;
  else if (dependences_.waits_for_group(w, next.issue))
    at.masks.blocked_group |= at.bit;
}

void WarpTable::take_due_dependences() {
  for (uint64_t due = dependences_.take_due(time_); due; due &= due - 1) {
    const auto w = static_cast<uint32_t>(std::countr_zero(due));
    touched_ |= uint64_t{1} << w;
    if (masks_[scheduler_of(w)].has_instruction & bit_of(w)) check_registers(w);
  }
}

void WarpTable::lower_counter(uint32_t w, uint32_t counter) {
  dependences_.lower(w, counter);
  if (masks_[scheduler_of(w)].has_instruction & bit_of(w)) check_registers(w);
}

void WarpTable::atomics_returned(uint32_t w, uint32_t lanes) {
  Warp& warp = warps_[w];
  if (warp.outstanding_atomics == 0) return;
  warp.outstanding_atomics -= lanes < warp.outstanding_atomics ? lanes : warp.outstanding_atomics;
  touched_ |= uint64_t{1} << w;
  if (warp.outstanding_atomics == 0) change_masks(scheduler_of(w)).atomics &= ~bit_of(w);
}

uint32_t WarpTable::async_copy_started(uint32_t w) {
  Warp& warp = warps_[w];
  ++warp.async_groups.back().copies;
  return warp.first_async_group + static_cast<uint32_t>(warp.async_groups.size()) - 1;
}

void WarpTable::async_copy_done(uint32_t w, uint32_t group) {
  --warps_[w].async_groups[group - warps_[w].first_async_group].copies;
  touched_ |= uint64_t{1} << w;
  update_async_wait(w);
}

void WarpTable::async_wait(uint32_t w, int64_t open) {
  Warp& warp = warps_[w];
  const int64_t closed = warp.first_async_group + static_cast<int64_t>(warp.async_groups.size()) - 1;
  warp.async_wait_end = static_cast<uint32_t>(open < 0 || open > closed ? 0 : closed - open);
  change_masks(scheduler_of(w)).async_copy |= bit_of(w);
  update_async_wait(w);
}

void WarpTable::update_async_wait(uint32_t w) {
  Warp& warp = warps_[w];
  size_t complete = 0;
  for (; complete + 1 < warp.async_groups.size() && warp.async_groups[complete].copies == 0; ++complete)
    if (warp.async_groups[complete].counter != ControlBits::no_counter) [[unlikely]]
      lower_counter(w, warp.async_groups[complete].counter);
  warp.async_groups.erase(warp.async_groups.begin(),
                          warp.async_groups.begin() + static_cast<std::ptrdiff_t>(complete));
  warp.first_async_group += static_cast<uint32_t>(complete);
  if (warp.first_async_group >= warp.async_wait_end && !warp.awaits_bulk_copies)
    change_masks(scheduler_of(w)).async_copy &= ~bit_of(w);
}

void WarpTable::refresh(uint32_t w) {
  const Warp& warp = warps_[w];
  const Place at = change_at(w);
  refresh_fetch(w);
  if (warp.buffered > 0) {
    at.masks.has_instruction |= at.bit;
    refresh_next(w, at);
    return;
  }
  at.masks.has_instruction &= ~at.bit;
  at.masks.needs[static_cast<size_t>(warp.needed)] &= ~at.bit;
  at.masks.blocked &= ~at.bit;
  at.masks.blocked_long &= ~at.bit;
  at.masks.blocked_short &= ~at.bit;
  at.masks.blocked_group &= ~at.bit;
}

/// Records what its stream waits for.
void WarpTable::stop(uint32_t w) {
  const auto [m, bit] = change_at(w);
  const CtaStream::Awaits awaited = warps_[w].stream->awaits(warps_[w].index_in_cta);
  m.stopped |= bit;
  m.stopped_group &= ~bit;
  m.stopped_value &= ~bit;
  if (awaited == CtaStream::Awaits::WarpGroup) m.stopped_group |= bit;
  if (awaited == CtaStream::Awaits::Value) m.stopped_value |= bit;
}

void WarpTable::forget_stop(uint32_t w) {
  change_masks(scheduler_of(w)).stopped &= ~bit_of(w);
}

}  // namespace simt
