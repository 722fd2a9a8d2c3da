#include "machine/warp.hpp"

#include <algorithm>

namespace simt::functional {

constexpr uint32_t nothing = UINT32_MAX;

Warp::Warp(uint32_t number, uint32_t lanes, uint32_t pc, uint32_t frame_bytes)
    : number_(number), lanes_(lanes) {
  reserve_frames(frame_bytes);
  restart(pc);
}

void Warp::restart(uint32_t pc) {
  alive_ = lanes_;
  current_ = 0;
  run_length_ = waiting_ = 0;
  Split split;
  split.pc = pc;
  split.mask = lanes_;
  splits_.assign(1, split);
  meetings_.clear();
  first_unused_ = 0;
  dynamic_stacks.fill(0);
  std::fill(registers_.begin(), registers_.end(), Line{});
}

void Warp::reserve_frames(uint32_t bytes) {
  const size_t lines = (size_t{bytes} + sizeof(Line) - 1) / sizeof(Line);
  if (lines > registers_.size()) registers_.resize(lines);
}

Warp::Split* Warp::next_current() {
  for (;;) {
    if (current_ >= splits_.size() || splits_[current_].state != State::Ready) {
      size_t newest = splits_.size();
      while (newest > 0 && splits_[newest - 1].state != State::Ready) --newest;
      if (newest == 0) {
        if (leave_outermost_meeting()) continue;
        // No other split can reach the barrier: the oldest waiting split arrives alone.
        const auto arrival = std::find_if(splits_.begin(), splits_.end(),
                                          [](const Split& s) { return s.state == State::Arrival; });
        if (arrival == splits_.end()) return nullptr;
        arrival->state = State::Ready;
        newest = static_cast<size_t>(arrival - splits_.begin()) + 1;
      }
      current_ = newest - 1;
      run_length_ = waiting_ = 0;
    }
    Split& split = splits_[current_];
    if (split.pc != split.meeting_pc) return &split;
    add(take_current());  // released from a barrier directly before a meeting
  }
}

bool Warp::others_can_run(const Split& split) const {
  return std::any_of(splits_.begin(), splits_.end(),
                     [&](const Split& s) { return &s != &split && s.state == State::Ready; }) ||
         std::any_of(meetings_.begin(), meetings_.end(),
                     [](const Meeting& m) { return m.used && m.arrived != 0; });
}

/// Splits waiting at the outermost meeting, the most likely to exit, continue alone. False if there are none.
bool Warp::leave_outermost_meeting() {
  uint32_t outermost = nothing, least = nothing;
  for (uint32_t m = 0; m < meetings_.size(); ++m) {
    if (!meetings_[m].used || !meetings_[m].arrived) continue;
    uint32_t depth = 0;
    for (uint32_t outer = meetings_[m].outer; outer != nothing; outer = meetings_[outer].outer) ++depth;
    if (depth >= least) continue;
    least = depth;
    outermost = m;
  }
  if (outermost == nothing) return false;
  go_on_alone(outermost);
  return true;
}

/// The splits waiting at the meeting continue; the others will pass it without them.
void Warp::go_on_alone(uint32_t index) {
  Meeting& meeting = meetings_[index];
  Split free;
  free.mask = meeting.arrived;
  free.pc = meeting.pc;
  free.meeting = meeting.outer;
  free.meeting_pc = meeting.outer_pc;
  free.frame = meeting.frame;
  free.stack = meeting.stack;
  free.call = meeting.call;
  meeting.expected &= ~meeting.arrived;
  meeting.arrived = 0;
  add(free);
}

void Warp::end_turn() {
  const bool waits = waiting_ >= turn_waits;
  run_length_ = waiting_ = 0;
  if (!waits || current_ >= splits_.size()) return;
  for (uint32_t m = splits_[current_].meeting; m != nothing; m = meetings_[m].outer) {
    if (!meetings_[m].arrived) continue;
    go_on_alone(m);
    break;
  }
  for (size_t k = 1; k < splits_.size(); ++k) {
    const size_t next = (current_ + k) % splits_.size();
    if (splits_[next].state != State::Ready) continue;
    current_ = next;
    return;
  }
}

Warp::Split Warp::take_current() {
  const Split split = splits_[current_];
  splits_.erase(splits_.begin() + static_cast<std::ptrdiff_t>(current_));
  current_ = splits_.size();
  run_length_ = waiting_ = 0;
  return split;
}

uint32_t Warp::new_meeting(const Split& split, uint32_t pc, uint32_t expected) {
  uint32_t index = first_unused_;
  while (index < meetings_.size() && meetings_[index].used) ++index;
  first_unused_ = index + 1;
  if (index == meetings_.size()) meetings_.emplace_back();
  Meeting& m = meetings_[index];
  m = Meeting{};
  m.used = true;
  m.pc = pc;
  m.expected = expected;
  m.outer = split.meeting;
  m.outer_pc = split.meeting_pc;
  m.frame = split.frame;
  m.stack = split.stack;
  m.call = split.call;
  return index;
}

void Warp::end_meeting(uint32_t index) {
  meetings_[index].used = false;
  first_unused_ = std::min(first_unused_, index);
}

void Warp::resume(uint32_t index) {
  Meeting& m = meetings_[index];
  Split split;
  split.mask = m.arrived;
  split.pc = m.pc;
  split.meeting = m.outer;
  split.meeting_pc = m.outer_pc;
  split.frame = m.frame;
  split.stack = m.stack;
  split.call = m.call;
  end_meeting(index);
  add(split);
}

void Warp::add(Split split) {
  if (split.pc != split.meeting_pc) {
    splits_.push_back(split);
    current_ = splits_.size() - 1;
    return;
  }
  Meeting& m = meetings_[split.meeting];
  m.arrived |= split.mask;
  if (m.arrived == m.expected) resume(split.meeting);
}

/// Removes lanes from a meeting and those that enclose it, up to but excluding `last`.
void Warp::leave(uint32_t meeting, uint32_t lanes, uint32_t last) {
  while (meeting != last && meeting != nothing) {
    Meeting& m = meetings_[meeting];
    const uint32_t outer = m.outer;
    m.expected &= ~lanes;
    if (m.expected == 0)
      end_meeting(meeting);
    else if (m.expected == m.arrived)
      resume(meeting);
    meeting = outer;
  }
}

void Warp::diverge(uint32_t taken, uint32_t target, uint32_t next, uint32_t meet) {
  Split split = take_current();
  const bool known = split.meeting != nothing && split.meeting_pc == meet;
  if (!known && meet != nothing) {
    split.meeting = new_meeting(split, meet, split.mask);
    split.meeting_pc = meet;
  }
  Split other = split;
  split.mask &= ~taken;
  split.pc = next;
  other.mask &= taken;
  other.pc = target;
  // One may complete the meeting only once the other has arrived as well.
  add(other);
  add(split);
}

void Warp::go_to(uint32_t pc) {
  Split& split = splits_[current_];
  split.pc = pc;
  if (pc == split.meeting_pc) add(take_current());
}

void Warp::exit(uint32_t lanes, uint32_t next) {
  Split split = take_current();
  const uint32_t meeting = split.meeting;
  alive_ &= ~lanes;
  if (const uint32_t rest = split.mask & ~lanes) {
    split.mask = rest;
    split.pc = next;
    add(split);
  }
  leave(meeting, lanes, nothing);
  // Splits that wait for the exited lanes must check again.
  for (Split& s : splits_)
    if (s.state == State::Collective || s.state == State::Arrival || s.state == State::Convergence)
      s.state = State::Ready;
}

bool Warp::check_convergence(const std::function<bool(const Split&)>& which) {
  bool any = false;
  for (Split& s : splits_) {
    if (s.state != State::Convergence || !which(s)) continue;
    s.state = State::Ready;
    any = true;
  }
  return any;
}

void Warp::converge(uint32_t lanes, const std::function<uint32_t(uint32_t)>& next) {
  Split merged = take_current();
  merged.pc = next(merged.pc);
  std::erase_if(splits_, [&](Split& s) {
    if (s.state != State::Convergence || !(s.waiting & lanes)) return false;
    s.state = State::Ready;
    s.pc = next(s.pc);
    if (s.pc != merged.pc) return false;
    merged.mask |= s.mask;
    return true;
  });
  add(merged);
}

void Warp::call(uint32_t lanes, uint32_t target, uint32_t rest_pc, uint32_t return_pc, uint32_t frame,
                uint32_t stack_bytes, const Op* op) {
  Split split = take_current();
  const uint32_t rest = split.mask & ~lanes;
  if (rest && !(split.meeting != nothing && split.meeting_pc == return_pc)) {
    split.meeting = new_meeting(split, return_pc, split.mask);
    split.meeting_pc = return_pc;
  }
  Split caller = split;
  caller.mask = lanes;
  const uint32_t meeting = new_meeting(caller, return_pc, lanes);
  meetings_[meeting].call_op = op;
  if (rest) {
    split.mask = rest;
    split.pc = rest_pc;
    add(split);
  }
  caller.pc = target;
  caller.meeting = meeting;
  caller.meeting_pc = nothing;
  caller.call = meeting;
  caller.frame = frame;
  caller.stack += stack_bytes;
  add(caller);
}

void Warp::ret(uint32_t lanes, uint32_t next) {
  Split split = take_current();
  const uint32_t call = split.call, meeting = split.meeting;
  if (const uint32_t rest = split.mask & ~lanes) {
    split.mask = rest;
    split.pc = next;
    add(split);
  }
  leave(meeting, lanes, call);
  Meeting& m = meetings_[call];
  m.arrived |= lanes;
  if (m.arrived == m.expected) resume(call);
}

}  // namespace simt::functional
