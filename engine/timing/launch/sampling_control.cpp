#include "timing/launch/sampling_control.hpp"

#include <algorithm>
#include <cmath>

namespace simt {
namespace {

constexpr Cycle begun = 2;  // cycles after its dispatch, a CTA is among those counted

}  // namespace

SamplingControl::SamplingControl(std::shared_ptr<Controller> controller, RunningLaunch& launch,
                                 CtaDispatcher& dispatcher, SampledMachine& machine, const Limits& limits)
    : controller_(std::move(controller)),
      launch_(launch),
      dispatcher_(dispatcher),
      machine_(machine),
      limits_(limits),
      slot_(launch.kernel->slot),
      prediction_(*launch.source, launch.total_ctas, launch.kernel->warps_per_cta, limits.threads, sampled_) {
}

void SamplingControl::begin(Cycle now) {
  Controller::Facts facts;
  facts.source = launch_.source;
  facts.warps_per_cta = launch_.kernel->warps_per_cta;
  facts.ctas_per_sm = launch_.occupancy.ctas_per_sm;
  Decision first = controller_->begin(facts);
  begun_ = launch_.first_dispatch;
  next_ = begun_ + controller_->interval();
  await_cta();
  launch_.kernel->observes_warps = controller_->wants_warps();
  if (controller_->wants_blocks()) {
    blocks_ = std::make_unique<BasicBlocks>(launch_.source->instructions(), launch_.source->leaders());
    launch_.kernel->observed_blocks = blocks_.get();
  }
  machine_.begin_observing(slot_, blocks_ ? launch_.kernel->instructions.size() : 0);
  sampled_.detailed_cycle = launch_.first_dispatch;
  take(std::move(first), now, launch_.first_dispatch);
}

void SamplingControl::take(Decision decision, Cycle now, Cycle effective) {
  if (decision.kind == Decision::Kind::GoOn) return;
  const Cycle cycle = std::max(now, launch_.first_dispatch);
  sampled_.decisions.push_back({cycle - launch_.first_dispatch, decision});
  if (decision.kind == Decision::Kind::Stop) {
    stopped_ = std::make_unique<LaunchRecord>(machine_.record(launch_));
    stopped_->end_cycle = cycle;
    sampled_.stopped = true;
    stop_observing();
  }
  pending_.push_back({effective, std::move(decision)});
}

void SamplingControl::stop_observing() {
  next_ = ~Cycle{0};
  launch_.kernel->observes_warps = false;
  launch_.kernel->observed_blocks = nullptr;
}

/// True as long as part of the launch is simulated in detail.
bool SamplingControl::observes() const {
  if (next_ == ~Cycle{0} || launch_.done()) return false;
  return dispatcher_.next_cta(slot_) < std::min(prediction_.first(), launch_.total_ctas) ||
         ended_ctas_ < timed_ctas_;
}

void SamplingControl::advance(Cycle now) {
  while (!ahead_.empty() && ahead_.front().second + begun <= now) ahead_.pop_front();
  while (next_effect() <= now) {
    Decision decision = std::move(pending_.front().decision);
    pending_.pop_front();
    if (!launch_.done()) apply(std::move(decision), now);
  }
  if (next_ > now) return;
  if (observes())
    observe(now, now + limits_.delay);
  else
    next_ = ~Cycle{0};
}

/// The interval ends when the CTA that the controller waits for is dispatched, if not before.
void SamplingControl::await_cta() {
  awaited_cta_ = controller_->awaited_cta();
  for (const auto& [cta, cycle] : ahead_)
    if (cta >= awaited_cta_) {
      next_ = std::min(next_, cycle + begun);
      break;
    }
}

void SamplingControl::observe(Cycle now, Cycle effective) {
  Observation observation = machine_.observe(launch_);
  observation.index = intervals_++;
  observation.end = next_ - launch_.first_dispatch;
  observation.begin = begun_ - launch_.first_dispatch;
  observation.skipped_ctas = sampled_.skipped_ctas;
  observation.skipped = skipped_;
  observation.skipped_dram_sectors = skipped_dram_sectors_;
  begun_ = next_;
  Decision decision = controller_->observe(observation);
  next_ += controller_->interval();
  await_cta();
  take(std::move(decision), now, effective);
}

void SamplingControl::apply(Decision decision, Cycle now) {
  switch (decision.kind) {
    case Decision::Kind::GoOn:
      break;
    case Decision::Kind::Stop:
      stop(now);
      break;
    case Decision::Kind::Skip:
      skip(decision.ctas, decision.recent, now);
      break;
    case Decision::Kind::Predict:
      if (decision.launch_cycles > 0)
        predict_launch(decision);
      else if (!predicted_residents_)  // otherwise nothing is left to be predicted differently
        predict(std::move(decision), now);
      break;
  }
}

BlockCounts SamplingControl::execute_dropped(const std::vector<DroppedCta>& dropped, uint64_t first,
                                             const BasicBlocks* blocks) {
  std::vector<std::shared_ptr<CtaStream>> streams;
  streams.reserve(dropped.size());
  for (const DroppedCta& d : dropped) streams.push_back(d.stream);
  BlockCounts rest = launch_.source->finish(streams, first, blocks, limits_.threads);
  if (rest.executed)
    for (const DroppedCta& d : dropped) *rest.executed += d.buffered;
  sampled_.add_executed(rest);
  return rest;
}

void SamplingControl::stop(Cycle now) {
  const uint64_t next = dispatcher_.next_cta(slot_);
  execute_dropped(machine_.drop(slot_), std::max(std::min(next, prediction_.first()), prediction_.executed()),
                  nullptr);
  if (sampled_.executed) {
    // Issued between the decision and now: not part of the record.
    const Counters then = stopped_->activity.counters, at_drop = machine_.record(launch_).activity.counters;
    for (auto [counter, member] :
         {std::pair{Counter::warp_instructions, &InstructionCounts::warp_instructions},
          std::pair{Counter::thread_instructions, &InstructionCounts::thread_instructions}})
      *sampled_.executed.*member += at_drop[counter] - then[counter];
  }
  prediction_.executed_all();
  launch_.done_ctas += launch_.total_ctas - next;
  dispatcher_.skip_to(slot_, launch_.total_ctas);
  launch_.last_end = std::max(launch_.last_end, now);
}

/// Executes CTAs without timing, and puts what they access into the L2.
void SamplingControl::execute_skipped(uint64_t first, uint64_t end) {
  const uint64_t cluster = launch_.source->cluster_size();
  const uint64_t at_once = (followed_at_once / cluster + 1) * cluster;
  std::vector<Footprint> footprints;
  for (; first < end; first += at_once) {
    const uint64_t last = std::min(first + at_once, end);
    const BlockCounts counts = launch_.source->execute(first, last, nullptr, limits_.threads, &footprints);
    sampled_.add_executed(counts);
    skipped_ += {counts.warp_instructions, counts.thread_instructions};
    for (size_t i = 0; i < footprints.size(); ++i)
      skipped_dram_sectors_ += machine_.warm(footprints[i], first + i);
  }
}

void SamplingControl::skip(uint64_t ctas, double recent, Cycle now) {
  // CTAs whose order matters may wait for skipped ones, or the reverse.
  if (prediction_.begun() || launch_.source->order_matters()) return;
  const uint64_t next = dispatcher_.next_cta(slot_), cluster = launch_.source->cluster_size();
  if (next % cluster != 0) return;
  ctas = std::min(ctas / cluster * cluster, launch_.total_ctas - next);
  machine_.keep_recent(recent, [&] { execute_skipped(next, next + ctas); });
  dispatcher_.skip_to(slot_, next + ctas);
  launch_.done_ctas += ctas;
  sampled_.skipped_ctas += ctas;
  launch_.last_end = std::max(launch_.last_end, now);
  if (awaited_cta_ == ~uint64_t{0} || !observes()) return;
  next_ = now;
  observe(now, now);  // no dispatch from now on is decided yet
}

void SamplingControl::predict_launch(const Decision& decision) {
  prediction_.begin(dispatcher_.next_cta(slot_));
  if (!decision.executes) prediction_.executed_all();
  sampled_.keeps_l2 = decision.keeps_l2;
  sampled_.predicted_ctas = launch_.total_ctas;
  dispatcher_.skip_to(slot_, launch_.total_ctas);
  launch_.done_ctas = launch_.total_ctas;
  launch_.last_end = launch_.first_dispatch + static_cast<Cycle>(std::llround(decision.launch_cycles));
}

void SamplingControl::predict(Decision decision, Cycle now) {
  if (!prediction_.begun()) {
    // A cluster's CTAs run together: one that has begun continues in detail.
    const uint64_t next = dispatcher_.next_cta(slot_), cluster = launch_.source->cluster_size();
    prediction_.begin((next + cluster - 1) / cluster * cluster);
  }
  if (!decision.block_cycles.empty() && !blocks_)
    blocks_ = std::make_unique<BasicBlocks>(launch_.source->instructions(), launch_.source->leaders());
  prediction_.use(std::move(decision), blocks_.get(), limits_.sms);
  // CTAs whose order matters may wait for each other, future ones for resident ones or the reverse. Therefore
  // the remainder of all of them is executed together, at a time that does not depend on windows.
  if (prediction_.times().residents || launch_.source->order_matters()) predict_residents(now);
}

void SamplingControl::predict_residents(Cycle now) {
  const uint64_t first = launch_.source->order_matters() ? prediction_.executed() : launch_.total_ctas;
  const bool by_blocks = !prediction_.times().block_cycles.empty();
  const std::vector<DroppedCta> dropped = machine_.drop(slot_);
  BlockCounts rest = execute_dropped(dropped, first, by_blocks ? blocks_.get() : nullptr);
  for (size_t i = 0; i < dropped.size(); ++i) {
    const DroppedCta& d = dropped[i];
    const std::vector<double> warps = prediction_.left_of(d, rest, i, now);
    const double longest = *std::max_element(warps.begin(), warps.end());
    ends_of_residents_[{d.sm, d.cta_slot}] = now + static_cast<Cycle>(std::llround(longest));
    for (const double left : warps) prediction_.add_end(d.sm, static_cast<double>(now) + left);
  }
  if (dispatcher_.next_cta(slot_) == launch_.total_ctas && prediction_.eases()) {
    const std::vector<Cycle> ends = prediction_.eased_ends(now);
    for (auto& [place, end] : ends_of_residents_) end = std::min(end, ends[place.first]);
  }
  if (first < launch_.total_ctas) prediction_.executed_with(std::move(rest), dropped.size());
  predicted_residents_ = true;
  sampled_.predicted_ctas += dropped.size();
  sampled_.detailed_cycle = std::max(sampled_.detailed_cycle, now);
  stop_observing();
}

bool SamplingControl::placed(const CtaDispatcher::Placement& p) {
  if (p.cta < prediction_.first()) {
    ++timed_ctas_;
    if (p.cta >= awaited_cta_) next_ = std::min(next_, p.cycle + begun);
    ahead_.emplace_back(p.cta, p.cycle);
    return false;
  }
  const auto cycles = static_cast<Cycle>(std::max<long long>(1, std::llround(prediction_.cycles(p.cta))));
  // Its warps begin in the cycle after the dispatch.
  const Cycle end = p.cycle + cycles;
  ++launch_.done_ctas;
  ++sampled_.predicted_ctas;
  launch_.last_end = std::max(launch_.last_end, end + 1);
  dispatcher_.release(p.sm, p.cta_slot, end);
  for (uint32_t w = 0; w < launch_.kernel->warps_per_cta; ++w)
    prediction_.add_end(p.sm, static_cast<double>(end));
  if (prediction_.eases() && p.cta + 1 == launch_.total_ctas) ease(p.cycle);
  return true;
}

/// The last CTA has been placed: from now on warps get faster as others end.
void SamplingControl::ease(Cycle cycle) {
  const std::vector<Cycle> ends = prediction_.eased_ends(cycle);
  launch_.last_end = *std::max_element(ends.begin(), ends.end()) + 1;
  dispatcher_.release_no_later(slot_, ends);
}

Cycle SamplingControl::left(uint32_t sm, uint32_t cta_slot, Cycle cycle) {
  ++ended_ctas_;
  const auto predicted = ends_of_residents_.extract({sm, cta_slot});
  if (!predicted) {
    sampled_.detailed_cycle = std::max(sampled_.detailed_cycle, cycle + 1);
    return 0;
  }
  return predicted.mapped();
}

LaunchRecord SamplingControl::finish() {
  prediction_.execute_rest();
  LaunchRecord record = stopped_ ? std::move(*stopped_) : machine_.record(launch_);
  if (sampled_.stopped) sampled_.detailed_cycle = record.end_cycle;
  sampled_.released_cycle = launch_.last_end;
  record.sampled = std::move(sampled_);
  return record;
}

}  // namespace simt
