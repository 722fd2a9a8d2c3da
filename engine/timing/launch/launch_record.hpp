#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "timing/control/controller.hpp"
#include "timing/core/sm.hpp"
#include "timing/dispatch/occupancy.hpp"
#include "timing/launch/timeline.hpp"
#include "timing/memory/memory_system.hpp"

namespace simt {

/// A controller's decisions and their effects.
struct Sampled {
  struct Taken {
    Cycle cycle = 0;  ///< since the first dispatch
    Decision decision;
  };
  std::vector<Taken> decisions;  ///< except those to continue
  uint64_t predicted_ctas = 0, skipped_ctas = 0;
  bool keeps_l2 = false;     ///< of a predicted launch: its buffers are not in the L2
  bool stopped = false;      ///< the record's counters and end are those at the time of the decision
  Cycle detailed_cycle = 0;  ///< end of what was simulated in detail
  Cycle released_cycle = 0;  ///< the end as seen by subsequent launches
  /// For programs: instructions executed without timing, which the record's counters do not include. No value
  /// if they were not counted.
  std::optional<InstructionCounts> executed = InstructionCounts{};

  bool in_full() const { return !stopped && predicted_ctas + skipped_ctas == 0; }
  void add_executed(const BlockCounts& counts) {
    if (executed && counts.executed)
      *executed += *counts.executed;
    else
      executed.reset();
  }
};

class SamplingControl;

/// The instructions of a kernel, which its launches share.
struct LaunchCode {
  std::vector<StaticInstruction> instructions;
  std::vector<std::string> opcodes;
};

/// A launch that the GPU is running.
struct RunningLaunch {
  RunningLaunch();
  ~RunningLaunch();

  std::shared_ptr<InstructionSource> source;
  std::unique_ptr<DecodedKernel> kernel;
  std::shared_ptr<LaunchCode> code;
  Occupancy occupancy{};
  Cycle start_cycle = 0;
  Cycle latency = 0;  ///< from start_cycle to the first dispatch
  Cycle first_dispatch = 0;
  uint64_t total_ctas = 0, done_ctas = 0;
  Cycle last_end = 0;  ///< cycle after the end of the last finished CTA
  Cycle drained = 0;   ///< dropped CTAs may leave their SMs later than they are predicted to end
  Timeline timeline{};
  std::unique_ptr<SamplingControl> control;  ///< nullptr: simulated in full

  bool done() const { return done_ctas >= total_ctas; }
};

/// The results of a finished launch.
struct LaunchRecord {
  LaunchInfo launch;
  Cycle start_cycle = 0;  ///< when the GPU could start it; launch latency follows
  Cycle end_cycle = 0;    ///< cycle after its last CTA ended
  Cycle launch_latency = 0;
  Occupancy occupancy{};
  LaunchActivity activity{};
  std::shared_ptr<LaunchCode> code;
  Timeline timeline{};
  struct SmShare {
    uint64_t warp_instructions = 0, active_cycles = 0, active_warp_cycles = 0;
  };
  std::vector<SmShare> sms;           ///< each SM's share of it
  std::vector<SliceActivity> slices;  ///< each L2 slice's activity for it
  std::optional<Sampled> sampled;     ///< for a launch with a controller
};

/// The record of a launch at this moment.
LaunchRecord record_of(const RunningLaunch& launch, const std::vector<std::unique_ptr<Sm>>& sms,
                       const MemorySystem& memory);

}  // namespace simt
