#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "isa/instruction_source.hpp"
#include "timing/memory/request.hpp"

namespace simt {

/// A controller's decision.
struct Decision {
  enum class Kind : uint8_t {
    GoOn,
    Stop,     ///< end the simulation of the launch
    Skip,     ///< leave out the next `ctas` CTAs of the grid
    Predict,  ///< only the dispatch of further CTAs is simulated
  };
  Kind kind = Kind::GoOn;
  std::string reason;
  uint64_t ctas = 0;
  // Predict: one of the three. Core cycles.
  double warp_cycles = 0;            ///< of each warp
  std::vector<double> block_cycles;  ///< of one execution of each basic block
  double launch_cycles = 0;          ///< of the whole launch, from its first dispatch; answers begin() only
  /// With the first two: CTAs that are resident are not simulated any further either. Their warps end when
  /// what is left of them has passed.
  bool residents = false;
  /// With `residents`, by SM: how much longer than predicted what is left there takes. Empty: as predicted.
  std::vector<double> sm_scale;
  /// By SM: warps that were resident while the times were measured; empty: times stay as they are when fewer
  /// are. `fastest`: how many times as fast a warp can get then.
  std::vector<double> sm_warps;
  double fastest = 1;
  bool in_turn = false;  ///< whether some run while others wait, rather than all alike
};

/// Cycles of the two below are absolute core cycles within the engine, and count from the launch's first
/// dispatch in an Observation.
struct FinishedWarp {
  uint64_t cta = 0;
  uint32_t warp = 0;
  Cycle begin = 0, end = 0;  ///< from when it can be fetched to the cycle after its retirement
};

/// One execution of a basic block by a warp, from the issue of its first instruction to the issue of the next
/// block's, or to the warp's end.
struct ExecutedBlock {
  uint32_t block = 0;
  uint64_t warp = 0;  ///< CTA * warps per CTA + warp
  Cycle begin = 0, end = 0;
};

/// What a controller observes at the end of an interval. Independent of host threads and windows.
struct Observation {
  uint64_t index = 0;
  Cycle begin = 0, end = 0;  ///< since the launch's first dispatch
  /// Since the launch's beginning: Counters::values, l1 and l2 by kind and outcome, then scheduler cycles and
  /// warp-cycles by StallReason.
  std::vector<uint64_t> counters;
  // Those that ended in the interval, in the order of end, SM, and what came first there.
  std::vector<FinishedWarp> warps;
  std::vector<ExecutedBlock> blocks;
  /// Where blocks are observed, by static instruction: mean core cycles from issue to the registers written,
  /// since the launch's beginning; NaN if it did not issue or writes none. Pending results count as written
  /// now.
  std::vector<double> latencies;
  /// By SM, since the launch's beginning.
  std::vector<uint64_t> sm_instructions, sm_warp_cycles;
  uint64_t l2_free_lines = 0;  ///< that have never held anything
};

/// Decides how much of one launch is simulated. Called by the thread that runs the GPU.
class Controller {
 public:
  struct Facts {
    std::shared_ptr<InstructionSource> source;
    uint32_t warps_per_cta = 0, ctas_per_sm = 0;
  };

  virtual ~Controller() = default;
  // Read after begin().
  virtual Cycle interval() const = 0;  ///< core cycles between observations, at least 1
  virtual bool wants_warps() const = 0;
  virtual bool wants_blocks() const = 0;
  /// Called before the launch is simulated.
  virtual Decision begin(const Facts& facts) = 0;
  /// At each interval's end, as long as something of the launch is simulated in detail. A decision takes
  /// effect as many cycles later as the longest window has.
  virtual Decision observe(const Observation& observation) = 0;
};

}  // namespace simt
