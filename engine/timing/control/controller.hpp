#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "isa/instruction_source.hpp"
#include "timing/base/request.hpp"

namespace simt {

/// A controller's decision.
struct Decision {
  enum class Kind : uint8_t {
    GoOn,
    Stop,     ///< end the simulation of the launch
    Skip,     ///< skip the next `ctas` CTAs of the grid
    Predict,  ///< simulate only the dispatch of further CTAs
  };
  Kind kind = Kind::GoOn;
  std::string reason;
  uint64_t ctas = 0;
  double recent = 0;  ///< for Skip: share of the L2's lines, the most recently used, that stay so
  // For Predict: one of the three, in core cycles.
  double warp_cycles = 0;            ///< per warp
  std::vector<double> block_cycles;  ///< per execution of each basic block
  double launch_cycles = 0;          ///< for the whole launch, from its first dispatch; only as an answer to
                                     ///< begin()
  bool executes = true;              ///< with launch_cycles: CTAs are executed, for the values they leave
  bool keeps_l2 = false;             ///< with launch_cycles: the L2 stays as it was before the launch
  /// With the first two: resident CTAs are no longer simulated either. Their warps end after their predicted
  /// remaining time.
  bool residents = false;
  /// With `residents`, by SM: factor between the actual and the predicted remaining time. Empty: as
  /// predicted.
  std::vector<double> sm_scale;
  /// By SM: warps resident while the times were measured. If empty, times do not change when fewer are
  /// resident. `fastest`: how many times faster a warp can get at most.
  std::vector<double> sm_warps;
  double fastest = 1;
  bool in_turn = false;  ///< whether some warps run while others wait, rather than all at the same rate
};

/// Cycles of the next two types are absolute core cycles within the engine; in an Observation, they count
/// from the launch's first dispatch.
struct FinishedWarp {
  uint64_t cta = 0;
  uint32_t warp = 0;
  Cycle begin = 0, end = 0;  ///< from when it can be fetched until the cycle after its retirement
};

/// One execution of a basic block by a warp, from the issue of its first instruction until the issue of the
/// next block's, or the end of the warp.
struct ExecutedBlock {
  uint32_t block = 0;
  uint64_t warp = 0;  ///< CTA * warps per CTA + warp
  Cycle begin = 0, end = 0;
};

/// What a controller observes at the end of an interval. Independent of host threads and windows.
struct Observation {
  uint64_t index = 0;
  Cycle begin = 0, end = 0;  ///< since the launch's first dispatch
  /// Since the beginning of the launch: Counters::values, l1 and l2 by kind and outcome, then scheduler
  /// cycles and warp-cycles by StallReason.
  std::vector<uint64_t> counters;
  // Those that ended in the interval, ordered by end, SM, and order within the SM.
  std::vector<FinishedWarp> warps;
  std::vector<ExecutedBlock> blocks;
  /// If blocks are observed, by static instruction: mean core cycles from issue to register write, since the
  /// beginning of the launch; NaN if it did not issue or writes no register. Pending results count as written
  /// now.
  std::vector<double> latencies;
  /// By SM, since the beginning of the launch.
  std::vector<uint64_t> sm_instructions, sm_warp_cycles;
  uint64_t l2_free_lines = 0;  ///< lines that have never held data
  /// CTAs left out so far, and the instructions they would have executed; of warps only if these are those of
  /// the input.
  uint64_t skipped_ctas = 0;
  InstructionCounts skipped{};
  uint64_t skipped_dram_sectors = 0;  ///< that they would have exchanged with DRAM
};

/// Decides how much of one launch is simulated. Called by the thread that runs the GPU.
class Controller {
 public:
  struct Facts {
    std::shared_ptr<InstructionSource> source;
    uint32_t warps_per_cta = 0, ctas_per_sm = 0;
  };

  virtual ~Controller() = default;
  /// Core cycles between observations, at least 1; read after begin() and after each observe().
  virtual Cycle interval() const = 0;
  /// If not ~0, it also observes when the next CTA with this ordinal or a later one has begun, and when a
  /// Skip has taken effect; what it decides then takes effect at once. Read after begin() and after each
  /// observe().
  virtual uint64_t awaited_cta() const { return ~uint64_t{0}; }
  // Read after begin().
  virtual bool wants_warps() const = 0;
  virtual bool wants_blocks() const = 0;
  /// Called before the launch is simulated.
  virtual Decision begin(const Facts& facts) = 0;
  /// Called at the end of each interval, as long as part of the launch is simulated in detail. A decision
  /// takes effect after a delay of the longest window.
  virtual Decision observe(const Observation& observation) = 0;
};

}  // namespace simt
