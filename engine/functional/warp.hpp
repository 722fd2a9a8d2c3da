#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "functional/code.hpp"

namespace simt::functional {

/// The threads of a warp: groups of lanes ("splits") that run together, and where they will meet.
///
/// Lanes that diverge at a branch meet at its immediate post-dominator. Splits are run last created first;
/// where one runs for long while others could run, they take turns, so that lanes that wait for other lanes
/// of their warp (a lock) make progress, as with Volta's independent thread scheduling. For the same reason
/// meetings are not binding: if no split can run, those that wait at a meeting continue without the others.
class Warp {
 public:
  enum class State : uint8_t {
    Ready,
    Arrival,    ///< at a barrier, waits for the rest of its warp to come there too, or to exit
    Barrier,    ///< arrived at a barrier that is not complete
    Collective  ///< waits for lanes of its warp that a member mask names
  };

  struct Split {
    uint32_t pc = 0;
    uint32_t mask = 0;
    uint32_t meeting = UINT32_MAX;  ///< index into the meetings, UINT32_MAX for none
    uint32_t meeting_pc = UINT32_MAX;
    uint32_t frame = 0;          ///< bytes: where its function's registers begin
    uint32_t stack = 0;          ///< bytes: where its function's stack frame begins
    uint32_t call = UINT32_MAX;  ///< the innermost call's meeting, UINT32_MAX in the kernel itself
    State state = State::Ready;
    uint32_t waiting = 0;  ///< in State::Collective: the lanes that execute it
    /// The op at which it waits: who has arrived at a barrier stands behind it already.
    uint32_t waits_at() const { return state == State::Barrier ? pc - 1 : pc; }
  };

  /// Where lanes wait for each other: behind a branch, or when a call returns.
  struct Meeting {
    uint32_t pc = 0, expected = 0, arrived = 0;
    uint32_t outer = UINT32_MAX, outer_pc = UINT32_MAX;
    uint32_t frame = 0, stack = 0, call = UINT32_MAX;  ///< of the code at `pc`
    const Op* call_op = nullptr;                       ///< of a call's return
    bool used = false;
  };

  Warp(uint32_t number, uint32_t lanes, uint32_t pc, uint32_t frame_bytes);

  uint32_t number() const { return number_; }
  uint32_t alive() const { return alive_; }
  bool finished() const { return alive_ == 0; }
  uint32_t lanes() const { return lanes_; }  ///< those that exist

  /// The split to run: the current one if it can, else the newest that can. nullptr if all wait.
  Split* current() {
    if (current_ < splits_.size()) [[likely]] {
      Split& split = splits_[current_];
      if (split.state == State::Ready && split.pc != split.meeting_pc) return &split;
    }
    return next_current();
  }
  std::vector<Split>& splits() { return splits_; }
  const std::vector<Split>& splits() const { return splits_; }
  /// Whether lanes outside `split`, which may be none of them, could run before it does.
  bool others_can_run(const Split& split) const;

  /// The lanes of `taken` go to `target`, the others of the current split to `next`; both meet at `meet`.
  void diverge(uint32_t taken, uint32_t target, uint32_t next, uint32_t meet);
  /// The current split continues at `pc`, and waits there for the splits that it must meet.
  void go_to(uint32_t pc);
  /// `lanes` of the current split are done; its other lanes go to `next`.
  void exit(uint32_t lanes, uint32_t next);
  /// `lanes` of the current split call the function at `target`, whose registers lie at `frame` and whose
  /// stack lies `stack_bytes` further; its other lanes go to `rest_pc`. All meet at `return_pc`.
  void call(uint32_t lanes, uint32_t target, uint32_t rest_pc, uint32_t return_pc, uint32_t frame,
            uint32_t stack_bytes, const Op* op);
  /// `lanes` of the current split, which is in a called function, return; its other lanes go to `next`.
  void ret(uint32_t lanes, uint32_t next);
  /// The call that the split is in.
  const Meeting& innermost_call(const Split& split) const { return meetings_[split.call]; }

  std::byte* frame(const Split& split) {
    return reinterpret_cast<std::byte*>(registers_.data()) + split.frame;
  }
  std::byte* frame_at(uint32_t offset) { return reinterpret_cast<std::byte*>(registers_.data()) + offset; }
  /// Makes room for registers up to `bytes`. Moves them: pointers into frames are void afterwards.
  void reserve_frames(uint32_t bytes);
  /// Bytes at the end of each lane's local memory that `alloca` has taken.
  std::array<uint32_t, warp_lanes> dynamic_stacks{};
  /// The most of those of `lanes`.
  uint32_t dynamic_stack(uint32_t lanes) const {
    uint32_t most = 0;
    for (uint32_t i = 0; i < warp_lanes; ++i)
      most = (lanes >> i) & 1 ? std::max(most, dynamic_stacks[i]) : most;
    return most;
  }
  /// Where the registers of a function can begin that the current split calls from a frame that ends at
  /// `end`: beyond those of all functions that other lanes are in. `frame_bytes` gives the size of the frame
  /// of the function with this op.
  template <class F>
  uint32_t free_frame(uint32_t end, F frame_bytes) const {
    // Without another split, all lanes that wait do so for the current one, in functions around it.
    if (splits_.size() == 1) return end;
    for (const Split& s : splits_) end = std::max(end, s.frame + frame_bytes(s.pc));
    for (const Meeting& m : meetings_)
      if (m.used) end = std::max(end, m.frame + frame_bytes(m.pc));
    return end;
  }

  /// Whether the current split seems to wait for other lanes of this warp: it has run for long, with atomics
  /// or strong accesses in what it did. Those that wait for it at a meeting are then released.
  void count(bool may_wait) {
    ++run_length_;
    waiting_ += may_wait;
    if (run_length_ >= turn_length) end_turn();
  }

 private:
  static constexpr uint32_t turn_length = 128;  ///< branches and waits; arbitrary, hardware does not say
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

  uint32_t number_, lanes_, alive_;
  size_t current_ = 0;
  uint32_t run_length_ = 0, waiting_ = 0;
  std::vector<Split> splits_;
  std::vector<Meeting> meetings_;
  std::vector<Line> registers_;
};

}  // namespace simt::functional
