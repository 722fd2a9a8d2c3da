#pragma once
#include <bit>
#include <vector>

#include "machine/block_map.hpp"
#include "machine/grid.hpp"
#include "machine/observer.hpp"

namespace simt::functional {

struct ClockWait;

/// Executes warps. One per host thread.
class Executor {
 public:
  enum class Stop : uint8_t {
    Budget,   ///< the requested number of instructions has been executed
    Yield,    ///< an instruction that waits did not succeed
    Blocked,  ///< all lanes are waiting, at barriers or for other lanes
    Finished
  };

  /// `concurrent`: other executors execute CTAs of this grid at the same time.
  explicit Executor(Grid& grid, bool concurrent = false);

  /// Runs a warp for at most `budget` instructions. Throws ProgramFault. If `counts` is given, counts how
  /// often the warp executes each block of `count_blocks`.
  Stop run(Cta& cta, Warp& warp, uint64_t budget, uint32_t* counts = nullptr);
  void count_blocks(const BlockMap* map) { blocks_ = map; }
  /// From now on, `run` adds to `timed` what the timing model would be given.
  void count_for_timing(const Lowering* lowering) { lowering_ = lowering; }
  /// From now on, `run` tells the recorder of accesses to memory; needs count_for_timing().
  void follow(FootprintRecorder* recorder) { recorder_ = recorder; }
  /// The CTA that runs next has this footprint, to be added to.
  void followed(Footprint& footprint) {
    if (followed_ == &footprint) return;
    followed_ = &footprint;
    recorder_->begin(footprint);
  }
  /// From now on, a warp yields when it repeatedly reads the same address, since it is waiting for another
  /// CTA.
  void yield_when_polling(bool yields) { yields_when_polling_ = yields; }
  /// The cycle used to order prints when executing without timing.
  void set_cycle(uint64_t cycle) { context_.cycle = cycle; }

  /// Executes one instruction of a warp that is neither blocked nor finished. Used with timing: `record`
  /// receives its access, `deferred` the access of a Deferred op, to be performed later.
  struct Step {
    bool executed = false;  ///< false: the warp now waits, or its lanes have split and will return here
    uint32_t op = 0;
    uint32_t mask = 0;  ///< lanes that executed
    uint32_t frame = 0, stack = 0;
  };
  Step step(Cta& cta, Warp& warp, AccessRecord* record, DeferredAccess* deferred, uint64_t cycle);
  /// Operands of the last barrier instruction.
  const BarrierRequest& last_barrier() const { return context_.barrier; }
  /// Duration of the last nanosleep, in nanoseconds.
  uint32_t last_sleep() const { return context_.sleep; }
  /// Performs an access that `step` deferred, for the same warp.
  void perform(Cta& cta, Warp& warp, DeferredAccess& access, std::byte* frame, uint32_t stack);

  uint64_t warp_instructions = 0, thread_instructions = 0;
  InstructionCounts timed;

 private:
  template <bool count_timed, bool follows, bool observes = false, bool tracks = false>
  Stop run_counting(Cta& cta, Warp& warp, uint64_t budget, uint32_t* counts);
  void count_op(uint32_t pc, uint32_t mask) {
    const uint32_t n = lowering_->of_op[pc].count;
    timed += {n, n * static_cast<uint32_t>(std::popcount(mask))};
  }
  void record_footprint(uint32_t pc);
  uint32_t policy_of(const Op& op, uint32_t mask) const;
  /// Whether the access at `pc` repeats so soon that the warp appears to be polling.
  bool polls(uint32_t pc) {
    constexpr uint64_t few = 8;  // enough for branches and the like
    constexpr uint32_t often = 4;
    repeated_ = pc == polled_pc_ && controls_ - polled_at_ < few ? repeated_ + 1 : 0;
    polled_pc_ = pc;
    polled_at_ = controls_;
    return repeated_ >= often;
  }
  InstructionCounts wait_for_clock(const ClockWait& wait, uint64_t most, uint32_t* counts);
  void enter(Cta& cta, Warp& warp);
  void load(const Warp::Split& split);
  bool control(const Op& op, uint32_t mask, Warp::Split& split);  ///< false: the warp should pause
  void branch_indirect(const Op& op, uint32_t mask, const Warp::Split& split);
  void jump(const Op& op, uint32_t mask, const Warp::Split& split);
  void call(const Op& op, const Warp::Split& split);

  // executor_collectives.cpp. Context::mask then contains all participating lanes.
  void collective(const Op& op, uint32_t mask, Warp::Split& split);
  void barrier(const Op& op, uint32_t mask, Warp::Split& split);
  void converge(const Op& op, uint32_t mask, Warp::Split& split);
  /// Machine code: who goes on together with lanes at a Control::Convergence.
  struct Convergence {
    uint32_t here = 0;             ///< lanes that wait for each other
    uint32_t common = UINT32_MAX;  ///< pc of a convergence_in_common_code
    bool complete = false;         ///< all whom they wait for are here, or wait in turn for them elsewhere
  };
  /// Tells the observer who has met, in groups of lanes with equal words of `members`.
  void report_met(const Op& op, uint32_t mask, const uint32_t* members) const;
  /// The lanes that a converging split with the lanes `lanes` waits for.
  uint32_t awaited_by(const Warp::Split& split, uint32_t lanes) const;
  Convergence convergence(const Warp::Split& split, uint32_t mask) const;
  /// Whether all lanes wait for others at BSYNCs, and the split is at the one that the fewest name: it need
  /// not wait for those who wait for it elsewhere. ptxas lets lanes leave the region of a BSYNC by a table of
  /// branches without a BREAK (sm_120).
  bool breaks_circle(const Warp::Split& split, uint32_t mask) const;
  /// Splits that need wait no longer can run. False if there are none.
  bool let_complete_converge();
  /// Runs `op` of `split` jointly with other instructions of its kind, at which the splits in `joined` wait.
  void run_joined(const Op& op, uint32_t mask, Warp::Split& split, const std::vector<Warp::Split*>& joined);
  std::byte* place_of(const Warp::Split& split, Place p);
  uint32_t members_of(const Warp::Split& split);  ///< of a split that waits in a collective
  static bool gathers(const Op& op) {
    return op.control == Control::Collective || op.control == Control::Barrier;
  }

  Grid& grid_;
  const Op* code_;
  bool machine_code_;
  Context context_;
  Cta* cta_ = nullptr;
  Warp* warp_ = nullptr;
  uint64_t ticks_ = 0;
  bool executed_ = false;
  bool yields_when_polling_ = false;
  uint32_t polled_pc_ = UINT32_MAX, repeated_ = 0;
  uint64_t polled_at_ = 0, controls_ = 0;
  const BlockMap* blocks_ = nullptr;
  const Lowering* lowering_ = nullptr;
  FootprintRecorder* recorder_ = nullptr;
  Footprint* followed_ = nullptr;
  Observer* observer_ = nullptr;
  const uint8_t* watched_ = nullptr;  ///< by Op: see Observer::Watch
  AccessRecord access_;               ///< of the last Op, if recorder_ or observer_ is set
};

/// A fault with its location.
ProgramFault located(const Fault& fault, const Grid& grid, const Cta* cta, const Warp* warp, uint32_t op);
/// Reports a deadlock: all warps of the CTAs wait for each other.
[[noreturn]] void deadlocked(Grid& grid, const std::vector<Cta*>& ctas);
/// Reports an endless wait: the warps of the CTAs only repeat themselves.
[[noreturn]] void waits_without_end(Grid& grid, const std::vector<Cta*>& ctas);

}  // namespace simt::functional
