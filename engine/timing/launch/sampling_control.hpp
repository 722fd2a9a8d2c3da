#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "timing/control/controller.hpp"
#include "timing/dispatch/cta_dispatcher.hpp"
#include "timing/launch/launch_record.hpp"
#include "timing/launch/prediction.hpp"

namespace simt {

/// What sampling needs from the machine that runs a launch.
class SampledMachine {
 public:
  virtual ~SampledMachine() = default;
  /// Discards what was recorded earlier for the launch slot. latencies: number of static instructions whose
  /// latencies are wanted.
  virtual void begin_observing(uint16_t slot, size_t latencies) = 0;
  virtual Observation observe(const RunningLaunch& launch) = 0;
  virtual LaunchRecord record(const RunningLaunch& launch) = 0;
  /// A CTA that was left out has this footprint: puts it into the L2, where later CTAs would find it.
  /// Returns the sectors that would have been exchanged with DRAM.
  virtual uint64_t warm(const Footprint& footprint, uint64_t cta) = 0;
  /// Calls `warming`, which calls warm(). The share `recent` of each set of the L2, its most recently used
  /// lines, are so again afterwards: those of CTAs that are still resident.
  virtual void keep_recent(double recent, const std::function<void()>& warming) = 0;
  /// The launch's resident CTAs execute nothing more; returned in SM order.
  virtual std::vector<DroppedCta> drop(uint16_t slot) = 0;
};

/// Carries out the decisions of one launch's controller, which is called at the end of each interval.
/// Decisions take effect after a fixed delay, independent of where windows end.
class SamplingControl {
 public:
  struct Limits {
    uint32_t sms = 0;
    uint32_t threads = 1;  ///< host threads, for execution without timing
    Cycle delay = 0;       ///< core cycles from a decision to its effect
  };

  /// The referenced objects must outlive this; `launch` is about to begin at launch.first_dispatch.
  SamplingControl(std::shared_ptr<Controller> controller, RunningLaunch& launch, CtaDispatcher& dispatcher,
                  SampledMachine& machine, const Limits& limits);

  /// Gets the controller's first decision.
  void begin(Cycle now);
  /// Applies the decisions and makes the observations due at `now`.
  void advance(Cycle now);
  /// When the next decision takes effect; ~0 if none.
  Cycle next_effect() const { return pending_.empty() ? ~Cycle{0} : pending_.front().effective; }
  /// When advance() next has something to do.
  Cycle next_event() const { return std::min(observes() ? next_ : ~Cycle{0}, next_effect()); }

  /// A CTA has been placed. True if it is predicted, and must not be simulated.
  bool placed(const CtaDispatcher::Placement& placement);
  /// A simulated CTA has left its SM. Returns the cycle of its end if predicted before, else 0.
  Cycle left(uint32_t sm, uint32_t cta_slot, Cycle cycle);
  /// Whether all CTAs so far were simulated.
  bool in_full() const { return sampled_.in_full(); }
  /// Called when all CTAs are done. Returns the launch's record.
  LaunchRecord finish();

 private:
  struct Pending {
    Cycle effective;
    Decision decision;
  };
  bool observes() const;
  void observe(Cycle now, Cycle effective);
  void await_cta();
  void stop_observing();
  void take(Decision decision, Cycle now, Cycle effective);
  void apply(Decision decision, Cycle now);
  void stop(Cycle now);
  void skip(uint64_t ctas, double recent, Cycle now);
  void execute_skipped(uint64_t first, uint64_t end);
  void predict(Decision decision, Cycle now);
  void predict_launch(const Decision& decision);
  void predict_residents(Cycle now);
  void ease(Cycle cycle);
  /// Drops the resident CTAs; they, and the CTAs from `first` on, are executed without timing.
  BlockCounts execute_dropped(const std::vector<DroppedCta>& dropped, uint64_t first,
                              const BasicBlocks* blocks);

  std::shared_ptr<Controller> controller_;
  RunningLaunch& launch_;
  CtaDispatcher& dispatcher_;
  SampledMachine& machine_;
  Limits limits_;
  uint16_t slot_;
  std::unique_ptr<BasicBlocks> blocks_;           // if they are observed or used for prediction
  uint64_t intervals_ = 0;                        // observed
  Cycle begun_ = 0, next_ = ~Cycle{0};            // the interval under way: its begin and end, an observation
  uint64_t awaited_cta_ = ~uint64_t{0};           // whose dispatch ends it; ~0: none, or it is decided
  std::deque<std::pair<uint64_t, Cycle>> ahead_;  // CTAs whose dispatch is decided: ordinals, cycles
  std::deque<Pending> pending_;
  InstructionCounts skipped_{};
  uint64_t skipped_dram_sectors_ = 0;
  Sampled sampled_;
  CtaPrediction prediction_;
  bool predicted_residents_ = false;
  uint64_t timed_ctas_ = 0, ended_ctas_ = 0;                          // simulated: dispatched, ended
  std::map<std::pair<uint32_t, uint32_t>, Cycle> ends_of_residents_;  // predicted, by SM and CTA slot
  std::unique_ptr<LaunchRecord> stopped_;                             // at the time Stop was decided
};

}  // namespace simt
