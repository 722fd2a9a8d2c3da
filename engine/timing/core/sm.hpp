#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "stats/counters.hpp"
#include "timing/base/request.hpp"
#include "timing/core/activity.hpp"
#include "timing/core/address_generator.hpp"
#include "timing/core/constant_cache.hpp"
#include "timing/core/cta_table.hpp"
#include "timing/core/front_end.hpp"
#include "timing/core/in_flight.hpp"
#include "timing/core/instruction_cache.hpp"
#include "timing/core/load_store_unit.hpp"
#include "timing/core/tensor_queue.hpp"
#include "timing/core/warp_observer.hpp"
#include "timing/schedulers/warp_scheduler.hpp"
#include "timing/warps/core_traits.hpp"
#include "timing/warps/warp_table.hpp"

namespace simt {

/// A streaming multiprocessor: what its two core models share, and its external interfaces. It runs
/// independently through a window of cycles: everything that reaches it during the window (replies, new CTAs)
/// is known before, and everything it causes outside (requests, finished CTAs) takes effect afterwards.
class alignas(64) Sm {
 public:
  struct CtaEnd {
    uint32_t cta_slot = 0;
    uint16_t launch_slot = 0;
    Cycle cycle = 0;
  };
  /// An executed access that takes effect at the end of the window in which it issued.
  struct Deferred {
    Cycle cycle = 0;
    std::shared_ptr<CtaStream> stream;
    uint32_t warp = 0, ticket = 0;
  };

  /// An SM with the specification's core model. deferral: core cycles from the issue of a deferred access
  /// until its value can be used; no window is longer.
  static std::unique_ptr<Sm> make(const Spec& spec, uint16_t id, uint32_t launch_slots, Cycle deferral,
                                  MemoryPort& port);
  virtual ~Sm() = default;

  /// Runs the cycles [begin, end).
  virtual void run(Cycle begin, Cycle end) = 0;

  void begin_launch(const DecodedKernel& kernel) { recorder_.begin_launch(kernel, ctas_.resident() > 0); }
  void start_cta(CtaStart start) {
    starts_.push_back(std::move(start));
    find_arrival();
  }
  void configure_l1(uint32_t ways) { load_store_.set_l1_ways(ways); }
  void invalidate_l1() { load_store_.invalidate_l1(); }
  void insert_code(uint64_t begin, uint64_t end) { front_end_.caches().insert_code(begin, end); }
  /// The CTAs of a launch execute nothing more from `now` on, which is the SM's current cycle.
  void drop(uint16_t slot, Cycle now, std::vector<DroppedCta>& dropped);
  /// Warps of clusters may have been released by other SMs.
  void wake_clusters(Cycle now);

  /// Lines to request from a shared instruction cache; the caller empties it.
  std::vector<LineFetch>& fetches() { return front_end_.caches().fetches(); }
  /// Delivers the answer of a shared instruction cache.
  void deliver(const LineArrival& arrival);
  std::vector<CtaEnd>& ended_ctas() { return ended_; }
  /// Those of a launch, by all its warps on this SM.
  const WarpTable::Stores& stores(uint16_t launch_slot) const { return warps_.stores(launch_slot); }
  std::vector<Deferred>& deferred() { return deferred_; }

  /// What a launch's controller observes, by launch slot.
  WarpObserver::Observed& observed(uint16_t slot) { return observer_.observed(slot); }
  std::vector<WarpTable::Latency>& latencies(uint16_t slot) { return warps_.latencies(slot); }
  const Counters& counters(uint16_t slot) { return recorder_.counters(slot); }
  LaunchActivity& activity(uint16_t slot) { return recorder_.activity(slot); }
  /// The next cycle with something to do, as far as is known; ~0 if it only waits for others.
  Cycle next_event() const { return std::min(own_event_, next_outside_event()); }
  /// Whether running it, until its next event and while its port is empty, would change nothing.
  bool rests() const { return ctas_.resident() == 0 && ended_.empty() && !load_store_.counts_waiting(); }
  /// Describes what every warp waits for, to explain a deadlock.
  std::string describe_waits() const;
  /// Adds the resident warps of a launch to their numbers by what they do.
  void count_waits(uint16_t slot, std::map<std::string, uint64_t>& warps) const;

 private:
  // What the GPU asks of each SM in each window comes first, in two of the host's cache lines.
  std::vector<Deferred> deferred_;
  std::vector<CtaEnd> ended_;
  Cycle arrival_ = ~Cycle{0};  // of the first of starts_ and line_arrivals_

 protected:
  Cycle own_event_ = ~Cycle{0};  // next cycle with an event that the SM itself causes
  MemoryPort& port_;
  size_t next_reply_ = 0;     // of the port
  bool changed_ = false;      // something happened in this cycle, so the next one may differ
  bool membars_ = false;      // some warps may wait at a memory barrier
  uint32_t issue_first_ = 0;  // scheduler that goes first in the next cycle
  struct Sleeper {
    Cycle until;
    uint32_t warp;
    uint64_t age;  // of the warp: its slot may hold another one by then
  };
  std::vector<Sleeper> sleepers_;

  Sm(const Spec& spec, const CoreTraits& traits, uint16_t id, uint32_t launch_slots, Cycle deferral,
     MemoryPort& port);

  /// Places the CTAs and takes the instructions that have arrived.
  void take_arrivals(Cycle now);
  void wake_sleepers(Cycle now);
  /// Takes constant operands and loads of constants that have arrived.
  void take_constants(Cycle now);
  /// Whether the constant operand of a warp's next instruction, if any, is present.
  bool constant_operand_there(uint32_t w, const DecodedInstruction& next, Cycle now) {
    const uint32_t operand = next.constant_operand;
    return operand == StaticInstruction::no_constant || read_constant_operand(w, operand, now);
  }
  bool read_constant_operand(uint32_t w, uint32_t operand, Cycle now);
  void check_membars();
  /// A scheduler has chosen none of the warps that could issue.
  void asked_in_vain(uint32_t scheduler, Cycle now);
  /// Handles instructions that make warps wait for something other than registers.
  void synchronise(uint32_t w, const DecodedInstruction& instruction, const DynamicRecord& record,
                   uint32_t in_flight, Cycle now);
  /// The issuing instruction takes effect at the end of the window.
  void defer(const WarpTable::Warp& warp, uint32_t ticket, Cycle now);
  void finish_bulk_copies() {
    for (const LoadStoreUnit::BulkDone& done : load_store_.bulk_done())
      ctas_.bulk_copy_done(done.cta_slot, done.mbarrier);
    load_store_.bulk_done().clear();
  }
  void finish_tensor_commits(Cycle now) {
    changed_ |= tensor_queue_.finish(
        now, [this](const TensorQueue::Done& done) { ctas_.bulk_copy_done(done.cta_slot, done.mbarrier); });
  }
  /// Retires those of the warps in these slots that can.
  void retire_warps(Cycle now, uint64_t slots) {
    if (const uint64_t touched = warps_.take_touched(slots)) retire_touched(now, touched);
    changed_ |= warps_.any_touched();
  }
  /// A dropped warp may be between fetch and decode.
  virtual void forget_fetch(uint32_t w) = 0;

  Cycle next_shared_event(Cycle now) const;
  Cycle next_outside_event() const {
    if (next_reply_ == port_.replies.size()) return arrival_;
    return std::min(arrival_, port_.replies[next_reply_].cycle);
  }
  void pass_idle(Cycle from, Cycle to);
  void drop_taken_replies();

  const Spec& spec_;
  const CoreTraits& traits_;
  uint16_t id_;
  WarpTable warps_;
  InFlightPool pool_;
  CtaTable ctas_;
  ActivityRecorder recorder_;
  WarpObserver observer_;
  AddressGenerator addresses_;
  LoadStoreUnit load_store_;
  TensorQueue tensor_queue_;
  FrontEnd front_end_;
  ConstantCache constant_cache_;
  std::vector<std::unique_ptr<WarpScheduler>> schedulers_;
  Cycle ask_again_ = 0;  // when schedulers that chose none are to be asked, if after the current cycle

  /// The scheduler that follows is the first to be asked in the cycle in which an instruction that is issued
  /// now has left its unit. A fixed turn would favour one scheduler whenever the interval is a multiple of
  /// it.
  void put_last(uint32_t scheduler, uint32_t interval) {
    const uint32_t count = spec_.sm.sub_cores;
    issue_first_ = (scheduler + 1 + count - (interval - 1) % count) % count;
  }

 private:
  void retire_touched(Cycle now, uint64_t touched);
  void arrive_at_barrier(uint32_t w, const StaticInstruction& s, const DynamicRecord& record, Cycle now);
  /// threads: that the barrier is for; 0 for all of the CTA.
  void arrive_at_barrier(uint32_t w, uint64_t barrier, uint64_t threads, bool waits, Cycle now);
  void sleep(uint32_t w, Cycle now, uint64_t nanoseconds);
  std::string describe_wait(uint32_t w) const;
  void find_arrival();

  Cycle deferral_;
  // How many instructions its warps had issued when that last changed between refusals, and since when.
  uint64_t issued_before_ = ~uint64_t{0};
  Cycle in_vain_since_ = 0;
  std::deque<LineArrival> line_arrivals_;  // ascending cycles
  std::deque<CtaStart> starts_;
  std::vector<uint32_t> constant_warps_;             // whose operands have arrived
  std::vector<ConstantCache::Load> constant_loads_;  // that are complete
};

}  // namespace simt
