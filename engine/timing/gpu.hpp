#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "stats/counters.hpp"
#include "timing/controller.hpp"
#include "timing/decoded_kernel.hpp"
#include "timing/memory/memory_system.hpp"
#include "timing/occupancy.hpp"
#include "timing/shared_instruction_cache.hpp"
#include "timing/sm.hpp"
#include "timing/spec.hpp"
#include "timing/timeline.hpp"
#include "timing/worker_pool.hpp"

namespace simt {

/// Nothing can ever happen again although work is left. what() names the warps, what each waits for, and why.
class Deadlock : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What a controller decided, and what became of it.
struct Sampled {
  struct Taken {
    Cycle cycle = 0;  ///< since the first dispatch
    Decision decision;
  };
  std::vector<Taken> decisions;  ///< without those to go on
  uint64_t predicted_ctas = 0, skipped_ctas = 0;
  bool stopped = false;      ///< the record's counters and end are those of the moment of the decision
  Cycle detailed_cycle = 0;  ///< end of what was simulated in detail
  Cycle released_cycle = 0;  ///< end as the launches after it see it
  /// Of a program: instructions that are not in the record's counters, and were executed without timing.
  /// Without a value where they were not counted.
  std::optional<InstructionCounts> executed = InstructionCounts{};
};

/// What a finished launch leaves behind.
struct LaunchRecord {
  LaunchInfo launch;
  Cycle start_cycle = 0;  ///< when it became the GPU's to run; launch latency follows
  Cycle end_cycle = 0;    ///< cycle after its last CTA ended
  Cycle launch_latency = 0;
  Occupancy occupancy{};
  LaunchActivity activity{};
  std::vector<StaticInstruction> instructions;
  std::vector<std::string> opcodes;
  Timeline timeline{};
  struct SmShare {
    uint64_t warp_instructions = 0, active_cycles = 0, active_warp_cycles = 0;
  };
  std::vector<SmShare> sms;           ///< what each SM did of it
  std::vector<SliceActivity> slices;  ///< what each L2 slice did of it
  std::optional<Sampled> sampled;     ///< of a launch with a controller
};

struct GpuOptions {
  uint32_t threads = 1;
  Cycle window = 0;             ///< core cycles that SMs run alone; 0: the longest allowed
  Cycle timeline_interval = 0;  ///< core cycles; 0: no timeline
};

/// The whole GPU: SMs, memory system, CTA dispatch, and the queue of launches and copies.
///
/// Time passes in windows. In each, first the L2 slices and DRAM, then the replies, then every SM by itself,
/// then the requests move from its beginning to its end; CTAs are dispatched between windows, with an
/// explicit latency. No part sees another part's events of the same window, so the window's length and the
/// number of threads change nothing.
class Gpu {
 public:
  Gpu(const Spec& spec, const GpuOptions& options);
  ~Gpu();

  void copy_from_host(uint64_t address, uint64_t bytes);
  /// `id` is what the launch is called in its record. It starts when the launches of its stream that were
  /// queued before it, and those in `after`, have ended.
  /// A `controller` decides how much of it is simulated; nullptr: all.
  void launch(std::shared_ptr<InstructionSource> source, uint64_t id, std::vector<uint64_t> after = {},
              std::shared_ptr<Controller> controller = nullptr);

  /// Simulates until all queued work is done or `max_cycles` more cycles have passed, or a launch with a
  /// controller has ended, so that the controller can learn from it before the next one begins. True if all
  /// is done. Throws Deadlock.
  bool run(Cycle max_cycles);

  Cycle cycle() const { return now_; }
  Cycle window() const { return window_; }
  std::vector<LaunchRecord> take_finished() { return std::move(finished_); }

  struct Progress {
    Cycle cycle = 0;
    uint64_t warp_instructions = 0;
    uint64_t ctas_done = 0, ctas_total = 0;  ///< of the launches that run
    uint64_t launches_done = 0;
    std::vector<uint64_t> running;
  };
  Progress progress();

 private:
  struct Command {
    std::shared_ptr<InstructionSource> source;  // null: a copy
    uint64_t launch_id = 0;
    uint64_t address = 0, bytes = 0;
    std::vector<uint64_t> after;
    std::shared_ptr<Controller> controller;
  };
  /// A launch's controller, and what it has decided.
  struct Control {
    std::shared_ptr<Controller> controller;
    std::unique_ptr<BasicBlocks> blocks;  ///< where they are observed or predicted by
    uint64_t intervals = 0;               ///< observed
    Cycle next = ~Cycle{0};               ///< next observation
    struct Pending {
      Cycle effective;
      Decision decision;
    };
    std::deque<Pending> pending;
    Cycle effective() const { return pending.empty() ? ~Cycle{0} : pending.front().effective; }
    bool predicts = false;             ///< from CTA `first_predicted` on
    bool predicted_residents = false;  ///< those that were resident, too
    uint64_t first_predicted = ~uint64_t{0};
    Decision prediction;
    uint64_t timed_ctas = 0, ended_ctas = 0;  ///< of those simulated: dispatched, ended
    uint64_t executed = 0;                    ///< predicted CTAs below this have been executed
    BlockCounts counts;                       ///< of CTAs from first_counted on
    uint64_t first_counted = 0;
    std::vector<std::vector<double>> predicted_ends;  ///< by SM, of warps; where contention eases
    std::unique_ptr<LaunchRecord> stopped;            ///< as it was when Stop was decided
    Sampled sampled;
  };
  struct Running {
    std::shared_ptr<InstructionSource> source;
    std::unique_ptr<DecodedKernel> kernel;
    Occupancy occupancy{};
    Cycle start_cycle = 0;
    Cycle latency = 0;  // from start_cycle to the first dispatch
    Cycle first_dispatch = 0;
    uint64_t total_ctas = 0, next_cta = 0, done_ctas = 0;
    Cycle last_end = 0;
    Cycle drained = 0;  ///< CTAs that were dropped may leave their SMs later than they are predicted to end
    Cycle gone() const { return std::max(last_end, drained); }
    std::vector<uint32_t> ctas_on_sm;
    Timeline timeline{};
    std::unique_ptr<Control> control;  ///< nullptr: simulated in full
  };
  /// Resources of one SM that the dispatcher gives out.
  struct SmResources {
    uint64_t free_warps = 0;  // bit per warp slot
    uint64_t free_ctas = 0;   // bit per CTA slot
    uint32_t shared_left = 0, registers_left = 0;
    struct Held {
      uint16_t launch_slot = 0;
      uint32_t first_warp = 0, warps = 0, shared = 0, registers = 0;
      Cycle until = 0;  ///< predicted end of what was resident when its launch was predicted
    };
    std::vector<Held> held;  // by CTA slot
  };
  struct Freed {
    Cycle cycle;  // dispatch cycle from which the place can be used again
    uint16_t sm;
    uint32_t cta_slot;
    bool operator>(const Freed& other) const {
      return std::pair{cycle, sm} > std::pair{other.cycle, other.sm};
    }
  };

  void start_commands();
  bool is_unfinished(uint64_t id) const;
  void begin_launch(Command command, Cycle when);
  void step(Cycle end);
  /// Lets the shared instruction caches take the L2's replies (before the SMs run a window) or look up what
  /// the SMs have asked for (after it).
  void run_instruction_caches(bool after_window);
  bool couples_ctas() const;
  void perform_deferred();
  void collect_ended_ctas();
  void dispatch(Cycle limit);
  bool dispatch_to(uint16_t sm, Cycle cycle);
  std::optional<std::pair<uint32_t, uint32_t>> find_place(const SmResources& sm, const Running& launch) const;
  void finish_launches();
  LaunchRecord record_of(uint16_t slot);
  // Controllers (gpu_control.cpp).
  void begin_control(Running& launch, std::shared_ptr<Controller> controller);
  void control_launches();
  bool observes(const Running& launch) const;
  void observe(Running& launch);
  void take_decision(Running& launch, Decision decision, Cycle effective);
  void apply_decision(Running& launch);
  void stop(Running& launch);
  void skip(Running& launch, uint64_t ctas);
  void predict_residents(Running& launch);
  void predict(Running& launch, uint16_t sm, uint32_t cta_slot, uint64_t cta, Cycle cycle);
  void warm(const Running& launch, const Sampled& sampled);
  std::vector<Cycle> eased_ends(Running& launch, Cycle cycle);
  void ease(Running& launch, Cycle cycle);
  double predicted_cycles(Running& launch, uint64_t cta);
  static void left_out(Control& control, const BlockCounts& executed);
  /// What is resident of the launch, and its CTAs from `first` on, are executed without timing.
  /// `first_of_sm`: where each SM's CTAs begin among `dropped`.
  BlockCounts finish_dropped(Running& launch, std::vector<Sm::Dropped>& dropped,
                             std::vector<size_t>& first_of_sm, uint64_t first, const BasicBlocks* blocks);
  void execute_counting(Running& launch, uint64_t end);
  void execute_rest(Running& launch);
  Cycle next_control(const Running& launch) const;
  LaunchSlots slots_in_use() const;
  Cycle next_window_end(Cycle limit) const;
  [[noreturn]] void report_deadlock() const;

  Spec spec_;
  GpuOptions options_;
  uint16_t slots_;
  std::vector<std::unique_ptr<Sm>> sms_;
  std::unique_ptr<MemorySystem> memory_;
  std::vector<SharedInstructionCache> instruction_caches_;  // where SMs share them
  WorkerPool pool_;
  Cycle window_ = 1;
  Cycle now_ = 0;
  uint64_t launches_begun_ = 0;
  Cycle idle_since_ = 0;    // cycle after the last launch's end
  Cycle command_time_ = 0;  // earliest start of the next launch in order
  std::deque<Command> commands_;
  std::vector<std::unique_ptr<Running>> running_;  // by launch slot
  std::vector<SmResources> resources_;
  std::vector<Freed> freed_;    // a heap, the earliest first
  Cycle dispatched_until_ = 0;  // dispatch cycles below this are decided
  uint32_t last_dispatch_sm_;
  uint16_t last_slot_ = 0;
  std::vector<uint16_t> dispatchable_;  // launch slots that have CTAs to give out, in order of turn
  uint64_t launches_done_ = 0;
  uint64_t finished_warp_instructions_ = 0;
  std::vector<LaunchRecord> finished_;
  Cycle longest_window_ = 1;
  bool pause_ = false;  // a launch with a controller has ended
  TimelineSampler sampler_;
};

}  // namespace simt
