#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "timing/easing.hpp"
#include "timing/gpu.hpp"

// Launches that are not simulated in full: what their controllers see, and what becomes of their decisions.

namespace simt {
namespace {

constexpr uint64_t counted_at_once = 1024;  // CTAs whose blocks are counted ahead of their dispatch

std::vector<uint64_t> flat(const LaunchActivity& activity) {
  std::vector<uint64_t> values(activity.counters.values.begin(), activity.counters.values.end());
  for (const Counters::CacheTable* table : {&activity.counters.l1, &activity.counters.l2})
    for (const auto& kind : *table) values.insert(values.end(), kind.begin(), kind.end());
  std::array<uint64_t, LaunchActivity::reasons> cycles{};
  for (const auto& scheduler : activity.scheduler_cycles)
    for (size_t r = 0; r < cycles.size(); ++r) cycles[r] += scheduler[r];
  values.insert(values.end(), cycles.begin(), cycles.end());
  values.insert(values.end(), activity.warp_states.begin(), activity.warp_states.end());
  return values;
}

/// Moves what the SMs wrote down into one list, by end, SM, and the SM's order; cycles since `origin`.
template <class Event>
std::vector<Event> gather(const std::vector<std::unique_ptr<Sm>>& sms, uint16_t slot,
                          std::vector<Event> Sm::Observed::* member, Cycle origin) {
  std::vector<Event> all;
  for (const auto& sm : sms) {
    std::vector<Event>& own = sm->observed(slot).*member;
    all.insert(all.end(), own.begin(), own.end());
    own.clear();
  }
  std::stable_sort(all.begin(), all.end(), [](const Event& a, const Event& b) { return a.end < b.end; });
  for (Event& event : all) {
    event.begin -= origin;
    event.end -= origin;
  }
  return all;
}

std::vector<double> mean_latencies(const std::vector<std::unique_ptr<Sm>>& sms, uint16_t slot, size_t count,
                                   Cycle now) {
  std::vector<WarpTable::Latency> total(count);
  for (const auto& sm : sms) {
    const std::vector<WarpTable::Latency>& own = sm->latencies(slot);
    for (size_t i = 0; i < own.size(); ++i) {
      total[i].cycles += own[i].cycles;
      total[i].issued += own[i].issued;
      total[i].ended += own[i].ended;
    }
  }
  std::vector<double> means(count, std::numeric_limits<double>::quiet_NaN());
  for (size_t i = 0; i < count; ++i) {
    const WarpTable::Latency& l = total[i];
    if (l.issued == 0 || l.ended > l.issued) continue;
    const int64_t under_way = static_cast<int64_t>(l.issued - l.ended) * static_cast<int64_t>(now);
    means[i] = static_cast<double>(l.cycles + under_way) / static_cast<double>(l.issued);
  }
  return means;
}

}  // namespace

void Gpu::begin_control(Running& launch, std::shared_ptr<Controller> controller) {
  launch.control = std::make_unique<Control>();
  Control& control = *launch.control;
  control.controller = std::move(controller);
  Controller::Facts facts;
  facts.source = launch.source;
  facts.warps_per_cta = launch.kernel->warps_per_cta;
  facts.ctas_per_sm = launch.occupancy.ctas_per_sm;
  Decision first = control.controller->begin(facts);
  control.next = launch.first_dispatch + control.controller->interval();
  launch.kernel->observes_warps = control.controller->wants_warps();
  if (control.controller->wants_blocks()) {
    control.blocks = std::make_unique<BasicBlocks>(launch.source->instructions(), launch.source->leaders());
    launch.kernel->observed_blocks = control.blocks.get();
  }
  for (auto& sm : sms_) {
    sm->observed(launch.kernel->slot) = {};
    sm->latencies(launch.kernel->slot).assign(control.blocks ? launch.kernel->instructions.size() : 0, {});
  }
  control.sampled.detailed_cycle = launch.first_dispatch;
  take_decision(launch, std::move(first), launch.first_dispatch);
}

void Gpu::take_decision(Running& launch, Decision decision, Cycle effective) {
  if (decision.kind == Decision::Kind::GoOn) return;
  Control& control = *launch.control;
  const Cycle cycle = std::max(now_, launch.first_dispatch) - launch.first_dispatch;
  control.sampled.decisions.push_back({cycle, decision});
  if (decision.kind == Decision::Kind::Stop) {
    control.stopped = std::make_unique<LaunchRecord>(record_of(launch.kernel->slot));
    control.stopped->end_cycle = std::max(now_, launch.first_dispatch);
    control.sampled.stopped = true;
    control.next = ~Cycle{0};
    launch.kernel->observes_warps = false;
    launch.kernel->observed_blocks = nullptr;
  }
  control.pending.push_back({effective, std::move(decision)});
}

Cycle Gpu::next_control(const Running& launch) const {
  const Control& control = *launch.control;
  return std::min(observes(launch) ? control.next : ~Cycle{0}, control.effective());
}

/// While something of the launch is simulated in detail.
bool Gpu::observes(const Running& launch) const {
  const Control& control = *launch.control;
  if (control.next == ~Cycle{0} || launch.done_ctas >= launch.total_ctas) return false;
  return launch.next_cta < std::min(control.first_predicted, launch.total_ctas) ||
         control.ended_ctas < control.timed_ctas;
}

void Gpu::control_launches() {
  for (uint16_t slot = 0; slot < slots_; ++slot) {
    if (!running_[slot] || !running_[slot]->control) continue;
    Running& launch = *running_[slot];
    while (launch.control->effective() <= now_) apply_decision(launch);
    if (launch.control->next <= now_) {
      if (observes(launch))
        observe(launch);
      else
        launch.control->next = ~Cycle{0};
    }
  }
}

void Gpu::observe(Running& launch) {
  Control& control = *launch.control;
  const uint16_t slot = launch.kernel->slot;
  const Cycle origin = launch.first_dispatch;
  Observation observation;
  observation.index = control.intervals++;
  observation.end = control.next - origin;
  observation.begin = observation.end - control.controller->interval();
  LaunchActivity total;
  total.scheduler_cycles.resize(spec_.sm.sub_cores);
  for (const auto& sm : sms_) {
    const LaunchActivity& one = sm->activity(slot);
    const Counters& counted = sm->counters(slot);
    total.counters += counted;
    observation.sm_instructions.push_back(counted[Counter::warp_instructions]);
    observation.sm_warp_cycles.push_back(counted[Counter::active_warp_cycles]);
    for (size_t r = 0; r < total.warp_states.size(); ++r) total.warp_states[r] += one.warp_states[r];
    for (size_t s = 0; s < total.scheduler_cycles.size(); ++s)
      for (size_t r = 0; r < total.warp_states.size(); ++r)
        total.scheduler_cycles[s][r] += one.scheduler_cycles[s][r];
  }
  total.counters += memory_->counters(slot);
  observation.counters = flat(total);
  observation.l2_free_lines = memory_->free_l2_lines();
  if (launch.kernel->observes_warps) observation.warps = gather(sms_, slot, &Sm::Observed::warps, origin);
  if (launch.kernel->observed_blocks) {
    observation.blocks = gather(sms_, slot, &Sm::Observed::blocks, origin);
    observation.latencies = mean_latencies(sms_, slot, launch.kernel->instructions.size(), now_);
  }
  control.next += control.controller->interval();
  // The dispatcher may be a window ahead.
  take_decision(launch, control.controller->observe(observation), now_ + longest_window_);
}

void Gpu::apply_decision(Running& launch) {
  Control& control = *launch.control;
  Decision decision = std::move(control.pending.front().decision);
  control.pending.pop_front();
  if (launch.done_ctas >= launch.total_ctas) return;
  switch (decision.kind) {
    case Decision::Kind::GoOn:
      break;
    case Decision::Kind::Stop:
      stop(launch);
      break;
    case Decision::Kind::Skip:
      skip(launch, decision.ctas);
      break;
    case Decision::Kind::Predict: {
      if (decision.launch_cycles > 0) {
        control.first_predicted = control.executed = launch.next_cta;
        control.sampled.predicted_ctas = launch.total_ctas;
        launch.next_cta = launch.done_ctas = launch.total_ctas;
        launch.last_end = launch.first_dispatch + static_cast<Cycle>(std::llround(decision.launch_cycles));
        break;
      }
      if (control.predicted_residents) break;  // nothing is left to be predicted otherwise
      if (!control.predicts) {
        control.predicts = true;
        // A cluster's CTAs run together: one that has begun goes on in detail.
        const uint64_t cluster = launch.source->cluster_size();
        control.first_predicted = (launch.next_cta + cluster - 1) / cluster * cluster;
        control.executed = control.first_predicted;
        control.first_counted = control.first_predicted;
      }
      if (!decision.block_cycles.empty() && !control.blocks)
        control.blocks =
            std::make_unique<BasicBlocks>(launch.source->instructions(), launch.source->leaders());
      control.prediction = std::move(decision);
      control.predicted_ends.resize(control.prediction.sm_warps.empty() ? 0 : sms_.size());
      // CTAs whose order has an influence may wait for each other, those to come for resident ones and these
      // for them: what is left of all of them is executed together, at a moment that windows do not move.
      const bool together = control.prediction.residents || launch.source->order_matters();
      if (together && !control.predicted_residents) predict_residents(launch);
      break;
    }
  }
}

/// Adds to what is known to have been executed without timing.
void Gpu::left_out(Control& control, const BlockCounts& executed) {
  std::optional<InstructionCounts>& sum = control.sampled.executed;
  if (sum && executed.executed)
    *sum += *executed.executed;
  else
    sum.reset();
}

BlockCounts Gpu::finish_dropped(Running& launch, std::vector<Sm::Dropped>& dropped,
                                std::vector<size_t>& first_of_sm, uint64_t first, const BasicBlocks* blocks) {
  for (auto& sm : sms_) {
    first_of_sm.push_back(dropped.size());
    sm->drop(launch.kernel->slot, now_, dropped);
  }
  std::vector<std::shared_ptr<CtaStream>> streams;
  for (const Sm::Dropped& d : dropped) streams.push_back(d.stream);
  BlockCounts left = launch.source->finish(streams, first, blocks, pool_.threads());
  if (left.executed)
    for (const Sm::Dropped& d : dropped) *left.executed += d.buffered;
  left_out(*launch.control, left);
  return left;
}

void Gpu::stop(Running& launch) {
  Control& control = *launch.control;
  const uint64_t first = std::max(std::min(launch.next_cta, control.first_predicted), control.executed);
  std::vector<Sm::Dropped> dropped;
  std::vector<size_t> first_of_sm;
  finish_dropped(launch, dropped, first_of_sm, first, nullptr);
  if (control.sampled.executed) {
    // Issued between the decision and now: not in the record.
    const Counters then = control.stopped->activity.counters,
                   at_drop = record_of(launch.kernel->slot).activity.counters;
    for (auto [counter, member] :
         {std::pair{Counter::warp_instructions, &InstructionCounts::warp_instructions},
          std::pair{Counter::thread_instructions, &InstructionCounts::thread_instructions}})
      *control.sampled.executed.*member += at_drop[counter] - then[counter];
  }
  control.executed = launch.total_ctas;
  launch.done_ctas += launch.total_ctas - launch.next_cta;
  launch.next_cta = launch.total_ctas;
  launch.last_end = std::max(launch.last_end, now_);
}

void Gpu::predict_residents(Running& launch) {
  Control& control = *launch.control;
  const std::vector<double>& cycles = control.prediction.block_cycles;
  // CTAs that may wait for each other are executed together.
  const uint64_t first = launch.source->order_matters() ? control.executed : launch.total_ctas;
  std::vector<Sm::Dropped> dropped;
  std::vector<size_t> first_of_sm;
  BlockCounts rest =
      finish_dropped(launch, dropped, first_of_sm, first, cycles.empty() ? nullptr : control.blocks.get());
  std::vector<double> of_warps;
  for (size_t i = 0, sm = 0; i < dropped.size(); ++i) {
    while (sm + 1 < sms_.size() && first_of_sm[sm + 1] <= i) ++sm;
    const Sm::Dropped& d = dropped[i];
    of_warps.assign(launch.kernel->warps_per_cta, 0);
    if (cycles.empty()) {
      const double elapsed = static_cast<double>(now_ - d.begin);
      std::fill(of_warps.begin(), of_warps.end(), std::max(0.0, control.prediction.warp_cycles - elapsed));
    } else {
      for (const Sm::Dropped::Block& b : d.blocks)
        of_warps[b.warp] += std::max(0.0, cycles[b.block] - static_cast<double>(b.elapsed));
      for (uint32_t w = 0; w < rest.warps_per_cta; ++w)
        for (uint32_t b = 0; b < rest.blocks; ++b)
          of_warps[w] += rest.counts[(i * rest.warps_per_cta + w) * rest.blocks + b] * cycles[b];
    }
    if (!control.prediction.sm_scale.empty())
      for (double& left : of_warps) left *= control.prediction.sm_scale[sm];
    const double longest = *std::max_element(of_warps.begin(), of_warps.end());
    resources_[sm].held[d.cta_slot].until = now_ + static_cast<Cycle>(std::llround(longest));
    if (!control.predicted_ends.empty())
      for (const double left : of_warps)
        control.predicted_ends[sm].push_back(static_cast<double>(now_) + left);
  }
  if (launch.next_cta == launch.total_ctas) {
    const std::vector<Cycle> ends = eased_ends(launch, now_);
    for (size_t i = 0, sm = 0; i < dropped.size() && !ends.empty(); ++i) {
      while (sm + 1 < sms_.size() && first_of_sm[sm + 1] <= i) ++sm;
      Cycle& until = resources_[sm].held[dropped[i].cta_slot].until;
      until = std::min(until, ends[sm]);
    }
  }
  if (first < launch.total_ctas) {
    const size_t of_begun = dropped.size() * rest.warps_per_cta * rest.blocks;
    rest.counts.erase(rest.counts.begin(), rest.counts.begin() + static_cast<std::ptrdiff_t>(of_begun));
    control.counts = std::move(rest);
    control.first_counted = control.executed;
    control.executed = launch.total_ctas;
  }
  control.predicted_residents = true;
  control.sampled.predicted_ctas += dropped.size();
  control.sampled.detailed_cycle = std::max(control.sampled.detailed_cycle, now_);
  control.next = ~Cycle{0};
  launch.kernel->observes_warps = false;
  launch.kernel->observed_blocks = nullptr;
}

void Gpu::skip(Running& launch, uint64_t ctas) {
  Control& control = *launch.control;
  // CTAs whose order has an influence may wait for those that would be skipped, or the other way round.
  if (control.predicts || launch.source->order_matters()) return;
  const uint64_t cluster = launch.source->cluster_size();
  if (launch.next_cta % cluster != 0) return;
  ctas = std::min(ctas / cluster * cluster, launch.total_ctas - launch.next_cta);
  left_out(control,
           launch.source->execute(launch.next_cta, launch.next_cta + ctas, nullptr, pool_.threads()));
  launch.next_cta += ctas;
  launch.done_ctas += ctas;
  control.sampled.skipped_ctas += ctas;
  launch.last_end = std::max(launch.last_end, now_);
}

double Gpu::predicted_cycles(Running& launch, uint64_t cta) {
  Control& control = *launch.control;
  const std::vector<double>& cycles = control.prediction.block_cycles;
  if (cycles.empty()) return control.prediction.warp_cycles;
  if (cta >= control.executed) {
    const uint64_t cluster = launch.source->cluster_size();
    execute_counting(launch, cta + (counted_at_once / cluster + 1) * cluster);
  }
  const uint32_t warps = control.counts.warps_per_cta;
  double longest = 0;
  const uint32_t blocks = control.counts.blocks;
  for (uint32_t w = 0; w < warps; ++w) {
    const uint32_t* counts =
        control.counts.counts.data() + ((cta - control.first_counted) * warps + w) * blocks;
    double sum = 0;
    for (uint32_t b = 0; b < blocks; ++b) sum += counts[b] * cycles[b];
    longest = std::max(longest, sum);
  }
  return longest;
}

void Gpu::execute_counting(Running& launch, uint64_t end) {
  Control& control = *launch.control;
  end = std::min(end, launch.total_ctas);
  control.counts = launch.source->execute(control.executed, end, control.blocks.get(), pool_.threads());
  left_out(control, control.counts);
  control.first_counted = control.executed;
  control.executed = end;
}

void Gpu::predict(Running& launch, uint16_t sm, uint32_t cta_slot, uint64_t cta, Cycle cycle) {
  const auto cycles = static_cast<Cycle>(std::max<long long>(1, std::llround(predicted_cycles(launch, cta))));
  // Its warps begin in the cycle after the dispatch.
  const Cycle end = cycle + cycles;
  Control& control = *launch.control;
  ++launch.done_ctas;
  ++control.sampled.predicted_ctas;
  launch.last_end = std::max(launch.last_end, end + 1);
  freed_.push_back({end + spec_.launch.dispatch_latency, sm, cta_slot});
  std::push_heap(freed_.begin(), freed_.end(), std::greater<>{});
  if (control.predicted_ends.empty()) return;
  control.predicted_ends[sm].insert(control.predicted_ends[sm].end(), launch.kernel->warps_per_cta,
                                    static_cast<double>(end));
  if (launch.next_cta == launch.total_ctas) ease(launch, cycle);
}

/// By SM: when the last of its predicted warps ends, given that from `cycle` on no CTA takes an ended one's
/// place. Empty where contention does not ease.
std::vector<Cycle> Gpu::eased_ends(Running& launch, Cycle cycle) {
  Control& control = *launch.control;
  std::vector<Cycle> ends;
  std::vector<double> left;
  for (size_t sm = 0; sm < control.predicted_ends.size(); ++sm) {
    left.clear();
    for (const double end : control.predicted_ends[sm])
      if (end > static_cast<double>(cycle)) left.push_back(end - static_cast<double>(cycle));
    const Decision& p = control.prediction;
    const double cycles = eased_cycles(left, p.sm_warps[sm], std::max(1.0, p.fastest), p.in_turn);
    ends.push_back(cycle + static_cast<Cycle>(std::llround(cycles)));
  }
  return ends;
}

void Gpu::ease(Running& launch, Cycle cycle) {
  const std::vector<Cycle> ends = eased_ends(launch, cycle);
  launch.last_end = *std::max_element(ends.begin(), ends.end()) + 1;
  for (Freed& freed : freed_)
    if (running_[resources_[freed.sm].held[freed.cta_slot].launch_slot].get() == &launch)
      freed.cycle = std::min(freed.cycle, ends[freed.sm] + spec_.launch.dispatch_latency);
  std::make_heap(freed_.begin(), freed_.end(), std::greater<>{});
}

/// What of the launch was not simulated would have left its data in the L2, where the next launches look for
/// it.
void Gpu::warm(const Running& launch, const Sampled& sampled) {
  if (!sampled.stopped && sampled.predicted_ctas + sampled.skipped_ctas == 0) return;
  for (const InstructionSource::Buffer& buffer : launch.source->buffers())
    memory_->insert(buffer.address, buffer.bytes, buffer.stored);
}

void Gpu::execute_rest(Running& launch) {
  Control& control = *launch.control;
  if (control.first_predicted < launch.total_ctas && control.executed < launch.total_ctas)
    left_out(control, launch.source->execute(control.executed, launch.total_ctas, nullptr, pool_.threads()));
}

}  // namespace simt
