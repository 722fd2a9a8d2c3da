#include "timing/core/sm.hpp"

#include <bit>

namespace simt {
namespace {

constexpr uint64_t longest_sleep = 1'000'000;  // nanoseconds (PTX)
constexpr uint32_t numbered_barriers = 16;     // per CTA
constexpr Cycle longest_refusal = 65'536;      // by schedulers, of an SM's ready warps

}  // namespace

Sm::Sm(const Spec& spec, const CoreTraits& traits, uint16_t id, uint32_t launch_slots, Cycle deferral,
       MemoryPort& port)
    : port_(port),
      spec_(spec),
      traits_(traits),
      id_(id),
      warps_(spec.sm.max_warps, launch_slots, spec.sm.sub_cores, spec.sm.front_end.instruction_buffer,
             spec.sm.front_end.branch_latency > 0),
      ctas_(spec.sm, spec.launch.warp_start_interval, traits.ctas_begin_in_turn, warps_),
      recorder_(warps_),
      observer_(warps_, ctas_, launch_slots),
      addresses_(spec, traits, warps_, ctas_),
      load_store_(spec, traits, id, warps_, pool_, recorder_.counters(), port.requests),
      tensor_queue_(spec),
      front_end_(spec, warps_, ctas_, recorder_.counters()),
      constant_cache_(spec, front_end_.caches()),
      deferral_(deferral) {
  const uint32_t positions = (spec.sm.max_warps + spec.sm.sub_cores - 1) / spec.sm.sub_cores;
  for (uint32_t s = 0; s < spec.sm.sub_cores; ++s)
    schedulers_.push_back(
        spec.sm.scheduler.policy->make({spec.sm.scheduler, warps_.view(s), id, s, positions}));
  if (spec.sm.scheduler.policy->observes_l1)
    load_store_.observe_l1(schedulers_);
  else if (spec.l1.cache.replacement->make)
    load_store_.observe_l1({});
}

void Sm::take_arrivals(Cycle now) {
  for (; !starts_.empty() && starts_.front().cycle <= now; starts_.pop_front()) {
    const DecodedKernel& kernel = *starts_.front().kernel;
    const std::vector<CtaStream::Arrival> at_barriers = starts_.front().stream->arrivals();
    ctas_.place(starts_.front(), !at_barriers.empty());
    for (const CtaStream::Arrival& a : at_barriers)
      arrive_at_barrier(ctas_[starts_.front().cta_slot].slot_of(a.warp), a.barrier, a.threads, a.waits, now);
    // The launch initialises its constant bank, so that only the caches closest to the sub-cores miss.
    front_end_.caches().insert_constants(kernel.constant_bank + kernel.constants_begin,
                                         kernel.constant_bank + kernel.constants_end);
    recorder_.cta_started(kernel);
    changed_ = true;
  }
  if (ctas_.start_warps(now)) {
    recorder_.residents_changed();
    changed_ = true;
  }
  while (next_reply_ < port_.replies.size() && port_.replies[next_reply_].cycle <= now &&
         LoadStoreUnit::is_fetch(port_.replies[next_reply_])) {
    front_end_.caches().fill(port_.replies[next_reply_++].address, now);
    changed_ = true;
  }
  for (; !line_arrivals_.empty() && line_arrivals_.front().cycle <= now; line_arrivals_.pop_front()) {
    front_end_.caches().arrive(line_arrivals_.front(), now, recorder_.counters());
    changed_ = true;
  }
  find_arrival();
}

void Sm::find_arrival() {
  arrival_ = ctas_.next_start();
  if (!starts_.empty()) arrival_ = std::min(arrival_, starts_.front().cycle);
  if (!line_arrivals_.empty()) arrival_ = std::min(arrival_, line_arrivals_.front().cycle);
}

void Sm::deliver(const LineArrival& arrival) {
  const auto before = [](const LineArrival& a, const LineArrival& b) { return a.cycle < b.cycle; };
  line_arrivals_.insert(std::upper_bound(line_arrivals_.begin(), line_arrivals_.end(), arrival, before),
                        arrival);
  find_arrival();
}

bool Sm::read_constant_operand(uint32_t w, uint32_t operand, Cycle now) {
  const DecodedKernel& kernel = *warps_[w].kernel;
  const uint32_t scheduler = warps_.scheduler_of(w);
  if (constant_cache_.read_operand(w, scheduler, kernel.constant_bank + operand, kernel.slot, now,
                                   recorder_.counters()[kernel.slot]))
    return true;
  warps_.change_masks(scheduler).constant |= warps_.bit_of(w);
  return false;
}

void Sm::take_constants(Cycle now) {
  constant_warps_.clear();
  constant_loads_.clear();
  constant_cache_.cycle(now, constant_warps_, constant_loads_, recorder_.counters());
  for (const uint32_t w : constant_warps_)
    warps_.change_masks(warps_.scheduler_of(w)).constant &= ~warps_.bit_of(w);
  for (const ConstantCache::Load& load : constant_loads_) {
    warps_.release(load.warp, *load.instruction);
    warps_.leave_pipeline(load.warp);
  }
  changed_ = true;
}

void Sm::synchronise(uint32_t w, const DecodedInstruction& instruction, const DynamicRecord& record,
                     uint32_t in_flight, Cycle now) {
  const StaticInstruction& s = instruction.fixed;
  switch (s.operation) {
    case Operation::Barrier:
    case Operation::BarrierArrive:
      if (record.mask != 0) arrive_at_barrier(w, s, record, now);
      break;
    case Operation::MemoryBarrier:
      warps_.change_masks(warps_.scheduler_of(w)).membar |= warps_.bit_of(w);
      membars_ = true;
      break;
    case Operation::AsyncCopy:
      pool_[in_flight].async_copy = warps_.async_copy_started(w);
      break;
    case Operation::AsyncCommit:
      warps_.async_commit(w, instruction.issue.write_counter);
      break;
    case Operation::AsyncWait:
      warps_.async_wait(w, s.immediate);
      break;
    case Operation::BulkLoad:
      ctas_.bulk_copy_started(warps_[w].cta_slot, record.mbarrier);
      break;
    case Operation::MbarrierWait:
      ctas_.wait_for_bulk_copies(w, record.base);
      break;
    case Operation::TensorProduct:
      tensor_queue_.product(TensorMemoryWork::unpacked(record.base), now);
      break;
    case Operation::TensorCopy:
      tensor_queue_.copy(TensorMemoryWork::unpacked(record.base), now);
      break;
    case Operation::TensorCommit:
      ctas_.bulk_copy_started(warps_[w].cta_slot, record.base);
      tensor_queue_.commit(warps_[w].cta_slot, record.base, now);
      break;
    case Operation::Sleep:
      if (record.mask != 0)
        sleep(w, now, s.immediate > 0 ? static_cast<uint64_t>(s.immediate) : record.nanoseconds);
      break;
    default:
      break;
  }
}

void Sm::arrive_at_barrier(uint32_t w, const StaticInstruction& s, const DynamicRecord& record, Cycle now) {
  // An executed program may compute both.
  const bool computed = s.immediate < 0;
  arrive_at_barrier(w, computed ? record.base : static_cast<uint64_t>(s.immediate),
                    computed ? static_cast<uint64_t>(record.stride) : static_cast<uint64_t>(s.immediate2),
                    s.operation == Operation::Barrier, now);
}

void Sm::arrive_at_barrier(uint32_t w, uint64_t barrier, uint64_t threads, bool waits, Cycle now) {
  if (spec_.sm.free_barriers) return;
  uint32_t number = 0, expected = 0;
  if (traits_.numbered_barriers) {
    number = static_cast<uint32_t>(barrier) % numbered_barriers;
    expected = static_cast<uint32_t>(threads / spec_.sm.warp_size);
  }
  ctas_.arrive(w, number, waits, expected, now);
}

void Sm::check_membars() {
  membars_ = false;
  for (uint32_t s = 0; s < spec_.sm.sub_cores; ++s) {
    for (uint64_t waiting = warps_.masks(s).membar; waiting; waiting &= waiting - 1) {
      const auto position = static_cast<uint32_t>(std::countr_zero(waiting));
      const uint32_t w = warps_.slot_at(s, position);
      if (warps_.has_pending_registers(w) ||
          (traits_.membar_awaits_stores && warps_[w].outstanding_stores > 0)) {
        membars_ = true;
        continue;
      }
      warps_.change_masks(s).membar &= ~(uint64_t{1} << position);
      if (spec_.l1.invalidate_at_membar) load_store_.invalidate_l1();
      changed_ = true;
    }
  }
}

void Sm::sleep(uint32_t w, Cycle now, uint64_t nanoseconds) {
  const Cycle cycles =
      (std::min(nanoseconds, longest_sleep) * spec_.clock.core_mhz.khz + 999'999) / 1'000'000;
  if (cycles == 0) return;
  warps_.change_masks(warps_.scheduler_of(w)).sleeping |= warps_.bit_of(w);
  sleepers_.push_back({now + cycles, w, warps_.age(w)});
}

void Sm::asked_in_vain(uint32_t scheduler, Cycle now) {
  const Cycle again = schedulers_[scheduler]->asks_again(now);
  if (again == WarpScheduler::never) return;
  uint64_t issued = 0;
  for (uint32_t w = 0; w < warps_.slots(); ++w) issued += warps_[w].issued;
  if (issued != issued_before_) {
    issued_before_ = issued;
    in_vain_since_ = now;
  }
  if (now - in_vain_since_ > longest_refusal) return;
  ask_again_ = std::max(now + 1, ask_again_ > now ? std::min(ask_again_, again) : again);
}

void Sm::wake_sleepers(Cycle now) {
  std::erase_if(sleepers_, [&](const Sleeper& s) {
    const bool same = warps_[s.warp].resident && warps_.age(s.warp) == s.age;
    if (same && s.until > now) return false;
    if (same) warps_.change_masks(warps_.scheduler_of(s.warp)).sleeping &= ~warps_.bit_of(s.warp);
    return true;
  });
}

void Sm::defer(const WarpTable::Warp& warp, uint32_t ticket, Cycle now) {
  const std::shared_ptr<CtaStream>& stream = ctas_[warp.cta_slot].stream;
  stream->issued(warp.index_in_cta, ticket, now, now + deferral_);
  deferred_.push_back({now, stream, warp.index_in_cta, ticket});
  front_end_.wake_at(now + deferral_, warp.cta_slot);
}

void Sm::retire_touched(Cycle now, uint64_t touched) {
  for (; touched; touched &= touched - 1) {
    const auto w = static_cast<uint32_t>(std::countr_zero(touched));
    if (!warps_[w].resident || !warps_.can_retire(w, traits_.stores_hold_warp)) continue;
    const uint16_t cta_slot = warps_[w].cta_slot;
    const bool dropped = warps_[w].dropped;
    if (dropped && ctas_.bulk_copies_pending(cta_slot, 0)) continue;
    observer_.retires(w, now);
    recorder_.residents_changed();
    changed_ = true;
    if (!ctas_.retire(w)) continue;
    const uint16_t slot = ctas_[cta_slot].kernel->slot;
    if (!dropped) {
      Counters& counters = recorder_.counters()[slot];
      ++counters[Counter::ctas_finished];
      counters[Counter::finished_instructions] += ctas_[cta_slot].instructions;
    }
    ended_.push_back({cta_slot, slot, now});
  }
}

void Sm::drop(uint16_t slot, Cycle now, std::vector<DroppedCta>& dropped) {
  for (CtaStart& start : starts_) {
    if (start.kernel->slot != slot) continue;
    dropped.push_back({id_, std::move(start.stream), start.cta_slot, start.cycle, {}, {}});
    ended_.push_back({start.cta_slot, slot, now});
  }
  std::erase_if(starts_, [&](const CtaStart& start) { return start.kernel->slot == slot; });
  for (uint32_t i = 0; i < ctas_.slots(); ++i) {
    const CtaTable::Cta& cta = ctas_[i];
    if (!cta.stream || cta.kernel->slot != slot) continue;
    DroppedCta& d = dropped.emplace_back(DroppedCta{id_, cta.stream, i, cta.begin, {}, {}});
    for (uint32_t w = cta.first_warp; w < cta.first_warp + cta.kernel->warps_per_cta; ++w) {
      const WarpTable::Warp& warp = warps_[w];
      if (!warp.resident || warp.cta_slot != i) continue;
      warps_.for_each_ahead(
          w, [&](uint32_t, uint64_t mask) { d.buffered += {1, static_cast<uint64_t>(std::popcount(mask))}; });
      if (cta.kernel->observed_blocks) observer_.under_way(w, now, d.blocks);
    }
    if (ctas_.drop(i)) ended_.push_back({i, slot, now});
  }
  find_arrival();
  for (uint32_t w = 0; w < warps_.slots(); ++w) {
    if (!warps_[w].resident || warps_[w].kernel->slot != slot) continue;
    forget_fetch(w);
    warps_.drop(w);
  }
  own_event_ = std::min(own_event_, now);
}

void Sm::wake_clusters(Cycle now) {
  for (uint32_t i = 0; i < ctas_.slots(); ++i) {
    if (!ctas_[i].stream || !ctas_[i].stream->take_woken()) continue;
    ctas_.wake(i);
    own_event_ = std::min(own_event_, now);
  }
}

Cycle Sm::next_shared_event(Cycle now) const {
  Cycle next = std::min({load_store_.next_event(now), front_end_.next_event(now), ctas_.next_opening(),
                         std::max(now + 1, tensor_queue_.next_event())});
  for (const Sleeper& sleeper : sleepers_) next = std::min(next, sleeper.until);
  if (ask_again_ > now) next = std::min(next, ask_again_);
  return std::min(next, std::max(now + 1, constant_cache_.next_event()));
}

void Sm::pass_idle(Cycle from, Cycle to) {
  load_store_.skip(to - from);
  if (ctas_.resident() > 0) {
    issue_first_ = static_cast<uint32_t>((issue_first_ + (to - from)) % spec_.sm.sub_cores);
    recorder_.count_cycles(to - from);
  }
  recorder_.sample(from, to);
}

void Sm::drop_taken_replies() {
  if (next_reply_ == 0) return;
  port_.replies.erase(port_.replies.begin(),
                      port_.replies.begin() + static_cast<std::ptrdiff_t>(next_reply_));
  next_reply_ = 0;
}

std::string Sm::describe_waits() const {
  std::string text;
  for (uint32_t w = 0; w < warps_.slots(); ++w) {
    const WarpTable::Warp& warp = warps_[w];
    if (!warp.resident) continue;
    text += "  SM " + std::to_string(id_) + " CTA slot " + std::to_string(warp.cta_slot) + " warp " +
            std::to_string(warp.index_in_cta) + " of launch " + std::to_string(warp.kernel->launch.id) +
            ": " + describe_wait(w) + "\n";
  }
  return text;
}

void Sm::count_waits(uint16_t slot, std::map<std::string, uint64_t>& warps) const {
  for (uint32_t w = 0; w < warps_.slots(); ++w)
    if (warps_[w].resident && warps_.launch_slot(w) == slot) ++warps[describe_wait(w)];
}

std::string Sm::describe_wait(uint32_t w) const {
  static constexpr std::array<const char*, LaunchActivity::reasons> words = {
      "issues",
      "can issue",
      "waits for its instruction buffer to be filled",
      "waits for barrier",
      "waits for memory barrier: earlier accesses have not finished",
      "waits for asynchronous copies",
      "waits for a value from global or local memory",
      "waits for a value from shared memory",
      "waits for a fixed-latency result",
      "waits for its execution unit",
      "waits for the pipeline of global and local memory",
      "waits for the pipeline of shared memory",
      "waits for the end of its sleep",
      "waits for a constant operand",
      "waits for outstanding stores or results after its last instruction",
      "waits for its warp group's multiplications, or for its other warps"};
  const WarpTable::Warp& warp = warps_[w];
  const StallReason state = recorder_.state_of(w);
  std::string text = words[static_cast<size_t>(state)];
  if (warp.held > 0) {
    const StaticInstruction& s = warps_.next_instruction(w).fixed;
    text +=
        ", next instruction " + warp.kernel->source->opcodes()[s.opcode] + " at pc " + std::to_string(s.pc);
  }
  if (warp.obstacles.source_waits)
    text += "; the program waits: " + warp.stream->waits_for(warp.index_in_cta);
  if (state == StallReason::Barrier) {
    const CtaBarriers& barriers = ctas_[warp.cta_slot].barriers;
    for (uint32_t b = 0; b < CtaBarriers::count; ++b) {
      if (!(barriers.arrived(b) >> warp.index_in_cta & 1)) continue;
      text += "; barrier " + std::to_string(b) + " still misses warps";
      for (uint64_t rest = barriers.running() & ~barriers.arrived(b); rest; rest &= rest - 1)
        text += " " + std::to_string(std::countr_zero(rest));
    }
  }
  return text;
}

}  // namespace simt
