#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "isa/part_footprint.hpp"
#include "timing/base/spec.hpp"
#include "timing/core/shared_instruction_cache.hpp"
#include "timing/core/sm.hpp"
#include "timing/dispatch/cta_dispatcher.hpp"
#include "timing/dispatch/launch_queue.hpp"
#include "timing/gpu/worker_pool.hpp"
#include "timing/launch/launch_record.hpp"
#include "timing/launch/sampling_control.hpp"
#include "timing/launch/timeline.hpp"
#include "timing/memory/memory_system.hpp"

namespace simt {

/// No event can ever occur again although work remains. what() lists the warps, and what each waits for and
/// why.
class Deadlock : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct GpuOptions {
  uint32_t threads = 1;
  Cycle window = 0;             ///< core cycles for which SMs run independently; 0: the longest allowed
  Cycle timeline_interval = 0;  ///< core cycles; 0: no timeline
  bool rehearses = false;       ///< see WorkerPool
};

/// The whole GPU: connects SMs, memory system, CTA dispatcher, launch queue and sampling, and advances them
/// in time.
/// Time advances in windows. In each, the L2 slices and DRAM run from its beginning to its end, then the
/// replies, then each SM independently, then the requests; CTAs are dispatched between windows, with an
/// explicit latency. No component sees events of another from the same window, so neither the window's length
/// nor the number of threads affects results. With several threads, the requests of a window can wait, and
/// run beside the next one's slices.
class Gpu : private SampledMachine {
 public:
  Gpu(const Spec& spec, const GpuOptions& options);
  ~Gpu() override;

  void copy_from_host(uint64_t address, uint64_t bytes);
  /// In order with launches, as MemorySystem::set_aside() and reset_persisting().
  void set_aside(uint64_t bytes);
  void reset_persisting();
  /// As MemorySystem::set_peers().
  void set_peers(std::function<bool(uint64_t)> is_in_peer) { memory_->set_peers(std::move(is_in_peer)); }
  /// Puts what the CTAs from `first` on of a launch that is not simulated access into the L2, in order with
  /// launches and copies.
  void follow(std::shared_ptr<InstructionSource> source, uint64_t first);
  /// Executes CTAs [first, end) of a launch that is not simulated, now, and puts what they access into the
  /// L2. Returns what they execute. Nothing may be queued.
  InstructionCounts execute(InstructionSource& source, uint64_t first, uint64_t end);
  /// A launch is neither simulated nor executed: the L2 holds what it works on, as far as that fits, and
  /// instruction caches its code. Nothing may be queued.
  void leave_out(InstructionSource& source);
  /// `id` identifies the launch in its record. It starts when earlier launches of its stream, and those in
  /// `after`, have ended. A `controller` decides how much of it is simulated; nullptr: all of it.
  void launch(std::shared_ptr<InstructionSource> source, uint64_t id, std::vector<uint64_t> after = {},
              std::shared_ptr<Controller> controller = nullptr, const AccessWindow& window = {});
  /// Its duration follows from the specification. traffic: bytes over its link, see LaunchQueue::duration.
  void transfer(LaunchQueue::Transfer transfer, uint64_t traffic);

  /// Simulates until all queued work is done, or `max_cycles` more cycles have passed; or until a launch with
  /// a controller has ended, so that the controller can learn from it before the next one begins; or until
  /// one of `until` has ended, so that the host can continue; or until `seconds` of the host have passed,
  /// which changes no result. True if all work is done. Throws Deadlock, and whatever a transfer's `perform`
  /// throws, once that transfer has ended.
  bool run(Cycle max_cycles, const std::vector<uint64_t>& until = {},
           double seconds = std::numeric_limits<double>::infinity());

  /// What the L2 holds between launches. launches_begun: how many have begun; each has constants of its own
  /// there.
  struct L2Contents {
    uint64_t launches_begun = 0;
    std::vector<std::vector<CacheLine>> slices;
  };
  /// This GPU is a part of another one, with this share of its SMs, on which some CTAs of a launch run: the
  /// L2 holds of the other GPU's contents what these access, and the share of the rest. It also holds what
  /// they read together with others, but for the share that they would be the first to read.
  /// Returns how many lines and how many modified ones of the footprint the other GPU's L2 holds, and how
  /// many modified lines of the rest are taken over.
  std::array<uint64_t, 3> begin_as_part(const L2Contents& whole, const PartFootprint& footprint,
                                        double share);
  L2Contents l2_contents() const { return {launches_begun_, memory_->l2_contents()}; }
  /// Before the first launch. Throws std::invalid_argument if they are not those of such an L2.
  void restore_l2(const L2Contents& contents) {
    launches_begun_ = contents.launches_begun;
    memory_->restore_l2(contents.slices);
  }

  Cycle cycle() const { return now_; }
  Cycle window() const { return window_; }
  const Rehearsal& rehearsal() const { return pool_.rehearsal(); }
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
    uint64_t ctas_done = 0, ctas_total = 0;  ///< of the running launches
    uint64_t launches_done = 0;
    std::vector<uint64_t> running;
  };
  Progress progress();
  /// What the running launches and their warps do, to explain why they have not ended: lines, each with a
  /// newline before it; empty if none is running.
  std::string describe_work() const;

 private:
  void end_transfers();
  void start_launches();
  void begin_launch(LaunchQueue::Start start);
  std::shared_ptr<LaunchCode> shared_code(const InstructionSource& source);
  std::pair<uint64_t, uint64_t> code_range(const DecodedKernel& kernel) const;
  void warm_code(InstructionSource& source);
  void place_code(DecodedKernel& kernel);
  void start_cta(const CtaDispatcher::Placement& placement);
  void step(Cycle end, Cycle limit);
  void run_memory(Cycle end);
  bool requests_can_wait(Cycle limit) const;
  void run_waiting_requests();
  /// Something has happened to an SM.
  void note_events(uint32_t sm) {
    next_of_sm_[sm] = sms_[sm]->next_event();
    sm_rests_[sm] = sms_[sm]->rests();
  }
  void find_awake(Cycle end);
  void use_huge_pages_in_time();
  /// Passes the L2's replies to the shared instruction caches (before the SMs run a window), or lets the
  /// caches look up what the SMs have requested (after it).
  void run_instruction_caches(bool after_window);
  bool couples_ctas() const;
  void perform_deferred();
  void collect_ended_ctas();
  Cycle stores_end(uint16_t slot) const;
  Cycle finish_cycle(uint16_t slot) const;
  void finish_launches();
  void finish(uint16_t slot);
  void warm_l2(const InstructionSource& source);
  /// Lets controllers act, and dispatches the CTAs of the next window.
  void control_and_dispatch();
  void dispatch(Cycle limit);
  Cycle next_event() const;
  Cycle next_boundary(Cycle limit) const;
  Cycle window_end(Cycle next_event, Cycle limit) const;
  void sample_timeline();
  std::string describe(const RunningLaunch& launch) const;
  [[noreturn]] void report_deadlock() const;

  // Of controllers.
  void begin_observing(uint16_t slot, size_t latencies) override;
  Observation observe(const RunningLaunch& launch) override;
  LaunchRecord record(const RunningLaunch& launch) override { return record_of(launch, sms_, *memory_); }
  uint64_t warm(const Footprint& footprint, uint64_t cta) override;
  void keep_recent(double recent, const std::function<void()>& warming) override;
  std::vector<DroppedCta> drop(uint16_t slot) override;

  Spec spec_;
  GpuOptions options_;
  LaunchQueue queue_;
  CtaDispatcher dispatcher_;
  std::vector<std::unique_ptr<Sm>> sms_;
  std::unique_ptr<MemorySystem> memory_;
  std::vector<SharedInstructionCache> instruction_caches_;  // if SMs share them
  WorkerPool pool_;
  Cycle window_ = 1;
  Cycle longest_window_ = 1;
  Cycle now_ = 0;
  Cycle requests_until_ = 0;  // has the request network run
  uint64_t launches_begun_ = 0;
  uint64_t windows_ = 0;
  std::map<std::pair<std::string, size_t>, uint64_t>
      code_;  // base address, by name and number of instructions
  uint64_t next_code_;
  std::map<std::string, std::weak_ptr<LaunchCode>> shared_codes_;  // by the kernel's name
  std::vector<std::unique_ptr<RunningLaunch>> running_;            // by launch slot
  LaunchSlots slots_;                                              // in use, ascending
  // Of each SM, when something last happened to it: its next event, and whether it rests until then.
  std::vector<Cycle> next_of_sm_;
  std::vector<uint8_t> sm_rests_;
  std::vector<uint32_t> awake_;  // SMs that something happens to in this window
  uint64_t launches_done_ = 0;
  uint64_t finished_warp_instructions_ = 0;
  std::vector<LaunchRecord> finished_;
  std::vector<TransferRecord> finished_transfers_;
  bool pause_ = false;  // a launch with a controller has ended
  TimelineSampler sampler_;
};

}  // namespace simt
