#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "stats/counters.hpp"
#include "timing/completion_wheel.hpp"
#include "timing/constant_cache.hpp"
#include "timing/controller.hpp"
#include "timing/cta_barriers.hpp"
#include "timing/execution_units.hpp"
#include "timing/in_flight.hpp"
#include "timing/instruction_cache.hpp"
#include "timing/load_store_unit.hpp"
#include "timing/memory/request.hpp"
#include "timing/operand_collector.hpp"
#include "timing/read_ports.hpp"
#include "timing/warp_scheduler.hpp"
#include "timing/warp_table.hpp"

namespace simt {

/// What one SM counts of one launch beyond Counters.
struct LaunchActivity {
  static constexpr size_t reasons = static_cast<size_t>(StallReason::Count);
  Counters counters{};
  std::array<uint64_t, reasons> warp_states{};                  ///< warp-cycles by state
  std::vector<std::array<uint64_t, reasons>> scheduler_cycles;  ///< per scheduler: cycles by what it did
  struct Executions {
    uint64_t warps = 0, threads = 0;
  };
  std::vector<Executions> executions;  ///< per static instruction
  std::vector<std::array<uint32_t, reasons>>
      samples;  ///< per static instruction: warps found there, by state
};

/// One streaming multiprocessor. It runs alone through a window of cycles: everything that reaches it from
/// outside in the window (replies, new CTAs) is known before, everything that it causes outside (requests,
/// finished CTAs) takes effect after.
class Sm {
 public:
  static constexpr Cycle sample_interval = 64;  ///< core cycles between samples of the warps' states

  struct CtaStart {
    const DecodedKernel* kernel = nullptr;
    std::shared_ptr<CtaStream> stream;
    uint64_t ordinal = 0;      ///< of the CTA in its launch
    uint32_t cta_slot = 0;     ///< chosen by the dispatcher
    uint32_t first_warp = 0;   ///< first warp slot
    Cycle cycle = 0;           ///< first cycle in which its warps can be fetched
    uint64_t thread_base = 0;  ///< of its first thread among the GPU's concurrent threads (local memory)
    uint64_t concurrent_threads = 1;
  };
  struct CtaEnd {
    uint32_t cta_slot = 0;
    uint16_t launch_slot = 0;
    Cycle cycle = 0;
  };

  /// deferral: core cycles from the issue of a deferred access to where its value can be used; no window is
  /// longer.
  Sm(const Spec& spec, uint16_t id, uint32_t launch_slots, Cycle deferral);

  void begin_launch(const DecodedKernel& kernel);
  void start_cta(CtaStart start) { starts_.push_back(std::move(start)); }
  void configure_l1(uint32_t ways) { load_store_.set_l1_ways(ways); }
  void invalidate_l1() { load_store_.invalidate_l1(); }
  /// A CTA that has not ended, and what its warps were doing.
  struct Dropped {
    std::shared_ptr<CtaStream> stream;
    uint32_t cta_slot = 0;
    Cycle begin = 0;
    struct Block {
      uint32_t warp = 0;   ///< in the CTA
      uint32_t block = 0;  ///< under way, or taken from the stream already
      Cycle elapsed = 0;   ///< since it began
    };
    std::vector<Block> blocks;   ///< where they are observed
    InstructionCounts buffered;  ///< taken from the stream, not issued
  };
  /// The CTAs of a launch execute nothing more from cycle `now` on, at which the SM stands.
  void drop(uint16_t slot, Cycle now, std::vector<Dropped>& dropped);

  /// Warps of clusters may have been let go by other SMs.
  void wake_clusters(Cycle now);

  /// Runs the cycles [begin, end).
  void run(Cycle begin, Cycle end);

  std::vector<MemoryReply>& replies() { return replies_; }
  std::vector<MemoryRequest>& requests() { return requests_; }
  /// Lines to ask a shared instruction cache for; the caller empties it.
  std::vector<LineFetch>& fetches() { return instruction_cache_.fetches(); }
  /// What a shared instruction cache answers.
  void deliver(const LineArrival& arrival);
  std::vector<CtaEnd>& ended_ctas() { return ended_; }
  /// An executed access whose effect comes at the end of the window in which it issued.
  struct Deferred {
    Cycle cycle = 0;
    std::shared_ptr<CtaStream> stream;
    uint32_t warp = 0, ticket = 0;
  };
  std::vector<Deferred>& deferred() { return deferred_; }
  /// What a launch's controller wants to see, by launch slot.
  struct Observed {
    std::vector<FinishedWarp> warps;
    std::vector<ExecutedBlock> blocks;
  };
  Observed& observed(uint16_t slot) { return observed_[slot]; }
  std::vector<WarpTable::Latency>& latencies(uint16_t slot) { return warps_.latencies(slot); }
  LoadStoreUnit& load_store() { return load_store_; }
  const Counters& counters(uint16_t slot) const { return counters_[slot]; }
  LaunchActivity& activity(uint16_t slot) { return activity_[slot]; }
  /// The next cycle in which it has something to do with what is known now; ~0 if it only waits for others.
  Cycle next_event() const { return std::min(own_event_, next_outside_event()); }
  bool has_work() const { return resident_ctas_ > 0 || !starts_.empty(); }
  /// What every warp waits for, for the explanation of a deadlock.
  std::string describe_waits() const;

 private:
  struct Cta {
    const DecodedKernel* kernel = nullptr;
    std::shared_ptr<CtaStream> stream;
    uint64_t ordinal = 0;
    Cycle begin = 0;
    uint32_t first_warp = 0;
    uint32_t warps_left = 0;
    uint64_t thread_base = 0, concurrent_threads = 1;
    CtaBarriers barriers{};
    std::vector<std::pair<uint64_t, uint32_t>> bulk_copies;  ///< outstanding, by mbarrier address
    uint64_t instructions = 0;                               ///< issued by its warps that have retired
  };

  void tick(Cycle now);
  void place(const CtaStart& start);
  void write_back(Cycle now);
  void execute(Cycle now);
  void read_operands();
  void issue(Cycle now);
  uint64_t available(uint32_t scheduler, uint64_t candidates, uint32_t excluded_units, Cycle now) const;
  bool constant_operand_there(uint32_t scheduler, uint32_t position, Cycle now);
  void find_constants(const WarpTable::Warp& warp, const DynamicRecord& record);
  void constants_come(Cycle now);
  void issue_instruction(uint32_t scheduler, uint32_t position, Cycle now);
  void start_memory_access(InFlight& instruction, const DynamicRecord& record);
  void arrive_at_barrier(uint32_t w, const StaticInstruction& s, const DynamicRecord& record);
  void release_barrier(const Cta& cta, uint64_t released);
  void bulk_copy_started(Cta& cta, uint64_t mbarrier);
  void bulk_copy_done(uint32_t cta_slot, uint64_t mbarrier);
  bool bulk_copies_pending(const Cta& cta, uint64_t mbarrier) const;
  void wait_for_bulk_copies(uint32_t w, uint64_t mbarrier);
  void sleep(uint32_t w, Cycle now, uint64_t nanoseconds);
  void wake_sleepers(Cycle now);
  void check_membars();
  void fetch(Cycle now);
  void fill_buffer(uint32_t w, Cycle now);
  void wake(uint32_t cta_slot);
  void retire_warps(Cycle now);
  void blocks_under_way(uint32_t w, Cycle now, std::vector<Dropped::Block>& out) const;
  void observe_issue(uint32_t w, uint32_t index, Cycle now);
  void observe_retirement(uint32_t w, Cycle now);
  void count_cycle(uint32_t scheduler, uint64_t issued_mask, uint64_t could_issue);
  void count_cycles(Cycle cycles);
  void sample(Cycle from, Cycle to);
  StallReason state_of(uint32_t w) const;
  Cycle find_next_event(Cycle now) const;
  Cycle next_outside_event() const;
  void pass_idle(Cycle from, Cycle to);

  const Spec& spec_;
  uint16_t id_;
  bool as_collector_;
  WarpTable warps_;
  InFlightPool pool_;
  OperandCollector collector_;
  std::vector<ReadPorts> read_ports_;
  ExecutionUnits units_;
  CompletionWheel wheel_;
  std::vector<WarpScheduler> schedulers_;
  std::vector<Counters> counters_;  // per launch slot; load_store_ refers to it
  std::vector<MemoryRequest> requests_;
  LoadStoreUnit load_store_;
  InstructionCache instruction_cache_;
  ConstantCache constant_cache_;
  std::vector<uint64_t> constants_;  // different addresses of a load of constant memory
  std::vector<LaunchActivity> activity_;
  std::vector<MemoryReply> replies_;
  size_t next_reply_ = 0;
  std::deque<LineArrival> line_arrivals_;  // cycles rising
  std::deque<CtaStart> starts_;
  std::vector<CtaEnd> ended_;
  std::vector<Cta> ctas_;
  Cycle deferral_;
  std::vector<Deferred> deferred_;
  std::vector<Observed> observed_;  // per launch slot
  struct Wake {
    Cycle cycle;
    uint32_t cta_slot;
  };
  std::deque<Wake> wakes_;  // CTAs whose streams may go on, in the order of time
  uint32_t resident_ctas_ = 0;
  uint64_t next_age_ = 0;      // of warps
  uint64_t next_issue_ = 0;    // of instructions
  uint32_t issue_first_ = 0;   // scheduler that goes first
  int32_t fetch_buffer_ = -1;  // warp fetched and not yet decoded
  uint32_t last_fetched_ = 0;  // warp slot; the turn begins after it
  bool changed_ = false;
  Cycle own_event_ = ~Cycle{0};  // next cycle in which something happens that no one else causes
  uint16_t stall_slot_ = 0;      // launch that scheduler cycles are counted for
  struct Sleeper {
    Cycle until;
    uint32_t warp;
    uint64_t age;  // of the warp: its slot may have another one by then
  };
  std::vector<Sleeper> sleepers_;
  // Read-ports model, per sub-core.
  std::vector<Cycle> issue_blocked_until_;
  struct QueuedAccess {
    uint32_t in_flight;
    Cycle leaves;
  };
  std::vector<std::deque<QueuedAccess>> access_queues_;
  std::vector<Cycle> last_access_left_;
  uint32_t next_access_queue_ = 0;
  // What the last cycle counted, for repeating it over skipped cycles.
  std::array<uint32_t, LaunchActivity::reasons> last_states_{};
  std::vector<StallReason> last_reasons_;
  std::vector<uint64_t> last_unit_busy_;  // per scheduler: warps whose unit took nothing
};

}  // namespace simt
