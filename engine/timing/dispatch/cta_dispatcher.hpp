#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "timing/base/request.hpp"
#include "timing/base/spec.hpp"
#include "timing/dispatch/dispatch_rate.hpp"

namespace simt {

/// Decides which CTA goes to which SM, in which cycle, and where on it: tracks each SM's warp slots, CTA
/// slots, registers and shared memory. It does not know what CTAs do; its user reports when they end.
class CtaDispatcher {
 public:
  /// The CTAs of one launch, and the resources each takes on an SM.
  struct Grid {
    uint64_t ctas = 0;
    Cycle first_dispatch = 0;
    uint32_t warps = 0, shared_bytes = 0, registers = 0;  ///< per CTA
    uint32_t ctas_per_sm = 0;                             ///< at most
    bool overcommits = false;  ///< needs more than an SM has: shared memory and registers are ignored
  };
  struct Placement {
    uint16_t launch_slot = 0, sm = 0;
    uint32_t cta_slot = 0, first_warp = 0;
    uint64_t cta = 0;  ///< ordinal in its grid
    Cycle cycle = 0;
  };

  CtaDispatcher(const Spec& spec, uint16_t launch_slots);

  void begin(uint16_t launch_slot, const Grid& grid);
  /// The launch has ended. The places of its CTAs are free, or become so.
  void end(uint16_t launch_slot);

  /// Decides the dispatch cycles before `limit` not yet decided, and calls `place(Placement)` for each CTA in
  /// order; `place` may call release(), also for this CTA. In each cycle every SM, starting after the one
  /// served last (or, with launch.from_first_sm, from the first one when a launch begins), gets at most one
  /// CTA: of the launch served last if possible, else of the next slot. The
  /// GPU starts no more CTAs than launch.peak_dispatch_rate and launch.dispatch_rate permit.
  template <class Place>
  void dispatch(Cycle limit, Place&& place);
  /// Dispatch cycles before this one are decided.
  Cycle decided_until() const { return decided_until_; }
  /// The first cycle from which a place becomes free or a launch can begin; ~0 if none.
  Cycle next_event() const;

  /// The ordinal of the launch's next CTA.
  uint64_t next_cta(uint16_t launch_slot) const { return grids_[launch_slot].next; }
  /// CTAs before `next` are not dispatched.
  void skip_to(uint16_t launch_slot, uint64_t next) {
    grids_[launch_slot].next = next;
    leftover_ = true;
  }

  /// A CTA ends at `cycle`. Its place can be reused launch.dispatch_latency later.
  void release(uint16_t sm, uint32_t cta_slot, Cycle cycle);
  /// CTAs of the launch whose end is known end at the latest at `ends`, by SM.
  void release_no_later(uint16_t launch_slot, const std::vector<Cycle>& ends);

 private:
  struct Progress {
    Grid grid{};
    uint64_t next = 0;
    std::vector<uint32_t> on_sm;  ///< CTAs on each SM; empty: no launch
    bool has_ctas() const { return next < grid.ctas; }
  };
  static constexpr uint16_t ended = 0xffff;  // in place of a launch slot
  struct Held {
    uint16_t launch_slot = ended;
    uint32_t first_warp = 0, warps = 0, shared_bytes = 0, registers = 0;
  };
  struct SmResources {
    uint64_t free_warps = 0;  // bit per warp slot
    uint64_t free_ctas = 0;   // bit per CTA slot
    uint32_t shared_left = 0, registers_left = 0;
    std::vector<Held> held;  // by CTA slot
  };
  struct Freed {
    Cycle cycle;  // dispatch cycle from which the place can be reused
    uint16_t sm;
    uint32_t cta_slot;
    bool operator>(const Freed& other) const {
      return std::pair{cycle, sm} > std::pair{other.cycle, other.sm};
    }
  };

  bool begin_cycle(Cycle cycle);
  /// The first cycle in which the rates permit another CTA.
  Cycle next_start() const { return std::max(peak_rate_.next(), rate_.next()); }
  void take_back(const Freed& freed);
  Cycle next_possible(Cycle cycle) const;
  std::optional<Placement> place_on(uint16_t sm, Cycle cycle);
  std::optional<std::pair<uint32_t, uint32_t>> find_place(const SmResources& sm, const Grid& grid) const;

  Cycle latency_;
  bool from_first_sm_;
  DispatchRate peak_rate_, rate_;
  bool held_back_ = false;       // the last cycle visited had CTAs that the rates did not permit
  bool leftover_ = false;        // the last cycle visited dispatched CTAs, so the next one may as well
  std::vector<Progress> grids_;  // by launch slot
  std::vector<uint16_t> slots_;  // of launches that have not ended, ascending
  std::vector<SmResources> sms_;
  std::vector<Freed> freed_;  // a heap, earliest first
  Cycle decided_until_ = 0;
  uint32_t last_sm_;
  uint16_t last_slot_ = 0;
  std::vector<uint16_t> dispatchable_;  // launch slots that have CTAs to dispatch, in turn
};

template <class Place>
void CtaDispatcher::dispatch(Cycle limit, Place&& place) {
  // Only cycles in which something becomes possible are visited.
  Cycle cycle = decided_until_;
  while (cycle < limit) {
    if (!leftover_) {
      cycle = std::max(cycle, next_possible(cycle));
      if (cycle >= limit) break;
    }
    leftover_ = held_back_ = false;
    if (begin_cycle(cycle)) {
      const auto count = static_cast<uint32_t>(sms_.size());
      const uint32_t first = last_sm_;
      for (uint32_t i = 0; i < count && !held_back_; ++i) {
        const auto sm = static_cast<uint16_t>((first + 1 + i) % count);
        if (cycle < next_start()) {
          held_back_ = true;
          continue;
        }
        const std::optional<Placement> placement = place_on(sm, cycle);
        if (!placement) continue;
        peak_rate_.started(cycle);
        rate_.started(cycle);
        place(*placement);
        last_sm_ = sm;
        leftover_ = true;
      }
    }
    ++cycle;
  }
  decided_until_ = std::max(decided_until_, limit);
}

}  // namespace simt
