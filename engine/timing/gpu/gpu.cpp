#include "timing/gpu/gpu.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <utility>

#include "isa/paired_warps.hpp"
#include "timing/base/huge_pages.hpp"
#include "timing/launch/observation.hpp"

namespace simt {
namespace {

// Each launch has its own constant bank, beyond all memory.
constexpr uint64_t constant_banks = uint64_t{1} << 48, constant_bank_bytes = 64 * 1024;
// So has the code of each kernel.
constexpr uint64_t code_memory = uint64_t{1} << 49, code_unit = 64 * 1024;

uint16_t launch_slots(const Spec& spec) {
  return static_cast<uint16_t>(spec.launch.max_concurrent_kernels);
}

}  // namespace

Gpu::Gpu(const Spec& spec, const GpuOptions& options)
    : spec_(spec),
      options_(options),
      queue_(launch_slots(spec)),
      dispatcher_(spec, launch_slots(spec)),
      memory_(std::make_unique<MemorySystem>(spec_, launch_slots(spec))),
      pool_(std::max(1u, options.threads), options.rehearses),
      next_code_(code_memory),
      running_(launch_slots(spec)) {
  // The longest window in which no part can affect another.
  Cycle longest = std::max<Cycle>(1, std::min(memory_->look_ahead(), LaunchQueue::notice(spec_)));
  const InstructionCacheSpec& instruction_cache = spec_.sm.front_end.instruction_cache;
  for (uint32_t port = spec_.sm.count; port < MemorySystem::ports(spec_); ++port) {
    instruction_caches_.emplace_back(instruction_cache, static_cast<uint16_t>(port));
    longest = std::min<Cycle>(longest, std::max(1u, instruction_cache.l1_latency));
  }
  longest_window_ = longest;
  window_ = options.window == 0 ? longest : std::min(longest, options.window);
  for (uint32_t i = 0; i < spec_.sm.count; ++i)
    sms_.push_back(Sm::make(spec_, static_cast<uint16_t>(i), launch_slots(spec), longest, memory_->port(i)));
  next_of_sm_.assign(sms_.size(), ~Cycle{0});
  sm_rests_.assign(sms_.size(), 1);
}

Gpu::~Gpu() = default;

void Gpu::copy_from_host(uint64_t address, uint64_t bytes) {
  LaunchQueue::Transfer copy;
  copy.barrier = true;
  copy.touched = {{.address = address, .width = bytes}};
  queue_.push(std::move(copy));
}

void Gpu::set_aside(uint64_t bytes) {
  LaunchQueue::Transfer change;
  change.barrier = true;
  change.perform = [this, bytes] { memory_->set_aside(bytes); };
  queue_.push(std::move(change));
}

void Gpu::reset_persisting() {
  LaunchQueue::Transfer change;
  change.barrier = true;
  change.perform = [this] { memory_->reset_persisting(); };
  queue_.push(std::move(change));
}

void Gpu::follow(std::shared_ptr<InstructionSource> source, uint64_t first) {
  LaunchQueue::Transfer followed;
  followed.barrier = true;
  followed.perform = [this, source = std::move(source), first] {
    if (first > 0) warm_code(*source);
    for (uint64_t begin = first; begin < source->cta_count(); begin += followed_at_once)
      execute(*source, begin, std::min(begin + followed_at_once, source->cta_count()));
  };
  queue_.push(std::move(followed));
}

InstructionCounts Gpu::execute(InstructionSource& source, uint64_t first, uint64_t end) {
  if (first == 0) warm_code(source);
  std::vector<Footprint> footprints;
  const BlockCounts counts = source.execute(first, end, nullptr, pool_.threads(), &footprints);
  for (size_t i = 0; i < footprints.size(); ++i) warm(footprints[i], first + i);
  return counts.executed.value_or(InstructionCounts{});
}

void Gpu::leave_out(InstructionSource& source) {
  warm_code(source);
  warm_l2(source);
}

void Gpu::transfer(LaunchQueue::Transfer transfer, uint64_t traffic) {
  transfer.cycles = LaunchQueue::duration(spec_, transfer.link, traffic);
  transfer.link = LaunchQueue::occupied(spec_, transfer.link);
  queue_.push(std::move(transfer));
}

void Gpu::launch(std::shared_ptr<InstructionSource> source, uint64_t id, std::vector<uint64_t> after,
                 std::shared_ptr<Controller> controller, const AccessWindow& window) {
  queue_.push(LaunchQueue::Launch{std::move(source), id, std::move(after), std::move(controller), window});
}

void Gpu::end_transfers() {
  while (const auto ended = queue_.next_end(now_)) {
    const LaunchQueue::Transfer& transfer = ended->transfer;
    if (spec_.l2.copies_fill && !transfer.touched.empty()) memory_->insert(transfer.touched);
    if (!transfer.barrier) finished_transfers_.push_back({transfer.id, ended->start, ended->end});
    if (transfer.perform) transfer.perform();
  }
}

void Gpu::start_launches() {
  while (auto start = queue_.next_start()) begin_launch(std::move(*start));
}

void Gpu::begin_launch(LaunchQueue::Start start) {
  const uint16_t slot = start.slot;
  const uint64_t id = start.launch.id;
  std::shared_ptr<InstructionSource> source = std::move(start.launch.source);
  const uint32_t lanes = source->launch().warp_size;
  if (lanes > spec_.sm.warp_size)
    throw std::invalid_argument("launch " + std::to_string(id) + ": its warps have " + std::to_string(lanes) +
                                " lanes, but those of " + spec_.name + " have " +
                                std::to_string(spec_.sm.warp_size));
  auto launch = std::make_unique<RunningLaunch>();
  launch->source =
      lanes < spec_.sm.warp_size ? std::make_shared<PairedWarps>(std::move(source)) : std::move(source);
  launch->kernel = std::make_unique<DecodedKernel>(*launch->source, spec_, slot);
  launch->kernel->launch.id = id;
  launch->code = shared_code(*launch->source);
  launch->kernel->constant_bank = constant_banks + launches_begun_++ * constant_bank_bytes;
  if (spec_.launch.cold_caches && start.alone) {
    memory_->empty_l2();
    code_.clear();  // new addresses, which no cache has
  }
  if (spec_.sm.front_end.instruction_cache.code_in_l2) place_code(*launch->kernel);
  launch->total_ctas = launch->source->cta_count();
  launch->occupancy = occupancy_of(spec_, launch->kernel->launch, launch->total_ctas);
  launch->start_cycle = launch->last_end = start.cycle;
  launch->latency = LaunchQueue::latency(spec_, launch->total_ctas);
  launch->first_dispatch = std::max(start.cycle + launch->latency, dispatcher_.decided_until());
  launch->timeline = Timeline(options_.timeline_interval);
  for (auto& sm : sms_) {
    sm->begin_launch(*launch->kernel);
    if (!start.alone) continue;
    if (spec_.l1.adaptive)
      sm->configure_l1(launch->occupancy.l1_ways);
    else if (spec_.l1.flush_at_kernel_end)
      sm->invalidate_l1();
  }
  if (!start.alone && options_.timeline_interval > 0) sample_timeline();  // of the launches already running
  memory_->reset_counters(slot, now_);
  memory_->set_window(slot, start.launch.window);
  if (start.alone && options_.timeline_interval > 0) sampler_.restart(now_, sms_, *memory_, {});
  const Occupancy& occupancy = launch->occupancy;
  dispatcher_.begin(slot, {launch->total_ctas, launch->first_dispatch, launch->kernel->warps_per_cta,
                           occupancy.shared_per_cta, occupancy.registers_per_cta, occupancy.ctas_per_sm,
                           !occupancy.warning.empty()});
  running_[slot] = std::move(launch);
  slots_.insert(std::lower_bound(slots_.begin(), slots_.end(), slot), slot);
  if (!start.launch.controller) return;
  RunningLaunch& running = *running_[slot];
  running.control = std::make_unique<SamplingControl>(
      std::move(start.launch.controller), running, dispatcher_, static_cast<SampledMachine&>(*this),
      SamplingControl::Limits{spec_.sm.count, pool_.threads(), longest_window_});
  running.control->begin(now_);
}

/// That of earlier launches of the kernel, if their records are still in use.
std::shared_ptr<LaunchCode> Gpu::shared_code(const InstructionSource& source) {
  std::weak_ptr<LaunchCode>& known = shared_codes_[source.launch().name];
  std::shared_ptr<LaunchCode> code = known.lock();
  if (!code || code->instructions != source.instructions() || code->opcodes != source.opcodes()) {
    code = std::make_shared<LaunchCode>(LaunchCode{source.instructions(), source.opcodes()});
    known = code;
  }
  return code;
}

/// Where the kernel's code begins and ends, in whole lines, from its base.
std::pair<uint64_t, uint64_t> Gpu::code_range(const DecodedKernel& kernel) const {
  const uint64_t line = std::max(sector_bytes, spec_.sm.front_end.instruction_cache.l1.line_bytes);
  uint64_t begin = ~uint64_t{0}, end = 0;
  for (const DecodedInstruction& d : kernel.instructions) {
    begin = std::min(begin, d.fixed.pc / line * line);
    end = std::max(end, (d.fixed.pc / line + 1) * line);
  }
  return {begin, end};
}

/// The code of a launch that is not simulated is in the instruction caches where simulating it would leave
/// it: of all SMs, although a small launch reaches few, as launches of a kernel usually follow each other.
void Gpu::warm_code(InstructionSource& source) {
  if (spec_.sm.front_end.instruction_cache.perfect) return;
  DecodedKernel kernel(source, spec_, 0);
  if (spec_.sm.front_end.instruction_cache.code_in_l2) place_code(kernel);
  const auto [begin, end] = code_range(kernel);
  if (end == 0) return;
  for (auto& sm : sms_) sm->insert_code(kernel.code_base + begin, kernel.code_base + end);
  for (auto& cache : instruction_caches_) cache.insert_code(kernel.code_base + begin, kernel.code_base + end);
}

/// Gives the kernel its code addresses. Loading its module has just copied the code if it is new.
void Gpu::place_code(DecodedKernel& kernel) {
  const auto [begin, end] = code_range(kernel);
  const auto [known, is_new] =
      code_.try_emplace({kernel.launch.name, kernel.instructions.size()}, next_code_);
  kernel.code_base = known->second;
  if (!is_new || end == 0) return;
  next_code_ += (end + code_unit - 1) / code_unit * code_unit;
  memory_->insert(kernel.code_base + begin, end - begin, false);
}

void Gpu::start_cta(const CtaDispatcher::Placement& p) {
  RunningLaunch& launch = *running_[p.launch_slot];
  if (launch.control && launch.control->placed(p)) return;
  const uint32_t warps = launch.kernel->warps_per_cta;
  const uint64_t threads = uint64_t{warps} * spec_.sm.warp_size;
  CtaStart start;
  start.kernel = launch.kernel.get();
  start.stream = launch.source->open_cta(p.cta);
  start.ordinal = p.cta;
  start.stream->placed(p.sm);
  start.cta_slot = p.cta_slot;
  start.first_warp = p.first_warp;
  start.cycle = p.cycle + 1;
  start.concurrent_threads = threads * launch.occupancy.ctas_per_sm * spec_.sm.count;
  start.thread_base = threads * (p.sm + uint64_t{spec_.sm.count} * (p.first_warp / std::max(1u, warps)));
  sms_[p.sm]->start_cta(std::move(start));
  note_events(p.sm);
}

void Gpu::dispatch(Cycle limit) {
  dispatcher_.dispatch(limit, [this](const CtaDispatcher::Placement& p) { start_cta(p); });
}

void Gpu::control_and_dispatch() {
  Cycle decided = now_ + window_ - 1;  // a CTA starts in the cycle after its dispatch
  for (const uint16_t slot : slots_) {
    const auto& control = running_[slot]->control;
    if (!control) continue;
    control->advance(now_);
    decided = std::min(decided, control->next_effect());
  }
  dispatch(decided);
  if (couples_ctas())
    for (uint32_t i = 0; i < sms_.size(); ++i) {
      sms_[i]->wake_clusters(now_);
      note_events(i);
    }
}

void Gpu::collect_ended_ctas() {
  for (const uint32_t i : awake_) {
    for (const Sm::CtaEnd& end : sms_[i]->ended_ctas()) {
      RunningLaunch& launch = *running_[end.launch_slot];
      ++launch.done_ctas;
      const Cycle predicted = launch.control ? launch.control->left(i, end.cta_slot, end.cycle) : 0;
      const Cycle ended = std::max(end.cycle, predicted);
      // Whatever a predicted CTA was still waiting for when it was dropped does not count.
      launch.last_end = std::max(launch.last_end, (predicted ? predicted : end.cycle) + 1);
      launch.drained = std::max(launch.drained, ended + 1);
      dispatcher_.release(static_cast<uint16_t>(i), end.cta_slot, ended);
    }
    sms_[i]->ended_ctas().clear();
    note_events(i);
  }
}

/// The cycle after the last store of a launch's CTAs was acknowledged; ~0 if one is outstanding.
Cycle Gpu::stores_end(uint16_t slot) const {
  Cycle end = 0;
  for (const auto& sm : sms_) {
    const WarpTable::Stores& stores = sm->stores(slot);
    if (stores.outstanding > 0) return ~Cycle{0};
    end = std::max(end, stores.last_acknowledged + 1);
  }
  return end;
}

/// When the GPU knows that nothing of a launch is left; ~0 if that is not known yet.
Cycle Gpu::finish_cycle(uint16_t slot) const {
  const RunningLaunch& launch = *running_[slot];
  const Cycle stores = launch.done() ? stores_end(slot) : ~Cycle{0};
  if (stores == ~Cycle{0}) return stores;
  return std::max({launch.last_end, launch.drained, stores}) + LaunchQueue::notice(spec_);
}

void Gpu::finish_launches() {
  dispatch(now_);  // releases the places of ended CTAs
  for (size_t i = 0; i < slots_.size();) {
    const uint16_t slot = slots_[i];
    RunningLaunch& launch = *running_[slot];
    if (launch.total_ctas == 0) launch.last_end = launch.start_cycle + launch.latency;
    // Counters are read at a fixed distance from the end, so that they do not depend on where windows end.
    if (now_ >= finish_cycle(slot))
      finish(slot);
    else
      ++i;
  }
}

void Gpu::finish(uint16_t slot) {
  RunningLaunch& launch = *running_[slot];
  if (!launch.control || launch.control->in_full())
    launch.last_end = std::max(launch.last_end, stores_end(slot));
  if (options_.timeline_interval > 0) sample_timeline();
  LaunchRecord finished = launch.control ? launch.control->finish() : record(launch);
  if (finished.sampled) {
    const Sampled& sampled = *finished.sampled;
    if (sampled.stopped || (sampled.predicted_ctas && !sampled.keeps_l2)) warm_l2(*launch.source);
    pause_ = true;
  }
  finished_warp_instructions_ += finished.activity.counters[Counter::warp_instructions];
  queue_.ended(slot, launch.last_end);
  dispatcher_.end(slot);
  finished_.push_back(std::move(finished));
  ++launches_done_;
  running_[slot].reset();
  std::erase(slots_, slot);
  if (options_.timeline_interval > 0) sampler_.restart(now_, sms_, *memory_, slots_);
}

/// Data of the part of the launch that was not simulated would have stayed in the L2, where later launches
/// look for it.
void Gpu::warm_l2(const InstructionSource& source) {
  for (const InstructionSource::Buffer& buffer : source.buffers())
    memory_->insert(buffer.address, buffer.bytes, buffer.stored);
}

void Gpu::begin_observing(uint16_t slot, size_t latencies) {
  for (auto& sm : sms_) {
    sm->observed(slot) = {};
    sm->latencies(slot).assign(latencies, {});
  }
}

Observation Gpu::observe(const RunningLaunch& launch) {
  return observation_of(*launch.kernel, sms_, *memory_, launch.first_dispatch, now_);
}

uint64_t Gpu::warm(const Footprint& footprint, uint64_t cta) {
  // As if CTAs were placed on the parts of the L2 in turn.
  const auto partition = static_cast<uint32_t>(cta % memory_->partitions().count());
  uint64_t exchanged = 0;
  for (const LineAccess& access : footprint) exchanged += memory_->warm(access, partition);
  return exchanged;
}

std::array<uint64_t, 3> Gpu::begin_as_part(const L2Contents& whole, const PartFootprint& footprint,
                                           double share) {
  std::array<uint64_t, 3> taken{};
  const auto is_of = [](double share_of_lines, uint64_t line) {
    uint64_t x = line / LineAccess::line_bytes * 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93ull;
    return static_cast<double>(x >> 11) * 0x1p-53 < share_of_lines;
  };
  const uint32_t partitions = memory_->partitions().count();
  const auto insert = [&](uint64_t line, uint32_t sectors, bool write, uint32_t partition) {
    if (sectors) memory_->warm({line, static_cast<uint8_t>(sectors), write}, partition);
  };
  // Unmodified lines, and modified ones: the part has its share of both. What its CTAs are the first to
  // access is of it already, as other lines are of what other CTAs access.
  std::array<double, 2> all{}, own{}, rest{};
  std::vector<bool> are_accessed;
  for (const auto& lines : whole.slices)
    for (const CacheLine& line : lines) {
      const size_t kind = line.modified != 0;
      const auto found = footprint.lines().find(line.tag);
      are_accessed.push_back(found != footprint.lines().end());
      ++all[kind];
      if (are_accessed.back())
        own[kind] += found->second.share();
      else
        ++rest[kind];
    }
  struct Held {
    size_t age;
    const CacheLine* line;
    uint32_t partition;
    bool accessed;
  };
  std::vector<Held> held;
  const uint32_t ways = spec_.l2.slice.ways;
  auto is_accessed = are_accessed.begin();
  for (size_t s = 0; s < whole.slices.size(); ++s) {
    const auto& lines = whole.slices[s];
    const auto partition = static_cast<uint32_t>(s * partitions / whole.slices.size());
    for (size_t i = 0, begin = 0; i < lines.size(); ++i, ++is_accessed) {
      if (lines[i].line / ways != lines[begin].line / ways) begin = i;
      const size_t kind = lines[i].modified != 0;
      if (*is_accessed || is_of((share * all[kind] - own[kind]) / rest[kind], lines[i].tag))
        held.push_back({i - begin, &lines[i], partition, *is_accessed});
    }
  }
  std::ranges::stable_sort(held, {}, &Held::age);  // the oldest of each set first
  for (const auto& [age, line, partition, accessed] : held) {
    taken[0] += accessed;
    taken[accessed ? 1 : 2] += line->modified != 0;
    insert(line->tag, line->valid & ~uint32_t{line->modified}, false, partition);
    insert(line->tag, line->modified, true, partition);
  }
  // They are read while the launch runs, so all that it holds is older.
  std::vector<uint64_t> of_others;
  for (const auto& [line, access] : footprint.lines())
    if (access.read && !is_of(access.share(), line)) of_others.push_back(line);
  std::ranges::sort(of_others);
  for (const uint64_t line : of_others)  // SMs of all partitions read it
    for (uint32_t p = 0; p < partitions; ++p) insert(line, footprint.lines().at(line).read, false, p);
  return taken;
}

void Gpu::keep_recent(double recent, const std::function<void()>& warming) {
  if (recent <= 0) return warming();
  const auto before = memory_->l2_contents();
  warming();
  memory_->renew(before, recent);
}

std::vector<DroppedCta> Gpu::drop(uint16_t slot) {
  std::vector<DroppedCta> dropped;
  for (uint32_t i = 0; i < sms_.size(); ++i) {
    sms_[i]->drop(slot, now_, dropped);
    note_events(i);
  }
  return dropped;
}

void Gpu::sample_timeline() {
  std::vector<Timeline*> timelines;
  for (const uint16_t slot : slots_) timelines.push_back(&running_[slot]->timeline);
  if (timelines.empty()) return;
  sampler_.sample(now_, sms_, *memory_, slots_, timelines);
}

/// State grows early in a simulation. Short ones end before huge pages would pay.
void Gpu::use_huge_pages_in_time() {
  constexpr uint64_t first = 128, last = 65536;
  ++windows_;
  if (windows_ >= first && windows_ <= last && std::has_single_bit(windows_))
    use_huge_pages(sms_.front().get());
}

/// Most launches are small: what has nothing to do in a window costs nothing in it.
void Gpu::find_awake(Cycle end) {
  awake_.clear();
  const Cycle* const next = next_of_sm_.data();
  const auto* const rests = sm_rests_.data();
  const uint8_t* const may_arrive = memory_->may_have_arrivals();
  for (uint32_t i = 0; i < sms_.size(); ++i) {
    if (rests[i] && next[i] >= end && (!may_arrive[i] || !memory_->has_arrivals(i))) continue;
    awake_.push_back(i);
  }
}

/// L2, DRAM and the replies, and beside them the requests that wait.
void Gpu::run_memory(Cycle end) {
  bool beside = requests_until_ < now_;
  if (beside && (end > requests_until_ + memory_->request_look_ahead() || !memory_->has_room_until(now_))) {
    run_waiting_requests();
    beside = false;
  }
  const uint32_t channels = memory_->find_running(end);
  const uint32_t parts = std::clamp(channels, 1u, pool_.threads() * 4);
  std::atomic<uint32_t> unfinished = parts;
  // The requests, the last to begin, take about as long as the replies, which are the last to end.
  pool_.run(parts + (beside ? 1 : 0), [&](uint32_t i) {
    if (i == parts) return memory_->advance_requests_beside(now_);
    memory_->advance_slices(channels * i / parts, channels * (i + 1) / parts, end);
    if (unfinished.fetch_sub(1, std::memory_order_acq_rel) == 1) memory_->advance_replies(end);
  });
  if (beside) memory_->hand_over();
  requests_until_ = now_;
}

/// Whether nothing looks at or changes what the memory system has counted or holds before it runs again. Only
/// with busy SMs are the requests worth a thread.
bool Gpu::requests_can_wait(Cycle limit) const {
  if (pool_.threads() == 1 || awake_.size() < pool_.threads() || couples_ctas()) return false;
  if (next_boundary(limit) <= now_) return false;
  if (options_.timeline_interval > 0 && now_ % options_.timeline_interval == 0) return false;
  return std::ranges::none_of(
      slots_, [this](uint16_t slot) { return running_[slot]->control || finish_cycle(slot) <= now_; });
}

void Gpu::run_waiting_requests() {
  if (requests_until_ < now_) memory_->advance_requests(now_);
  requests_until_ = now_;
}

void Gpu::step(Cycle end, Cycle limit) {
  use_huge_pages_in_time();
  run_memory(end);
  run_instruction_caches(false);
  find_awake(end);
  const auto run_sm = [&](uint32_t i) {
    sms_[awake_[i]]->run(now_, end);
    memory_->take_requests(awake_[i]);
  };
  const auto awake = static_cast<uint32_t>(awake_.size());
  if (couples_ctas())
    for (uint32_t i = 0; i < awake; ++i) run_sm(i);
  else
    pool_.run(awake, run_sm);
  perform_deferred();
  run_instruction_caches(true);
  now_ = end;
  collect_ended_ctas();
  if (!requests_can_wait(limit)) run_waiting_requests();
  if (options_.timeline_interval > 0 && now_ % options_.timeline_interval == 0) sample_timeline();
}

void Gpu::run_instruction_caches(bool after_window) {
  const uint32_t each = spec_.sm.front_end.instruction_cache.l1_shared_by;
  std::vector<SharedInstructionCache::Answer> answers;
  for (uint32_t c = 0; c < instruction_caches_.size(); ++c) {
    const uint32_t first = c * each, end = std::min(first + each, spec_.sm.count), port = spec_.sm.count + c;
    if (after_window) {
      std::vector<std::vector<LineFetch>*> fetches;
      for (uint32_t i = first; i < end; ++i) fetches.push_back(&sms_[i]->fetches());
      instruction_caches_[c].look_up(fetches, memory_->port(port).requests, answers);
      memory_->take_requests(port);
    } else {
      instruction_caches_[c].take_replies(memory_->port(port).replies, answers);
      memory_->port(port).departures.clear();
    }
    for (const auto& answer : answers) {
      sms_[first + answer.sm]->deliver(answer.arrival);
      note_events(first + answer.sm);
    }
    answers.clear();
  }
}

bool Gpu::couples_ctas() const {
  return std::any_of(slots_.begin(), slots_.end(),
                     [this](uint16_t slot) { return running_[slot]->source->couples_ctas(); });
}

void Gpu::perform_deferred() {
  struct Entry {
    Cycle cycle;
    uint32_t sm;
    const Sm::Deferred* access;
  };
  std::vector<Entry> entries;
  for (const uint32_t i : awake_)
    for (const Sm::Deferred& d : sms_[i]->deferred()) entries.push_back({d.cycle, i, &d});
  if (entries.empty()) return;
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair{a.cycle, a.sm} < std::pair{b.cycle, b.sm};
  });
  for (const Entry& e : entries) e.access->stream->perform(e.access->warp, e.access->ticket);
  for (const uint32_t i : awake_) sms_[i]->deferred().clear();
}

/// The cycle before which no SM, the memory system, the dispatcher, the queue or a controller has anything to
/// do.
Cycle Gpu::next_event() const {
  Cycle next = std::min({memory_->next_event(), dispatcher_.next_event(), queue_.next_event()});
  for (const Cycle of_sm : next_of_sm_) next = std::min(next, of_sm);
  if (next <= now_) return next;
  for (const uint16_t slot : slots_) {
    next = std::min(next, finish_cycle(slot));
    if (running_[slot]->control) next = std::min(next, running_[slot]->control->next_effect());
  }
  return next;
}

/// The next cycle, known now, for which the queue, a timeline, a controller or run()'s caller waits.
Cycle Gpu::next_boundary(Cycle limit) const {
  Cycle next = std::min(limit, queue_.next_event());
  if (const Cycle interval = options_.timeline_interval)
    next = std::min(next, (now_ / interval + 1) * interval);
  for (const uint16_t slot : slots_)
    if (running_[slot]->control) next = std::min(next, running_[slot]->control->next_event());
  return next;
}

Cycle Gpu::window_end(Cycle next_event, Cycle limit) const {
  Cycle end = now_ + (couples_ctas() ? 1 : window_);
  const Cycle latest = next_boundary(limit);  // for idle windows as well
  for (const uint16_t slot : slots_) end = std::min(end, std::max(now_ + 1, finish_cycle(slot)));
  end = std::min(end, latest);
  // While all parts are idle, the window may extend to the next event.
  return next_event > end ? std::min(next_event, latest) : end;
}

bool Gpu::run(Cycle max_cycles, const std::vector<uint64_t>& until, double seconds) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  const auto late = [&] { return std::chrono::duration<double>(Clock::now() - begin).count() >= seconds; };
  queue_.host_waits_for(until);
  const Cycle limit = max_cycles > ~Cycle{0} - now_ ? ~Cycle{0} : now_ + max_cycles;
  while (now_ < limit) {
    finish_launches();
    end_transfers();
    if (std::exchange(pause_, false)) return false;
    if (queue_.host_goes_on()) return queue_.done();
    start_launches();
    if (queue_.done()) return true;
    control_and_dispatch();
    const Cycle next = requests_until_ < now_ ? now_ : next_event();
    if (next == ~Cycle{0}) report_deadlock();
    step(window_end(next, limit), limit);
    if (late()) break;
  }
  run_waiting_requests();
  finish_launches();
  end_transfers();
  return queue_.done();
}

Gpu::Progress Gpu::progress() {
  Progress p;
  p.cycle = now_;
  p.launches_done = launches_done_;
  p.warp_instructions = finished_warp_instructions_;
  for (const uint16_t slot : slots_) {
    p.running.push_back(running_[slot]->kernel->launch.id);
    p.ctas_done += running_[slot]->done_ctas;
    p.ctas_total += running_[slot]->total_ctas;
    for (auto& sm : sms_) p.warp_instructions += sm->counters(slot)[Counter::warp_instructions];
  }
  return p;
}

std::string Gpu::describe(const RunningLaunch& launch) const {
  const DecodedKernel& kernel = *launch.kernel;
  return "\nlaunch " + std::to_string(kernel.launch.id) + " (" + kernel.launch.name +
         "): " + std::to_string(launch.done_ctas) + " of " + std::to_string(launch.total_ctas) +
         " CTAs done, " + std::to_string(dispatcher_.next_cta(kernel.slot) - launch.done_ctas) + " resident";
}

std::string Gpu::describe_work() const {
  constexpr size_t most = 8;  // groups of warps of one launch
  std::string text;
  for (const uint16_t slot : slots_) {
    text += describe(*running_[slot]);
    std::map<std::string, uint64_t> warps;
    for (const auto& sm : sms_) sm->count_waits(slot, warps);
    std::vector<std::pair<std::string, uint64_t>> groups(warps.begin(), warps.end());
    std::stable_sort(groups.begin(), groups.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    uint64_t others = 0;
    for (size_t i = 0; i < groups.size(); ++i) {
      const auto& [what, count] = groups[i];
      if (i < most)
        text += "\n  " + std::to_string(count) + (count == 1 ? " warp " : " warps, each ") + what;
      else
        others += count;
    }
    if (others > 0) text += "\n  " + std::to_string(others) + " more elsewhere";
  }
  return text;
}

void Gpu::report_deadlock() const {
  std::string text = "deadlock at cycle " + std::to_string(now_) +
                     ": no warp can issue, no memory request is under way and no CTA can be dispatched";
  for (const uint16_t slot : slots_) text += describe(*running_[slot]);
  text += '\n';
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
