#pragma once
#include <bit>
#include <cstdint>
#include <vector>

#include "stats/counters.hpp"
#include "timing/base/ring_queue.hpp"
#include "timing/base/spec.hpp"
#include "timing/core/constant_cache.hpp"
#include "timing/core/cta_table.hpp"
#include "timing/core/instruction_cache.hpp"
#include "timing/core/load_store_unit.hpp"
#include "timing/warps/warp_table.hpp"

namespace simt {

/// Brings instructions into the warps' buffers, from the instruction caches and the CTAs' streams behind
/// them. The core model chooses which warps fetch.
class FrontEnd {
 public:
  FrontEnd(const Spec& spec, WarpTable& warps, CtaTable& ctas, std::vector<Counters>& counters)
      : caches_(spec), warps_(warps), ctas_(ctas), counters_(counters) {}

  InstructionCache& caches() { return caches_; }
  /// The streams of a CTA may continue from `cycle`. Cycles never decrease.
  void wake_at(Cycle cycle, uint32_t cta_slot) { wakes_.push_back({cycle, cta_slot}); }

  /// Takes what has arrived. True if anything changed.
  bool cycle(Cycle now, LoadStoreUnit& load_store, ConstantCache& constant_cache) {
    const bool nothing = wakes_.empty() && targets_.empty() && caches_.idle();
    return !nothing && take(now, load_store, constant_cache);
  }
  /// Whether the warp's next instruction is present; if not, its buffer is filled when it arrives.
  bool fetch(uint32_t w, Cycle now) { return caches_.perfect() || look_up(w, now); }
  /// The warp issued a taken branch. It fetches the target at `cycle`; cycles never decrease.
  void fetch_target(uint32_t w, Cycle cycle) {
    warps_.set_fetch_pending(w, true);
    targets_.push_back({cycle, w});
  }
  /// Fills the warp's instruction buffer.
  void fill(uint32_t w, Cycle now) {
    warps_.fill_buffer(w, now);
    // A stream with plain records follows a trace: no warp waits for it.
    const WarpTable::Warp& warp = warps_[w];
    if (warp.plain_left == 0 && warp.stream->take_woken()) ctas_.wake(warp.cta_slot);
  }
  /// The first warp in `wanted` (one bit per slot, not 0) after the one last returned.
  uint32_t next_in_turn(uint64_t wanted) {
    const uint64_t later = last_ >= 63 ? 0 : wanted & (~uint64_t{0} << (last_ + 1));
    last_ = static_cast<uint32_t>(std::countr_zero(later ? later : wanted));
    return last_;
  }

  uint32_t last_in_turn() const { return last_; }

  Cycle next_event(Cycle now) const;

 private:
  bool take(Cycle now, LoadStoreUnit& load_store, ConstantCache& constant_cache);
  bool look_up(uint32_t w, Cycle now) {
    const uint64_t pc = warps_.next_pc(w, now);
    const WarpTable::Warp& warp = warps_[w];
    if (warp.held == 0) return true;  // no record yet, or the end of the stream: fill() finds out
    const DecodedKernel& kernel = *warp.kernel;
    if (caches_.fetch(w, warps_.scheduler_of(w), kernel.code_base + pc, kernel.slot, now,
                      counters_[kernel.slot]))
      return true;
    warps_.set_fetch_pending(w, true);
    return false;
  }

  struct Wake {
    Cycle cycle;
    uint32_t cta_slot;
  };
  struct Target {
    Cycle cycle;
    uint32_t warp;  ///< slot
  };
  // What every cycle asks comes first.
  RingQueue<Wake> wakes_;
  RingQueue<Target> targets_;
  uint32_t last_ = 0;  // warp slot
  InstructionCache caches_;
  WarpTable& warps_;
  CtaTable& ctas_;
  std::vector<Counters>& counters_;
  std::vector<uint32_t> arrived_;  // warps whose instructions have arrived
};

}  // namespace simt
