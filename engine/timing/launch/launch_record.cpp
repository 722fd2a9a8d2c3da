#include "timing/launch/launch_record.hpp"

#include "timing/launch/sampling_control.hpp"

namespace simt {

RunningLaunch::RunningLaunch() = default;
RunningLaunch::~RunningLaunch() = default;

LaunchRecord record_of(const RunningLaunch& launch, const std::vector<std::unique_ptr<Sm>>& sms,
                       const MemorySystem& memory) {
  const uint16_t slot = launch.kernel->slot;
  LaunchRecord record;
  record.launch = launch.kernel->launch;
  record.start_cycle = launch.start_cycle;
  record.end_cycle = launch.last_end;
  record.launch_latency = launch.latency;
  record.occupancy = launch.occupancy;
  record.code = launch.code;
  const size_t instructions = record.code->instructions.size();
  record.timeline = launch.timeline;
  LaunchActivity& total = record.activity;
  total.executions.resize(instructions);
  total.samples.resize(instructions);
  total.uncovered.resize(launch.kernel->control_bits ? instructions : 0);
  total.scheduler_cycles.resize(sms.front()->activity(slot).scheduler_cycles.size());
  record.sms.reserve(sms.size());
  for (const auto& sm : sms) {
    const Counters& own = sm->counters(slot);
    record.sms.push_back(
        {own[Counter::warp_instructions], own[Counter::sm_active_cycles], own[Counter::active_warp_cycles]});
    if (own[Counter::ctas] == 0 && own[Counter::sm_active_cycles] == 0) continue;  // all else is 0
    total.counters += own;
    if (own[Counter::ctas] == 0) continue;  // its activity is 0
    const LaunchActivity& one = sm->activity(slot);
    total.add_cycles(one);
    for (size_t p = 0; p < one.uncovered.size(); ++p) total.uncovered[p] += one.uncovered[p];
    for (size_t p = 0; p < total.executions.size(); ++p) {
      total.executions[p].warps += one.executions[p].warps;
      total.executions[p].threads += one.executions[p].threads;
      for (size_t r = 0; r < LaunchActivity::reasons; ++r) total.samples[p][r] += one.samples[p][r];
    }
  }
  total.counters += memory.counters(slot);
  record.slices = memory.slice_activity(slot);
  return record;
}

}  // namespace simt
