#pragma once
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "timing/control/sampling_control.hpp"
#include "timing/core/sm.hpp"
#include "timing/dispatch/cta_dispatcher.hpp"
#include "timing/dispatch/launch_queue.hpp"
#include "timing/launch_record.hpp"
#include "timing/memory/memory_system.hpp"
#include "timing/shared_instruction_cache.hpp"
#include "timing/spec.hpp"
#include "timing/timeline.hpp"
#include "timing/worker_pool.hpp"

namespace simt {

/// Nothing can ever happen again although work is left. what() names the warps, what each waits for, and why.
class Deadlock : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct GpuOptions {
  uint32_t threads = 1;
  Cycle window = 0;             ///< core cycles that SMs run alone; 0: the longest allowed
  Cycle timeline_interval = 0;  ///< core cycles; 0: no timeline
};

/// The whole GPU: puts SMs, memory system, CTA dispatcher, launch queue and sampling together, and lets time
/// pass for all of them.
///
/// Time passes in windows. In each, first the L2 slices and DRAM, then the replies, then every SM by itself,
/// then the requests move from its beginning to its end; CTAs are dispatched between windows, with an
/// explicit latency. No part sees another part's events of the same window, so the window's length and the
/// number of threads change nothing.
class Gpu : private SampledMachine {
 public:
  Gpu(const Spec& spec, const GpuOptions& options);
  ~Gpu() override;

  void copy_from_host(uint64_t address, uint64_t bytes);
  /// `id` is what the launch is called in its record. It starts when the launches of its stream that were
  /// queued before it, and those in `after`, have ended.
  /// A `controller` decides how much of it is simulated; nullptr: all.
  void launch(std::shared_ptr<InstructionSource> source, uint64_t id, std::vector<uint64_t> after = {},
              std::shared_ptr<Controller> controller = nullptr);
  /// Its cycles follow from the specification. traffic: bytes over its link, see LaunchQueue::duration.
  void transfer(LaunchQueue::Transfer transfer, uint64_t traffic);

  /// Simulates until all queued work is done or `max_cycles` more cycles have passed, or a launch with a
  /// controller has ended, so that the controller can learn from it before the next one begins, or one of
  /// `until` has ended, so that the host can go on. True if all is done. Throws Deadlock, and what a
  /// transfer's `perform` throws; that transfer has ended then.
  bool run(Cycle max_cycles, const std::vector<uint64_t>& until = {});

  Cycle cycle() const { return now_; }
  Cycle window() const { return window_; }
  std::vector<LaunchRecord> take_finished() { return std::move(finished_); }
  struct TransferRecord {
    uint64_t id = 0;
    Cycle start = 0, end = 0;
  };
  /// In the order in which they ended.
  std::vector<TransferRecord> take_finished_transfers() { return std::move(finished_transfers_); }

  struct Progress {
    Cycle cycle = 0;
    uint64_t warp_instructions = 0;
    uint64_t ctas_done = 0, ctas_total = 0;  ///< of the launches that run
    uint64_t launches_done = 0;
    std::vector<uint64_t> running;
  };
  Progress progress();

 private:
  void end_transfers();
  void start_launches();
  void begin_launch(LaunchQueue::Start start);
  void start_cta(const CtaDispatcher::Placement& placement);
  void step(Cycle end);
  void run_sm(uint32_t i, Cycle end);
  /// Lets the shared instruction caches take the L2's replies (before the SMs run a window) or look up what
  /// the SMs have asked for (after it).
  void run_instruction_caches(bool after_window);
  bool couples_ctas() const;
  void perform_deferred();
  void collect_ended_ctas();
  void finish_launches();
  void finish(uint16_t slot);
  void warm_l2(const InstructionSource& source);
  /// Lets controllers act, and gives out the CTAs of the next window.
  void control_and_dispatch();
  void dispatch(Cycle limit);
  Cycle next_event() const;
  Cycle window_end(Cycle next_event, Cycle limit) const;
  void sample_timeline();
  LaunchSlots slots_in_use() const;
  [[noreturn]] void report_deadlock() const;

  // Of controllers.
  void begin_observing(uint16_t slot, size_t latencies) override;
  Observation observe(const RunningLaunch& launch) override;
  LaunchRecord record(const RunningLaunch& launch) override { return record_of(launch, sms_, *memory_); }
  std::vector<DroppedCta> drop(uint16_t slot) override;

  Spec spec_;
  GpuOptions options_;
  LaunchQueue queue_;
  CtaDispatcher dispatcher_;
  std::vector<std::unique_ptr<Sm>> sms_;
  std::unique_ptr<MemorySystem> memory_;
  std::vector<SharedInstructionCache> instruction_caches_;  // where SMs share them
  WorkerPool pool_;
  Cycle window_ = 1;
  Cycle longest_window_ = 1;
  Cycle now_ = 0;
  uint64_t launches_begun_ = 0;
  std::vector<std::unique_ptr<RunningLaunch>> running_;  // by launch slot
  uint64_t launches_done_ = 0;
  uint64_t finished_warp_instructions_ = 0;
  std::vector<LaunchRecord> finished_;
  std::vector<TransferRecord> finished_transfers_;
  bool pause_ = false;  // a launch with a controller has ended
  TimelineSampler sampler_;
};

}  // namespace simt
