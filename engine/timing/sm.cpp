#include "timing/sm.hpp"

#include <algorithm>
#include <bit>

namespace simt {
namespace {

// Order in which the units are offered their instructions; it decides who gets the last slot of the result
// bus.
constexpr std::array<Unit, 8> start_order = {Unit::Fp32,   Unit::Fp64,    Unit::Int,    Unit::Sfu,
                                             Unit::Branch, Unit::Texture, Unit::Tensor, Unit::Uniform};

// Read-ports model: memory instructions leave their sub-core's queue 4 cycles after issue, then one every 4
// cycles (address calculation), and give their place back some cycles later (Huerta et al., MICRO 2025,
// section 4.4).
constexpr Cycle access_first = 4, access_interval = 4, access_place_return = 6;

// A scheduler whose instruction lacks its constant operand issues nothing for so long, then goes on to other
// warps (same paper).
constexpr Cycle operand_miss = 4;

constexpr uint64_t longest_sleep = 1'000'000;  // nanoseconds (PTX)

constexpr uint64_t local_memory_start = 0x8000000000ull
                                        << 8;  // beyond the global addresses that GPUs hand out

bool is_specialised(Unit unit) {
  return unit == Unit::Branch || unit == Unit::Texture || unit == Unit::Tensor || unit == Unit::Uniform;
}

uint32_t unit_bit(Unit unit) {
  return 1u << static_cast<uint32_t>(unit);
}

}  // namespace

Sm::Sm(const Spec& spec, uint16_t id, uint32_t launch_slots, Cycle deferral)
    : spec_(spec),
      id_(id),
      as_collector_(spec.sm.register_file.model == OperandModel::OperandCollector),
      warps_(spec.sm.max_warps, spec.sm.sub_cores, std::min(spec.sm.front_end.instruction_buffer, 3u)),
      collector_(spec.sm, pool_),
      units_(spec.sm),
      counters_(launch_slots),
      load_store_(spec, id, warps_, pool_, collector_, counters_, requests_),
      instruction_cache_(spec),
      constant_cache_(spec, instruction_cache_),
      activity_(launch_slots),
      ctas_(spec.sm.max_ctas),
      deferral_(deferral),
      observed_(launch_slots),
      issue_blocked_until_(spec.sm.sub_cores),
      access_queues_(spec.sm.sub_cores),
      last_access_left_(spec.sm.sub_cores),
      last_reasons_(spec.sm.sub_cores, StallReason::NoInstruction),
      last_unit_busy_(spec.sm.sub_cores) {
  const uint32_t positions = (spec.sm.max_warps + spec.sm.sub_cores - 1) / spec.sm.sub_cores;
  const RegisterFileSpec& registers = spec.sm.register_file;
  for (uint32_t s = 0; s < spec.sm.sub_cores; ++s) {
    schedulers_.emplace_back(spec.sm.scheduler, reinterpret_cast<SchedulerFunction>(spec.policy.scheduler), s,
                             positions);
    read_ports_.emplace_back(std::max(1u, registers.banks / spec.sm.sub_cores),
                             std::max(1u, registers.read_ports_per_bank), registers.operand_cache);
  }
}

void Sm::begin_launch(const DecodedKernel& kernel) {
  LaunchActivity& activity = activity_[kernel.slot];
  activity = LaunchActivity{};
  activity.scheduler_cycles.resize(spec_.sm.sub_cores);
  activity.executions.resize(kernel.instructions.size());
  activity.samples.resize(kernel.instructions.size());
  counters_[kernel.slot] = Counters{};
}

void Sm::place(const CtaStart& start) {
  Cta& cta = ctas_[start.cta_slot];
  const uint32_t warps = start.kernel->warps_per_cta;
  cta = Cta{start.kernel,
            start.stream,
            start.ordinal,
            start.cycle,
            start.first_warp,
            warps,
            start.thread_base,
            start.concurrent_threads,
            CtaBarriers(warps >= 64 ? ~uint64_t{0} : (uint64_t{1} << warps) - 1),
            {},
            0};
  for (uint32_t i = 0; i < warps; ++i)
    warps_.start(start.first_warp + i, *start.kernel, *cta.stream, static_cast<uint16_t>(start.cta_slot),
                 static_cast<uint16_t>(i), next_age_++);
  // The launch brings its constant bank, so that only the caches nearest to the sub-cores lack it.
  instruction_cache_.insert_constants(start.kernel->constant_bank + start.kernel->constants_begin,
                                      start.kernel->constant_bank + start.kernel->constants_end);
  ++resident_ctas_;
  stall_slot_ = start.kernel->slot;
  Counters& counters = counters_[start.kernel->slot];
  ++counters[Counter::ctas];
  counters[Counter::warps] += warps;
}

void Sm::write_back(Cycle now) {
  if (!wheel_.any(now)) return;
  for (const CompletionWheel::Entry& entry : wheel_.at(now)) {
    const DecodedInstruction& instruction = *entry.instruction;
    if (as_collector_) collector_.write_back(instruction, entry.warp, warps_.scheduler_of(entry.warp));
    if (instruction.fixed.destination_count > 0) warps_.release(entry.warp, instruction);
    warps_.leave_pipeline(entry.warp);
  }
  wheel_.clear(now);
  changed_ = true;
}

void Sm::execute(Cycle now) {
  if (as_collector_) {
    for (Unit unit : start_order) {
      for (uint32_t ready = collector_.ready_entries(unit); ready; ready &= ready - 1) {
        uint32_t entry = static_cast<uint32_t>(std::countr_zero(ready));
        if (!spec_.sm.sub_core_model) entry = collector_.oldest_ready(unit);
        const uint32_t in_flight = collector_.ready_instruction(unit, entry);
        const DecodedInstruction& d = *pool_[in_flight].instruction;
        uint32_t k = entry % units_.count(unit);
        if (!spec_.sm.sub_core_model)
          for (uint32_t i = 0; i < units_.count(unit) && !units_.accepts(unit, k, now); ++i)
            k = (k + 1) % units_.count(unit);
        if (!units_.accepts(unit, k, now) || !units_.reserve_result(unit, k, now, d.latency)) continue;
        units_.start(unit, k, now, d.initiation_interval);
        wheel_.schedule(now + d.latency + 2, {&d, pool_[in_flight].warp});
        collector_.take(unit, entry);
        pool_.release(in_flight);
        changed_ = true;
      }
    }
  }
  changed_ |= load_store_.cycle(now, replies_, next_reply_);
  for (const LoadStoreUnit::BulkDone& done : load_store_.bulk_done())
    bulk_copy_done(done.cta_slot, done.mbarrier);
  load_store_.bulk_done().clear();
  if (!load_store_.can_accept(now)) return;
  if (as_collector_) {
    if (collector_.ready_entries(Unit::Memory) == 0) return;
    const uint32_t entry = collector_.oldest_ready(Unit::Memory);
    load_store_.accept(collector_.ready_instruction(Unit::Memory, entry), now);
    collector_.take(Unit::Memory, entry);
    changed_ = true;
    return;
  }
  for (uint32_t i = 0; i < access_queues_.size(); ++i) {
    const uint32_t s = (next_access_queue_ + i) % static_cast<uint32_t>(access_queues_.size());
    std::deque<QueuedAccess>& queue = access_queues_[s];
    auto waiting = std::find_if(queue.begin(), queue.end(),
                                [](const QueuedAccess& q) { return q.in_flight != InFlightPool::none; });
    if (waiting == queue.end() || waiting->leaves > now) continue;
    load_store_.accept(waiting->in_flight, now);
    waiting->in_flight = InFlightPool::none;
    waiting->leaves = now + access_place_return;  // from now on: when its place is free
    next_access_queue_ = (s + 1) % static_cast<uint32_t>(access_queues_.size());
    changed_ = true;
    return;
  }
}

void Sm::read_operands() {
  if (!as_collector_) return;
  for (uint32_t i = 0; i < spec_.sm.register_file.port_throughput && collector_.busy(); ++i)
    collector_.step();
  collector_.end_cycle();
  changed_ |= collector_.take_changed();
  counters_[stall_slot_][Counter::register_bank_conflicts] += collector_.take_bank_conflicts();
}

uint64_t Sm::available(uint32_t scheduler, uint64_t candidates, uint32_t excluded_units, Cycle now) const {
  if (candidates == 0) return 0;
  const WarpTable::SchedulerMasks& m = warps_.masks(scheduler);
  if (as_collector_ && excluded_units == 0 && collector_.all_can_issue()) return candidates;
  uint64_t free = 0;
  for (size_t u = 0; u < m.needs.size(); ++u) {
    if ((m.needs[u] & candidates) == 0 || (excluded_units >> u & 1)) continue;
    const Unit unit = static_cast<Unit>(u);
    bool can = false;
    if (as_collector_)
      can = collector_.can_issue(unit, scheduler);
    else if (unit == Unit::Memory)
      can = access_queues_[scheduler].size() < std::max(1u, spec_.load_store.sub_core_queue + 1);
    else
      can = units_.accepts(unit, scheduler % units_.count(unit), now);
    if (can) free |= m.needs[u];
  }
  return candidates & free;
}

void Sm::issue(Cycle now) {
  check_membars();
  const uint32_t count = spec_.sm.sub_cores;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t s = (issue_first_ + i) % count;
    const WarpTable::SchedulerMasks& m = warps_.masks(s);
    if (m.resident == 0) continue;
    if (!as_collector_) {
      std::deque<QueuedAccess>& queue = access_queues_[s];
      while (!queue.empty() && queue.front().in_flight == InFlightPool::none && queue.front().leaves <= now)
        queue.pop_front();
      if (issue_blocked_until_[s] > now) {
        count_cycle(s, 0, 0);
        continue;
      }
    }
    schedulers_[s].begin_cycle(warps_);
    uint64_t could_issue = available(s, m.issuable(), 0, now);
    int32_t position = could_issue ? schedulers_[s].choose(warps_, could_issue, now) : -1;
    if (position >= 0 && !constant_operand_there(s, static_cast<uint32_t>(position), now)) {
      could_issue &= ~(uint64_t{1} << position);
      position = -1;
      issue_blocked_until_[s] = now + operand_miss;
      changed_ = true;
    }
    count_cycle(s, position >= 0 ? uint64_t{1} << position : 0, could_issue);
    if (position < 0) continue;
    const uint64_t chosen = uint64_t{1} << position;
    uint32_t used_units = 0;
    for (uint32_t n = 0; n < spec_.sm.scheduler.issue_width; ++n) {
      if (n > 0 && (available(s, chosen & m.issuable(), used_units, now) == 0 ||
                    !constant_operand_there(s, static_cast<uint32_t>(position), now)))
        break;
      const Unit unit = warps_.next_instruction(warps_.slot_at(s, static_cast<uint32_t>(position))).unit;
      if (spec_.sm.scheduler.dual_issue_different_units) {
        used_units |= unit_bit(unit);
        if (is_specialised(unit))
          used_units |= unit_bit(Unit::Branch) | unit_bit(Unit::Texture) | unit_bit(Unit::Tensor) |
                        unit_bit(Unit::Uniform);
      }
      issue_instruction(s, static_cast<uint32_t>(position), now);
    }
    schedulers_[s].issued(position);
    changed_ = true;
  }
  if (resident_ctas_ > 0) issue_first_ = (issue_first_ + 1) % count;
}

void Sm::issue_instruction(uint32_t scheduler, uint32_t position, Cycle now) {
  const uint32_t w = warps_.slot_at(scheduler, position);
  WarpTable::Warp& warp = warps_[w];
  const DynamicRecord& record = warps_.next_record(w);  // until advance()
  const DecodedInstruction& d = warp.kernel->instructions[record.static_index];
  const StaticInstruction& s = d.fixed;
  const uint16_t slot = warp.kernel->slot;
  Counters& counters = counters_[slot];
  ++counters[Counter::warp_instructions];
  const auto threads = static_cast<uint64_t>(std::popcount(record.mask));
  counters[Counter::thread_instructions] += threads;
  LaunchActivity::Executions& executions = activity_[slot].executions[record.static_index];
  ++executions.warps;
  executions.threads += threads;
  ++warp.issued;
  warp.issued_index = record.static_index;
  if (warp.kernel->observed_blocks) [[unlikely]]
    observe_issue(w, record.static_index, now);

  uint32_t in_flight = InFlightPool::none;
  if (d.memory_pipeline || as_collector_) {
    in_flight = pool_.allocate();
    InFlight& instruction = pool_[in_flight];
    instruction.instruction = &d;
    instruction.mask = record.mask;
    instruction.age = next_issue_++;
    instruction.warp = static_cast<uint16_t>(w);
    instruction.slot = slot;
    instruction.space = s.space;
    instruction.passes = 0;
    instruction.outstanding = 0;
    instruction.counts_as_store = false;
    instruction.transactions.clear();
    if (d.memory_pipeline) start_memory_access(instruction, record);
  }

  WarpTable::SchedulerMasks& masks = warps_.masks(scheduler);
  const uint64_t bit = uint64_t{1} << position;
  switch (s.operation) {
    case Operation::Barrier:
    case Operation::BarrierArrive:
      if (record.mask != 0) arrive_at_barrier(w, s, record);
      break;
    case Operation::MemoryBarrier:
      masks.membar |= bit;
      break;
    case Operation::AsyncCopy:
      pool_[in_flight].async_group = warps_.async_copy_started(w);
      break;
    case Operation::AsyncCommit:
      warps_.async_commit(w);
      break;
    case Operation::AsyncWait:
      warps_.async_wait(w, s.immediate);
      break;
    case Operation::BulkLoad:
      bulk_copy_started(ctas_[warp.cta_slot], record.mbarrier);
      break;
    case Operation::MbarrierWait:
      wait_for_bulk_copies(w, record.base);
      break;
    case Operation::Sleep:
      if (record.mask != 0)
        sleep(w, now, s.immediate > 0 ? static_cast<uint64_t>(s.immediate) : record.nanoseconds);
      break;
    default:
      break;
  }
  if (d.constant_load) find_constants(warp, record);
  warps_.reserve(w, d);
  const uint16_t cta_slot = warp.cta_slot;
  if (record.ticket) {
    ctas_[cta_slot].stream->issued(warp.index_in_cta, record.ticket, now, now + deferral_);
    deferred_.push_back({now, ctas_[cta_slot].stream, warp.index_in_cta, record.ticket});
    wakes_.push_back({now + deferral_, cta_slot});
  }
  const uint16_t index_in_cta = warp.index_in_cta;
  if (warps_.advance(w)) release_barrier(ctas_[cta_slot], ctas_[cta_slot].barriers.exit(index_in_cta));

  if (as_collector_) {
    collector_.issue(d.unit, scheduler, in_flight);
  } else if (d.memory_pipeline) {
    const Cycle leaves = std::max(now + access_first, last_access_left_[scheduler] + access_interval);
    last_access_left_[scheduler] = leaves;
    access_queues_[scheduler].push_back({in_flight, leaves});
  } else {
    const uint32_t delay = read_ports_[scheduler].read(d, w, now);
    const bool constants = d.constant_load && !constants_.empty();
    const uint32_t passes = constants ? static_cast<uint32_t>(constants_.size()) : 1;
    units_.start(d.unit, scheduler % units_.count(d.unit), now, d.initiation_interval * passes);
    if (delay > 0) issue_blocked_until_[scheduler] = now + 1 + delay;
    counters[Counter::register_bank_conflicts] += delay;
    const auto number = static_cast<uint16_t>(w);
    const Cycle done = now + d.latency + delay + Cycle{d.initiation_interval} * (passes - 1);
    if (!constants || constant_cache_.load({&d, number}, constants_, slot, now, done, counters))
      wheel_.schedule(done, {&d, number});
  }
}

void Sm::sleep(uint32_t w, Cycle now, uint64_t nanoseconds) {
  const Cycle cycles = (std::min(nanoseconds, longest_sleep) * spec_.clock.core_khz + 999'999) / 1'000'000;
  if (cycles == 0) return;
  warps_.masks(warps_.scheduler_of(w)).sleeping |= warps_.bit_of(w);
  sleepers_.push_back({now + cycles, w, warps_[w].age});
}

void Sm::wake_sleepers(Cycle now) {
  std::erase_if(sleepers_, [&](const Sleeper& s) {
    const bool same = warps_[s.warp].resident && warps_[s.warp].age == s.age;
    if (same && s.until > now) return false;
    if (same) warps_.masks(warps_.scheduler_of(s.warp)).sleeping &= ~warps_.bit_of(s.warp);
    return true;
  });
}

void Sm::retire_warps(Cycle now) {
  for (uint64_t touched = warps_.take_touched(); touched; touched &= touched - 1) {
    const auto w = static_cast<uint32_t>(std::countr_zero(touched));
    if (!warps_[w].resident || !warps_.can_retire(w)) continue;
    const uint16_t cta_slot = warps_[w].cta_slot;
    if (warps_[w].dropped && bulk_copies_pending(ctas_[cta_slot], 0)) continue;
    const bool dropped = warps_[w].dropped;
    observe_retirement(w, now);
    warps_.retire(w);
    changed_ = true;
    Cta& cta = ctas_[cta_slot];
    cta.instructions += warps_[w].issued;
    if (--cta.warps_left > 0) continue;
    Counters& counters = counters_[cta.kernel->slot];
    if (!dropped) {
      ++counters[Counter::ctas_finished];
      counters[Counter::finished_instructions] += cta.instructions;
    }
    ended_.push_back({cta_slot, cta.kernel->slot, now});
    cta.stream.reset();
    --resident_ctas_;
  }
}

void Sm::drop(uint16_t slot, Cycle now, std::vector<Dropped>& dropped) {
  for (auto start = starts_.begin(); start != starts_.end();) {
    if (start->kernel->slot != slot) {
      ++start;
      continue;
    }
    dropped.push_back({std::move(start->stream), start->cta_slot, start->cycle, {}, {}});
    ended_.push_back({start->cta_slot, slot, now});
    start = starts_.erase(start);
  }
  for (uint32_t i = 0; i < ctas_.size(); ++i) {
    const Cta& cta = ctas_[i];
    if (!cta.stream || cta.kernel->slot != slot) continue;
    Dropped& d = dropped.emplace_back(Dropped{cta.stream, i, cta.begin, {}, {}});
    for (uint32_t w = cta.first_warp; w < cta.first_warp + cta.kernel->warps_per_cta; ++w) {
      const WarpTable::Warp& warp = warps_[w];
      if (!warp.resident || warp.cta_slot != i) continue;
      for (uint32_t k = 0; k < warp.held; ++k) {
        const DynamicRecord& r = warp.buffer[(warp.buffer_head + k) % WarpTable::buffer_capacity];
        d.buffered += {1, static_cast<uint64_t>(std::popcount(r.mask))};
      }
      if (cta.kernel->observed_blocks) blocks_under_way(w, now, d.blocks);
    }
  }
  for (uint32_t w = 0; w < warps_.slots(); ++w) {
    if (!warps_[w].resident || warps_[w].kernel->slot != slot) continue;
    if (fetch_buffer_ == static_cast<int32_t>(w)) fetch_buffer_ = -1;
    warps_.drop(w);
  }
  own_event_ = std::min(own_event_, now);
}

void Sm::fill_buffer(uint32_t w, Cycle now) {
  warps_.fill_buffer(w, now);
  if (warps_[w].stream->take_woken()) wake(warps_[w].cta_slot);
}

void Sm::wake(uint32_t cta_slot) {
  const Cta& cta = ctas_[cta_slot];
  if (!cta.stream) return;
  for (uint32_t i = 0; i < cta.kernel->warps_per_cta; ++i) warps_.source_goes_on(cta.first_warp + i);
  changed_ = true;
}

void Sm::wake_clusters(Cycle now) {
  for (uint32_t i = 0; i < ctas_.size(); ++i) {
    if (!ctas_[i].stream || !ctas_[i].stream->take_woken()) continue;
    wake(i);
    own_event_ = std::min(own_event_, now);
  }
}

void Sm::fetch(Cycle now) {
  retire_warps(now);
  while (!wakes_.empty() && wakes_.front().cycle <= now) {
    wake(wakes_.front().cta_slot);
    wakes_.pop_front();
  }
  if (!instruction_cache_.perfect() || !constant_cache_.perfect()) {
    thread_local std::vector<uint32_t> woken;
    woken.clear();
    changed_ |= instruction_cache_.cycle(now, load_store_, woken);
    if (!instruction_cache_.constants().empty()) constant_cache_.take_lines(now);
    for (uint32_t w : woken) {
      if (!warps_[w].resident) continue;
      warps_.set_fetch_pending(w, false);
      fill_buffer(w, now);
    }
  }
  const auto fetch_from_cache = [&](uint32_t w) {
    if (instruction_cache_.perfect()) return true;
    const WarpTable::Warp& warp = warps_[w];
    const uint64_t pc = warps_.next_pc(w, now);
    if (warp.held == 0) return true;  // nothing yet, or the end: the buffer learns it
    const uint64_t address = warp.kernel->code_base + pc;
    if (instruction_cache_.fetch(w, warps_.scheduler_of(w), address, warp.kernel->slot, now,
                                 counters_[warp.kernel->slot]))
      return true;
    warps_.set_fetch_pending(w, true);
    return false;
  };
  if (as_collector_) {
    // Fetch and decode are two stages with one buffer between them, repeated fetch_width times a cycle; a
    // warp is fetched only when its instruction buffer is empty, and then gets all its entries.
    for (uint32_t i = 0; i < spec_.sm.front_end.fetch_width; ++i) {
      if (fetch_buffer_ >= 0) {
        fill_buffer(static_cast<uint32_t>(fetch_buffer_), now);
        fetch_buffer_ = -1;
        changed_ = true;
      }
      const uint64_t wanted = warps_.fetchable();
      if (wanted == 0) break;
      const uint64_t later = last_fetched_ >= 63 ? 0 : wanted & (~uint64_t{0} << (last_fetched_ + 1));
      last_fetched_ = static_cast<uint32_t>(std::countr_zero(later ? later : wanted));
      changed_ = true;
      if (fetch_from_cache(last_fetched_)) fetch_buffer_ = static_cast<int32_t>(last_fetched_);
    }
    return;
  }
  // Each sub-core refills one warp a cycle: the one that issued last if it has room, else the next in turn.
  for (uint32_t s = 0; s < spec_.sm.sub_cores; ++s) {
    uint64_t wanted = 0;
    for (uint64_t rest = warps_.fillable(); rest; rest &= rest - 1) {
      const auto w = static_cast<uint32_t>(std::countr_zero(rest));
      if (warps_.scheduler_of(w) == s) wanted |= uint64_t{1} << w;
    }
    if (wanted == 0) continue;
    const uint64_t empty = wanted & warps_.fetchable();
    const uint64_t from = empty ? empty : wanted;
    const uint64_t later = last_fetched_ >= 63 ? 0 : from & (~uint64_t{0} << (last_fetched_ + 1));
    const auto w = static_cast<uint32_t>(std::countr_zero(later ? later : from));
    last_fetched_ = w;
    changed_ = true;
    if (fetch_from_cache(w)) fill_buffer(w, now);
  }
}

void Sm::deliver(const LineArrival& arrival) {
  const auto before = [](const LineArrival& a, const LineArrival& b) { return a.cycle < b.cycle; };
  line_arrivals_.insert(std::upper_bound(line_arrivals_.begin(), line_arrivals_.end(), arrival, before),
                        arrival);
}

void Sm::tick(Cycle now) {
  warps_.set_time(now);
  changed_ = false;
  while (!starts_.empty() && starts_.front().cycle <= now) {
    place(starts_.front());
    starts_.pop_front();
    changed_ = true;
  }
  while (next_reply_ < replies_.size() && replies_[next_reply_].cycle <= now &&
         LoadStoreUnit::is_fetch(replies_[next_reply_])) {
    instruction_cache_.fill(replies_[next_reply_++].address, now);
    changed_ = true;
  }
  while (!line_arrivals_.empty() && line_arrivals_.front().cycle <= now) {
    instruction_cache_.arrive(line_arrivals_.front(), now, counters_);
    line_arrivals_.pop_front();
    changed_ = true;
  }
  last_states_.fill(0);
  if (!sleepers_.empty()) wake_sleepers(now);
  write_back(now);
  if (constant_cache_.next_event() <= now) constants_come(now);
  execute(now);
  read_operands();
  issue(now);
  fetch(now);
}

Cycle Sm::find_next_event(Cycle now) const {
  Cycle next = std::min(wheel_.next_after(now), load_store_.next_event(now));
  if (!wakes_.empty()) next = std::min(next, std::max(now + 1, wakes_.front().cycle));
  for (const Sleeper& sleeper : sleepers_) next = std::min(next, sleeper.until);
  next = std::min(next, instruction_cache_.next_event(now));
  next = std::min(next, std::max(now + 1, constant_cache_.next_event()));
  if (as_collector_) {
    for (Unit unit : start_order)
      for (uint32_t ready = collector_.ready_entries(unit); ready; ready &= ready - 1)
        for (uint32_t k = 0; k < units_.count(unit); ++k) {
          // A unit that is free was refused the result bus: ask again next cycle.
          const Cycle free_at = units_.free_at(unit, k);
          next = std::min(next, std::max(now + 1, free_at));
        }
    return next;
  }
  for (uint32_t s = 0; s < spec_.sm.sub_cores; ++s) {
    if (issue_blocked_until_[s] > now) next = std::min(next, issue_blocked_until_[s]);
    for (const QueuedAccess& access : access_queues_[s])
      next = std::min(next, std::max(now + 1, access.leaves));
    const WarpTable::SchedulerMasks& m = warps_.masks(s);
    const uint64_t ready = m.issuable();
    if (ready == 0) continue;
    for (size_t u = 0; u < m.needs.size(); ++u) {
      const Unit unit = static_cast<Unit>(u);
      if (!(m.needs[u] & ready) || unit == Unit::Memory) continue;
      next = std::min(next, std::max(now + 1, units_.free_at(unit, s % units_.count(unit))));
    }
  }
  return next;
}

Cycle Sm::next_outside_event() const {
  Cycle next = ~Cycle{0};
  if (!starts_.empty()) next = starts_.front().cycle;
  if (next_reply_ < replies_.size()) next = std::min(next, replies_[next_reply_].cycle);
  if (!line_arrivals_.empty()) next = std::min(next, line_arrivals_.front().cycle);
  return next;
}

void Sm::pass_idle(Cycle from, Cycle to) {
  load_store_.skip(to - from);
  if (resident_ctas_ > 0) {
    issue_first_ = static_cast<uint32_t>((issue_first_ + (to - from)) % spec_.sm.sub_cores);
    count_cycles(to - from);
  }
  sample(from, to);
}

void Sm::run(Cycle begin, Cycle end) {
  for (Cycle now = begin; now < end;) {
    const Cycle wake = std::min(end, std::min(own_event_, next_outside_event()));
    if (wake > now) {
      pass_idle(now, wake);
      now = wake;
      continue;
    }
    tick(now);
    own_event_ = changed_ ? now + 1 : find_next_event(now);
    if (resident_ctas_ > 0) count_cycles(1);
    sample(now, now + 1);
    ++now;
  }
  replies_.erase(replies_.begin(), replies_.begin() + static_cast<std::ptrdiff_t>(next_reply_));
  next_reply_ = 0;
}

}  // namespace simt
