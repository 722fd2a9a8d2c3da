#include "timing/gpu.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <utility>

#include "isa/paired_warps.hpp"

namespace simt {
namespace {

// Each launch has a constant bank of its own, beyond all memory.
constexpr uint64_t constant_banks = uint64_t{1} << 48, constant_bank_bytes = 64 * 1024;

}  // namespace

Gpu::Gpu(const Spec& spec, const GpuOptions& options)
    : spec_(spec),
      options_(options),
      slots_(static_cast<uint16_t>(std::clamp(spec.launch.max_concurrent_kernels, 1u, 128u))),
      memory_(std::make_unique<MemorySystem>(spec_, slots_)),
      pool_(std::max(1u, options.threads)),
      running_(slots_),
      resources_(spec.sm.count),
      last_dispatch_sm_(spec.sm.count - 1) {
  for (SmResources& sm : resources_) {
    sm.free_warps = spec_.sm.max_warps >= 64 ? ~uint64_t{0} : (uint64_t{1} << spec_.sm.max_warps) - 1;
    sm.free_ctas = spec_.sm.max_ctas >= 64 ? ~uint64_t{0} : (uint64_t{1} << spec_.sm.max_ctas) - 1;
    sm.shared_left = spec_.shared_memory.bytes;
    sm.registers_left = spec_.sm.register_file.registers;
    sm.held.resize(spec_.sm.max_ctas);
  }
  // The longest window in which nothing that one part causes can reach another part.
  Cycle longest = std::max<Cycle>(1, std::min({memory_->look_ahead(), Cycle{spec_.launch.dispatch_latency},
                                               Cycle{spec_.interconnect.credit_latency}}));
  const InstructionCacheSpec& instruction_cache = spec_.sm.front_end.instruction_cache;
  for (uint32_t port = spec_.sm.count; port < MemorySystem::ports(spec_); ++port) {
    instruction_caches_.emplace_back(instruction_cache, static_cast<uint16_t>(port));
    longest = std::min<Cycle>(longest, std::max(1u, instruction_cache.l1_latency));
  }
  longest_window_ = longest;
  window_ = options.window == 0 ? longest : std::min(longest, options.window);
  for (uint32_t i = 0; i < spec_.sm.count; ++i)
    sms_.push_back(std::make_unique<Sm>(spec_, static_cast<uint16_t>(i), slots_, longest));
}

Gpu::~Gpu() = default;

void Gpu::copy_from_host(uint64_t address, uint64_t bytes) {
  commands_.push_back({nullptr, 0, address, bytes, {}, nullptr});
}

void Gpu::launch(std::shared_ptr<InstructionSource> source, uint64_t id, std::vector<uint64_t> after,
                 std::shared_ptr<Controller> controller) {
  commands_.push_back({std::move(source), id, 0, 0, std::move(after), std::move(controller)});
}

bool Gpu::is_unfinished(uint64_t id) const {
  for (const auto& launch : running_)
    if (launch && launch->kernel->launch.id == id) return true;
  return std::any_of(commands_.begin(), commands_.end(),
                     [&](const Command& c) { return c.source && c.launch_id == id; });
}

void Gpu::start_commands() {
  std::vector<uint64_t> blocked_streams;
  for (auto command = commands_.begin(); command != commands_.end();) {
    uint32_t busy = 0;
    for (const auto& launch : running_) busy += launch != nullptr;
    if (!command->source) {
      // A copy waits for the launches before it, so that it does not matter when it was queued.
      if (busy > 0 || command != commands_.begin()) return;
      if (spec_.l2.copies_fill) memory_->insert(command->address, command->bytes, false);
      command = commands_.erase(command);
      continue;
    }
    if (busy >= slots_) return;
    const uint64_t stream = command->source->launch().stream;
    bool waits = std::find(blocked_streams.begin(), blocked_streams.end(), stream) != blocked_streams.end();
    for (const auto& launch : running_) waits |= launch && launch->kernel->launch.stream == stream;
    for (size_t i = 0; i < command->after.size() && !waits; ++i) waits = is_unfinished(command->after[i]);
    if (waits) {
      // Launches of other streams need not wait for it.
      blocked_streams.push_back(stream);
      ++command;
      continue;
    }
    command_time_ = std::max(command_time_, busy == 0 ? idle_since_ : 0);
    Command next = std::move(*command);
    command = commands_.erase(command);
    begin_launch(std::move(next), command_time_);
  }
}

void Gpu::begin_launch(Command command, Cycle when) {
  const auto slot =
      static_cast<uint16_t>(std::find(running_.begin(), running_.end(), nullptr) - running_.begin());
  const uint32_t lanes = command.source->launch().warp_size;
  if (lanes > spec_.sm.warp_size)
    throw std::invalid_argument("launch " + std::to_string(command.launch_id) + ": its warps have " +
                                std::to_string(lanes) + " lanes, but those of " + spec_.name + " have " +
                                std::to_string(spec_.sm.warp_size));
  auto launch = std::make_unique<Running>();
  launch->source = lanes < spec_.sm.warp_size ? std::make_shared<PairedWarps>(std::move(command.source))
                                              : std::move(command.source);
  launch->kernel = std::make_unique<DecodedKernel>(*launch->source, spec_, slot);
  launch->kernel->launch.id = command.launch_id;
  launch->kernel->constant_bank = constant_banks + launches_begun_++ * constant_bank_bytes;
  launch->total_ctas = launch->source->cta_count();
  launch->occupancy = occupancy_of(spec_, launch->kernel->launch, launch->total_ctas);
  launch->start_cycle = when;
  launch->last_end = when;
  // A launch becomes known up to two windows after the end of the one before it, so its first CTA cannot come
  // earlier.
  launch->latency =
      std::max(spec_.launch.kernel_latency + uint64_t{spec_.launch.cta_latency} * launch->total_ctas,
               uint64_t{3} * spec_.launch.dispatch_latency);
  launch->first_dispatch = std::max(when + launch->latency, dispatched_until_);
  launch->ctas_on_sm.resize(spec_.sm.count);
  launch->timeline.interval = options_.timeline_interval;
  bool alone = true;
  for (const auto& other : running_) alone &= !other;
  for (auto& sm : sms_) {
    sm->begin_launch(*launch->kernel);
    if (!alone) continue;
    if (spec_.l1.adaptive)
      sm->configure_l1(launch->occupancy.l1_ways);
    else if (spec_.l1.flush_at_kernel_end)
      sm->invalidate_l1();
  }
  memory_->reset_counters(slot);
  if (alone && options_.timeline_interval > 0) sampler_.restart(sms_, *memory_, {});
  running_[slot] = std::move(launch);
  if (command.controller) begin_control(*running_[slot], std::move(command.controller));
}

std::optional<std::pair<uint32_t, uint32_t>> Gpu::find_place(const SmResources& sm,
                                                             const Running& launch) const {
  const uint32_t warps = launch.kernel->warps_per_cta;
  if (sm.free_ctas == 0) return std::nullopt;
  const bool exclusive = !launch.occupancy.warning.empty();
  if (!exclusive && (sm.shared_left < launch.occupancy.shared_per_cta ||
                     sm.registers_left < launch.occupancy.registers_per_cta))
    return std::nullopt;
  // Lowest run of free warp slots that is long enough: bit i of `runs` means that i starts one.
  uint64_t runs = sm.free_warps;
  for (uint32_t have = 1; have < warps && runs;) {
    const uint32_t add = std::min(have, warps - have);
    runs &= runs >> add;
    have += add;
  }
  if (runs == 0) return std::nullopt;
  return std::pair{static_cast<uint32_t>(std::countr_zero(sm.free_ctas)),
                   static_cast<uint32_t>(std::countr_zero(runs))};
}

bool Gpu::dispatch_to(uint16_t sm, Cycle cycle) {
  SmResources& resources = resources_[sm];
  if (resources.free_ctas == 0 || resources.free_warps == 0) return false;
  for (const uint16_t slot : dispatchable_) {
    Running* launch = running_[slot].get();
    if (launch->next_cta >= launch->total_ctas || launch->ctas_on_sm[sm] >= launch->occupancy.ctas_per_sm)
      continue;
    const auto place = find_place(resources, *launch);
    if (!place) continue;
    const auto [cta_slot, first_warp] = *place;
    const uint32_t warps = launch->kernel->warps_per_cta;
    SmResources::Held held{slot, first_warp, warps,
                           std::min(resources.shared_left, launch->occupancy.shared_per_cta),
                           std::min(resources.registers_left, launch->occupancy.registers_per_cta)};
    resources.free_ctas &= ~(uint64_t{1} << cta_slot);
    resources.free_warps &= ~((warps >= 64 ? ~uint64_t{0} : (uint64_t{1} << warps) - 1) << first_warp);
    resources.shared_left -= held.shared;
    resources.registers_left -= held.registers;
    resources.held[cta_slot] = held;
    ++launch->ctas_on_sm[sm];
    last_slot_ = slot;
    const uint64_t cta = launch->next_cta++;
    if (launch->control) [[unlikely]] {
      if (cta >= launch->control->first_predicted) {
        predict(*launch, sm, cta_slot, cta, cycle);
        return true;
      }
      ++launch->control->timed_ctas;
    }
    Sm::CtaStart start;
    start.kernel = launch->kernel.get();
    start.stream = launch->source->open_cta(cta);
    start.ordinal = cta;
    start.stream->placed(sm);
    start.cta_slot = cta_slot;
    start.first_warp = first_warp;
    start.cycle = cycle + 1;
    const uint64_t threads = uint64_t{warps} * spec_.sm.warp_size;
    start.concurrent_threads = threads * launch->occupancy.ctas_per_sm * spec_.sm.count;
    start.thread_base = threads * (sm + uint64_t{spec_.sm.count} * (first_warp / std::max(1u, warps)));
    sms_[sm]->start_cta(std::move(start));
    return true;
  }
  return false;
}

void Gpu::dispatch(Cycle limit) {
  // Decides the dispatch cycles below `limit`. In one cycle every SM, in turn after the one served last, gets
  // at most one CTA. Only cycles in which something becomes possible are visited.
  Cycle cycle = dispatched_until_;
  bool leftover = true;  // the last cycle visited gave out CTAs, so the next one may, too
  while (cycle < limit) {
    if (!leftover) {
      Cycle next = limit;
      if (!freed_.empty()) next = std::min(next, freed_.front().cycle);
      for (const auto& launch : running_)
        if (launch && launch->next_cta < launch->total_ctas && launch->first_dispatch >= cycle)
          next = std::min(next, launch->first_dispatch);
      cycle = std::max(cycle, next);
      if (cycle >= limit) break;
    }
    while (!freed_.empty() && freed_.front().cycle <= cycle) {
      std::pop_heap(freed_.begin(), freed_.end(), std::greater<>{});
      const Freed freed = freed_.back();
      freed_.pop_back();
      SmResources& sm = resources_[freed.sm];
      const SmResources::Held held = sm.held[freed.cta_slot];
      sm.free_ctas |= uint64_t{1} << freed.cta_slot;
      sm.free_warps |= (held.warps >= 64 ? ~uint64_t{0} : (uint64_t{1} << held.warps) - 1) << held.first_warp;
      sm.shared_left += held.shared;
      sm.registers_left += held.registers;
      if (running_[held.launch_slot]) --running_[held.launch_slot]->ctas_on_sm[freed.sm];
    }
    leftover = false;
    dispatchable_.clear();
    for (uint16_t i = 0; i < slots_; ++i) {
      // The launch that was served last goes on first.
      const auto slot = static_cast<uint16_t>((last_slot_ + i) % slots_);
      const Running* launch = running_[slot].get();
      if (launch && launch->next_cta < launch->total_ctas && launch->first_dispatch <= cycle)
        dispatchable_.push_back(slot);
    }
    if (!dispatchable_.empty()) {
      const uint32_t first = last_dispatch_sm_;
      for (uint32_t i = 0; i < spec_.sm.count; ++i) {
        const uint32_t sm = (first + 1 + i) % spec_.sm.count;
        if (!dispatch_to(static_cast<uint16_t>(sm), cycle)) continue;
        last_dispatch_sm_ = sm;
        leftover = true;
      }
    }
    ++cycle;
  }
  dispatched_until_ = std::max(dispatched_until_, limit);
}

void Gpu::collect_ended_ctas() {
  for (uint32_t i = 0; i < sms_.size(); ++i) {
    for (const Sm::CtaEnd& end : sms_[i]->ended_ctas()) {
      Running& launch = *running_[end.launch_slot];
      ++launch.done_ctas;
      const Cycle until = resources_[i].held[end.cta_slot].until;
      const Cycle ended = std::max(end.cycle, until);
      // What a predicted CTA was still waiting for when it was dropped does not count.
      launch.last_end = std::max(launch.last_end, (until ? until : end.cycle) + 1);
      launch.drained = std::max(launch.drained, ended + 1);
      if (launch.control) {
        ++launch.control->ended_ctas;
        Cycle& detailed = launch.control->sampled.detailed_cycle;
        if (until == 0) detailed = std::max(detailed, ended + 1);
      }
      freed_.push_back({ended + spec_.launch.dispatch_latency, static_cast<uint16_t>(i), end.cta_slot});
      std::push_heap(freed_.begin(), freed_.end(), std::greater<>{});
    }
    sms_[i]->ended_ctas().clear();
  }
}

void Gpu::finish_launches() {
  dispatch(now_);  // gives back what ended CTAs held
  for (uint16_t slot = 0; slot < slots_; ++slot) {
    if (!running_[slot]) continue;
    Running& launch = *running_[slot];
    if (launch.done_ctas < launch.total_ctas) continue;
    if (launch.total_ctas == 0) launch.last_end = launch.start_cycle + launch.latency;
    // Counters are read at a fixed distance from the end, so that they do not depend on where windows end.
    if (now_ < launch.gone() + spec_.launch.dispatch_latency) continue;
    if (options_.timeline_interval > 0) {
      std::vector<Timeline*> timelines;
      for (const auto& other : running_)
        if (other) timelines.push_back(&other->timeline);
      sampler_.sample(now_, sms_, *memory_, slots_in_use(), timelines);
    }
    if (launch.control) execute_rest(launch);
    LaunchRecord record =
        launch.control && launch.control->stopped ? std::move(*launch.control->stopped) : record_of(slot);
    if (launch.control) {
      record.sampled = std::move(launch.control->sampled);
      if (record.sampled->stopped) record.sampled->detailed_cycle = record.end_cycle;
      record.sampled->released_cycle = launch.last_end;
      warm(launch, *record.sampled);
      pause_ = true;
    }
    finished_warp_instructions_ += record.activity.counters[Counter::warp_instructions];
    if (!commands_.empty()) command_time_ = std::max(command_time_, launch.last_end);
    idle_since_ = std::max(idle_since_, launch.last_end);
    finished_.push_back(std::move(record));
    ++launches_done_;
    running_[slot].reset();
    if (options_.timeline_interval > 0) sampler_.restart(sms_, *memory_, slots_in_use());
  }
}

LaunchRecord Gpu::record_of(uint16_t slot) {
  const Running& launch = *running_[slot];
  LaunchRecord record;
  record.launch = launch.kernel->launch;
  record.start_cycle = launch.start_cycle;
  record.end_cycle = launch.last_end;
  record.launch_latency = launch.latency;
  record.occupancy = launch.occupancy;
  record.instructions = launch.source->instructions();
  record.opcodes = launch.source->opcodes();
  record.timeline = launch.timeline;
  LaunchActivity& total = record.activity;
  total.scheduler_cycles.resize(spec_.sm.sub_cores);
  total.executions.resize(record.instructions.size());
  total.samples.resize(record.instructions.size());
  for (auto& sm : sms_) {
    const LaunchActivity& one = sm->activity(slot);
    total.counters += sm->counters(slot);
    for (size_t r = 0; r < total.warp_states.size(); ++r) total.warp_states[r] += one.warp_states[r];
    for (size_t s = 0; s < total.scheduler_cycles.size(); ++s)
      for (size_t r = 0; r < total.warp_states.size(); ++r)
        total.scheduler_cycles[s][r] += one.scheduler_cycles[s][r];
    const Counters& own = sm->counters(slot);
    record.sms.push_back(
        {own[Counter::warp_instructions], own[Counter::sm_active_cycles], own[Counter::active_warp_cycles]});
    for (size_t p = 0; p < total.executions.size(); ++p) {
      total.executions[p].warps += one.executions[p].warps;
      total.executions[p].threads += one.executions[p].threads;
      for (size_t r = 0; r < total.warp_states.size(); ++r) total.samples[p][r] += one.samples[p][r];
    }
  }
  total.counters += memory_->counters(slot);
  record.slices = memory_->slice_activity(slot);
  return record;
}

LaunchSlots Gpu::slots_in_use() const {
  LaunchSlots slots;
  for (uint16_t slot = 0; slot < slots_; ++slot)
    if (running_[slot]) slots.push_back(slot);
  return slots;
}

Cycle Gpu::next_window_end(Cycle limit) const {
  Cycle end = std::min(limit, now_ + window_);
  if (couples_ctas()) end = std::min(end, now_ + 1);
  if (options_.timeline_interval > 0)
    end = std::min(end, (now_ / options_.timeline_interval + 1) * options_.timeline_interval);
  for (const auto& launch : running_) {
    if (!launch) continue;
    if (launch->done_ctas >= launch->total_ctas)
      end = std::min(end, std::max(now_ + 1, launch->gone() + spec_.launch.dispatch_latency));
    if (launch->control) end = std::min(end, next_control(*launch));
  }
  return end;
}

void Gpu::step(Cycle end) {
  const uint32_t channels = spec_.address_map.channels;
  const uint32_t parts = std::min(channels, pool_.threads() * 4);
  pool_.run(parts, [&](uint32_t i) {
    memory_->advance_slices(channels * i / parts, channels * (i + 1) / parts, end);
  });
  memory_->advance_replies(end);
  run_instruction_caches(false);
  const auto run_sm = [&](uint32_t i) {
    Sm& sm = *sms_[i];
    std::vector<MemoryReply>& replies = memory_->replies(i);
    sm.replies().insert(sm.replies().end(), replies.begin(), replies.end());
    replies.clear();
    sm.load_store().take_departures(memory_->departures(i));
    sm.run(now_, end);
    std::vector<MemoryRequest>& requests = memory_->requests(i);
    requests.insert(requests.end(), sm.requests().begin(), sm.requests().end());
    sm.requests().clear();
  };
  if (couples_ctas())
    for (uint32_t i = 0; i < sms_.size(); ++i) run_sm(i);
  else
    pool_.run(static_cast<uint32_t>(sms_.size()), run_sm);
  perform_deferred();
  run_instruction_caches(true);
  memory_->advance_requests(end);
  now_ = end;
  collect_ended_ctas();
  if (options_.timeline_interval > 0 && now_ % options_.timeline_interval == 0) {
    std::vector<Timeline*> timelines;
    for (const auto& launch : running_)
      if (launch) timelines.push_back(&launch->timeline);
    sampler_.sample(now_, sms_, *memory_, slots_in_use(), timelines);
  }
}

void Gpu::run_instruction_caches(bool after_window) {
  const uint32_t each = spec_.sm.front_end.instruction_cache.l1_shared_by;
  std::vector<SharedInstructionCache::Answer> answers;
  for (uint32_t c = 0; c < instruction_caches_.size(); ++c) {
    const uint32_t first = c * each, end = std::min(first + each, spec_.sm.count), port = spec_.sm.count + c;
    if (after_window) {
      std::vector<std::vector<LineFetch>*> fetches;
      for (uint32_t i = first; i < end; ++i) fetches.push_back(&sms_[i]->fetches());
      instruction_caches_[c].look_up(fetches, memory_->requests(port), answers);
    } else {
      instruction_caches_[c].take_replies(memory_->replies(port), answers);
      memory_->departures(port).clear();
    }
    for (const auto& answer : answers) sms_[first + answer.sm]->deliver(answer.arrival);
    answers.clear();
  }
}

bool Gpu::couples_ctas() const {
  for (const auto& launch : running_)
    if (launch && launch->source->couples_ctas()) return true;
  return false;
}

void Gpu::perform_deferred() {
  struct Entry {
    Cycle cycle;
    uint32_t sm;
    const Sm::Deferred* access;
  };
  std::vector<Entry> entries;
  for (uint32_t i = 0; i < sms_.size(); ++i)
    for (const Sm::Deferred& d : sms_[i]->deferred()) entries.push_back({d.cycle, i, &d});
  if (entries.empty()) return;
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair{a.cycle, a.sm} < std::pair{b.cycle, b.sm};
  });
  for (const Entry& e : entries) e.access->stream->perform(e.access->warp, e.access->ticket);
  for (auto& sm : sms_) sm->deferred().clear();
}

bool Gpu::run(Cycle max_cycles) {
  const Cycle limit = max_cycles > ~Cycle{0} - now_ ? ~Cycle{0} : now_ + max_cycles;
  while (now_ < limit) {
    finish_launches();
    if (std::exchange(pause_, false)) return false;
    start_commands();
    bool any = false;
    Cycle decided = now_ + window_;
    control_launches();
    for (const auto& launch : running_) {
      any |= launch != nullptr;
      if (launch && launch->control) decided = std::min(decided, launch->control->effective());
    }
    if (!any && commands_.empty()) return true;
    dispatch(decided);
    if (couples_ctas())
      for (auto& sm : sms_) sm->wake_clusters(now_);

    // Nothing happens before the first SM, the memory system or the dispatcher has something to do.
    Cycle next = memory_->idle() ? ~Cycle{0} : memory_->next_event();
    bool work = false;
    for (const auto& sm : sms_) {
      work |= sm->has_work();
      next = std::min(next, sm->next_event());
    }
    for (const auto& launch : running_) {
      if (!launch) continue;
      if (launch->next_cta < launch->total_ctas && launch->first_dispatch >= dispatched_until_)
        next = std::min(next, launch->first_dispatch);
      if (launch->done_ctas >= launch->total_ctas)
        next = std::min(next, launch->gone() + spec_.launch.dispatch_latency);
      if (launch->control) next = std::min(next, launch->control->effective());
    }
    if (!freed_.empty()) next = std::min(next, freed_.front().cycle);
    if (next == ~Cycle{0}) report_deadlock();
    Cycle end = next_window_end(limit);
    if (next > end) {
      // All parts sleep: the window may reach to the event.
      end = std::min(limit, next);
      if (options_.timeline_interval > 0)
        end = std::min(end, (now_ / options_.timeline_interval + 1) * options_.timeline_interval);
      for (const auto& launch : running_)
        if (launch && launch->control) end = std::min(end, next_control(*launch));
    }
    step(end);
  }
  finish_launches();
  bool any = false;
  for (const auto& launch : running_) any |= launch != nullptr;
  return !any && commands_.empty();
}

Gpu::Progress Gpu::progress() {
  Progress p;
  p.cycle = now_;
  p.launches_done = launches_done_;
  p.warp_instructions = finished_warp_instructions_;
  for (uint16_t slot = 0; slot < slots_; ++slot) {
    if (!running_[slot]) continue;
    p.running.push_back(running_[slot]->kernel->launch.id);
    p.ctas_done += running_[slot]->done_ctas;
    p.ctas_total += running_[slot]->total_ctas;
    for (auto& sm : sms_) p.warp_instructions += sm->counters(slot)[Counter::warp_instructions];
  }
  return p;
}

void Gpu::report_deadlock() const {
  std::string text = "deadlock at cycle " + std::to_string(now_) +
                     ": no warp can issue, no memory request is under way and no CTA can be dispatched\n";
  for (const auto& launch : running_) {
    if (!launch) continue;
    text += "launch " + std::to_string(launch->kernel->launch.id) + " (" + launch->kernel->launch.name +
            "): " + std::to_string(launch->done_ctas) + " of " + std::to_string(launch->total_ctas) +
            " CTAs done, " + std::to_string(launch->next_cta - launch->done_ctas) + " resident\n";
  }
  constexpr size_t most = 16 * 1024;
  for (const auto& sm : sms_) {
    text += sm->describe_waits();
    if (text.size() > most) {
      text += "  ... (more warps left out)\n";
      break;
    }
  }
  throw Deadlock(text);
}

}  // namespace simt
