#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "machine/code.hpp"

namespace simt::functional {

/// The threads of a warp: groups of lanes ("splits") that run together, and their reconvergence points
/// ("meetings").
/// Lanes that diverge at a branch reconverge at its immediate post-dominator. The newest split runs first. A
/// split that runs long while others could run takes turns with them, so that lanes waiting for others of
/// their warp (a lock) make progress, as under Volta's independent thread scheduling. For the same reason,
/// reconvergence is not mandatory: if no split can run, those waiting at a meeting continue without the
/// others.
/// Machine code has no meetings: lanes converge where it tells them to wait for each other.
class Warp {
 public:
  enum class State : uint8_t {
    Ready,
    Arrival,     ///< at a barrier, waits for the rest of its warp to arrive or exit
    Barrier,     ///< arrived at a barrier that is incomplete
    Collective,  ///< waits for lanes of its warp named by a member mask
    Convergence  ///< waits for lanes of its warp, to go on together with them
  };

  struct Split {
    uint32_t pc = 0;
    uint32_t mask = 0;
    uint32_t meeting = UINT32_MAX;  ///< index into the meetings, UINT32_MAX for none
    uint32_t meeting_pc = UINT32_MAX;
    uint32_t frame = 0;          ///< bytes: where its function's registers begin
    uint32_t stack = 0;          ///< bytes: where its function's stack frame begins
    uint32_t call = UINT32_MAX;  ///< the meeting of the innermost call, UINT32_MAX in the kernel itself
    State state = State::Ready;
    uint32_t waiting = 0;  ///< in State::Collective and Convergence: the lanes that execute the instruction
    /// The op at which it waits; the pc of a split that has arrived at a barrier is already past it.
    uint32_t waits_at() const { return state == State::Barrier ? pc - 1 : pc; }
  };

  /// Where lanes wait for each other: after a branch, or at the return of a call.
  struct Meeting {
    uint32_t pc = 0, expected = 0, arrived = 0;
    uint32_t outer = UINT32_MAX, outer_pc = UINT32_MAX;
    uint32_t frame = 0, stack = 0, call = UINT32_MAX;  ///< of the code at `pc`
    const Op* call_op = nullptr;                       ///< for the return of a call
    bool used = false;
  };

  Warp(uint32_t number, uint32_t lanes, uint32_t pc, uint32_t frame_bytes);
  /// As if newly made, in the memory that it has.
  void restart(uint32_t pc);

  uint32_t number() const { return number_; }
  uint32_t alive() const { return alive_; }
  bool finished() const { return alive_ == 0; }
  uint32_t lanes() const { return lanes_; }  ///< those that exist

  /// The split to run: the current one if it can run, else the newest that can. nullptr if all wait.
  Split* current() {
    if (current_ < splits_.size()) [[likely]] {
      Split& split = splits_[current_];
      if (split.state == State::Ready && split.pc != split.meeting_pc) return &split;
    }
    return next_current();
  }
  std::vector<Split>& splits() { return splits_; }
  const std::vector<Split>& splits() const { return splits_; }
  /// Whether lanes outside `split` could run before it. `split` may have no lanes.
  bool others_can_run(const Split& split) const;

  /// Lanes in `taken` go to `target`, the others of the current split to `next`; they reconverge at `meet`.
  void diverge(uint32_t taken, uint32_t target, uint32_t next, uint32_t meet);
  /// The current split continues at `pc`, where it waits for the splits it must reconverge with.
  void go_to(uint32_t pc);
  /// `lanes` of the current split exit; its other lanes go to `next`.
  void exit(uint32_t lanes, uint32_t next);
  /// `lanes` of the current split call the function at `target`, whose registers are at `frame` and whose
  /// stack frame is `stack_bytes` further; its other lanes go to `rest_pc`. All reconverge at `return_pc`.
  void call(uint32_t lanes, uint32_t target, uint32_t rest_pc, uint32_t return_pc, uint32_t frame,
            uint32_t stack_bytes, const Op* op);
  /// `lanes` of the current split, which is in a called function, return; its other lanes go to `next`.
  void ret(uint32_t lanes, uint32_t next);
  /// Splits in State::Convergence at which `lanes` wait, and the current split, go on, at `next` of their pc;
  /// those that go on at one instruction as the current split does become one with it.
  void converge(uint32_t lanes, const std::function<uint32_t(uint32_t)>& next);
  /// Splits in State::Convergence check again whom they wait for: those for which `which` holds. False if
  /// there are none.
  bool check_convergence(const std::function<bool(const Split&)>& which = [](const Split&) { return true; });
  /// The call that the split is executing.
  const Meeting& innermost_call(const Split& split) const { return meetings_[split.call]; }

  std::byte* frame(const Split& split) {
    return reinterpret_cast<std::byte*>(registers_.data()) + split.frame;
  }
  std::byte* frame_at(uint32_t offset) { return reinterpret_cast<std::byte*>(registers_.data()) + offset; }
  const std::byte* frame_at(uint32_t offset) const {
    return reinterpret_cast<const std::byte*>(registers_.data()) + offset;
  }
  /// Makes room for registers up to `bytes`. Invalidates pointers into frames.
  void reserve_frames(uint32_t bytes);
  /// Bytes taken by `alloca` at the end of each lane's local memory.
  std::array<uint32_t, warp_lanes> dynamic_stacks{};
  /// The maximum over `lanes`.
  uint32_t dynamic_stack(uint32_t lanes) const {
    uint32_t most = 0;
    for (uint32_t i = 0; i < warp_lanes; ++i)
      most = (lanes >> i) & 1 ? std::max(most, dynamic_stacks[i]) : most;
    return most;
  }
  /// Where the registers can begin of a function that the current split calls, from a frame that ends at
  /// `end`: beyond the frames of all functions that other lanes are executing. `frame_bytes` gives the frame
  /// size of the function that contains an op.
  template <class F>
  uint32_t free_frame(uint32_t end, F frame_bytes) const {
    // With only one split, all waiting lanes wait for it, in functions that enclose it.
    if (splits_.size() == 1) return end;
    for (const Split& s : splits_) end = std::max(end, s.frame + frame_bytes(s.pc));
    for (const Meeting& m : meetings_)
      if (m.used) end = std::max(end, m.frame + frame_bytes(m.pc));
    return end;
  }

  /// Detects whether the current split seems to wait for other lanes of this warp: it has run long, and has
  /// executed atomics or strong accesses. Lanes waiting for it at a meeting are then released.
  void count(bool may_wait) {
    ++run_length_;
    waiting_ += may_wait;
    if (run_length_ >= turn_length) end_turn();
  }

  /// As that many calls of `count` for what does not wait, after which no lane has waited.
  void count_idle(uint64_t times) {
    run_length_ = static_cast<uint32_t>((run_length_ + times) % turn_length);
  }
  /// Whether the current split may be waiting for other lanes.
  bool may_wait() const { return waiting_ > 0; }

 private:
  friend struct StateAccess;
  static constexpr uint32_t turn_length = 128;  ///< branches and waits; arbitrary, hardware's is unknown
  static constexpr uint32_t turn_waits = 16;

  Split* next_current();
  bool leave_outermost_meeting();
  void go_on_alone(uint32_t meeting);
  void end_turn();
  uint32_t new_meeting(const Split& split, uint32_t pc, uint32_t expected);
  void add(Split split);
  void resume(uint32_t meeting);
  void leave(uint32_t meeting, uint32_t lanes, uint32_t last);
  Split take_current();
  void end_meeting(uint32_t index);

  uint32_t number_, lanes_, alive_;
  size_t current_ = 0;
  uint32_t run_length_ = 0, waiting_ = 0;
  std::vector<Split> splits_;
  std::vector<Meeting> meetings_;
  uint32_t first_unused_ = 0;  ///< the meetings before it are used: deep recursion has many
  std::vector<Line> registers_;
};

}  // namespace simt::functional
