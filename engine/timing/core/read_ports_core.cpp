#include "timing/core/read_ports_core.hpp"

#include <algorithm>
#include <array>

#include "timing/core/sm_with.hpp"

namespace simt {
namespace {

// Memory instructions leave their sub-core's queue 4 cycles after issue (access_first), then one every 4
// cycles (address calculation), and free their entry some cycles later (Huerta et al., section 4.4).
constexpr Cycle access_interval = 4, access_place_return = 6;

// A scheduler whose instruction lacks its constant operand issues nothing for this long, then moves on to
// other warps (same paper).
constexpr Cycle operand_miss = 4;

}  // namespace

// Inline, so that SmWith, which is instantiated at the end, can inline them.

ReadPortsCore::ReadPortsCore(const CoreParts& parts)
    : parts_(parts),
      units_(parts.spec.sm),
      queue_places_(std::max(1u, parts.spec.load_store.sub_core_queue + 1)) {
  const RegisterFileSpec& registers = parts.spec.sm.register_file;
  const ReadPorts ports(std::max(1u, registers.banks / parts.spec.sm.sub_cores),
                        std::max(1u, registers.read_ports_per_bank), registers.operand_cache);
  for (uint32_t s = 0; s < parts.spec.sm.sub_cores; ++s) sub_cores_.push_back(SubCore{ports});
  for (uint32_t w = 0; w < parts.warps.slots(); ++w)
    sub_cores_[parts.warps.scheduler_of(w)].warps |= uint64_t{1} << w;
  for (uint32_t u = 0; u < static_cast<uint32_t>(Unit::Count); ++u) {
    const uint32_t count = units_.count(static_cast<Unit>(u));
    if (u != static_cast<uint32_t>(Unit::Memory) && count > 0 && count < sub_cores_.size())
      units_in_turn_ |= 1u << u;
  }
}

inline bool ReadPortsCore::write_back(Cycle now) {
  bool changed = false;
  if (products_ > 0) [[unlikely]] {
    for (SubCore& sub_core : sub_cores_) {
      RingQueue<Product>& products = sub_core.products;
      for (; !products.empty() && products.front().done <= now; products.pop_front()) {
        parts_.complete(*products.front().instruction, products.front().warp);
        --products_;
        changed = true;
      }
    }
  }
  if (!wheel_.any(now)) return changed;
  wheel_.take(now,
              [&](const CompletionWheel::Entry& entry) { parts_.complete(*entry.instruction, entry.warp); });
  return true;
}

/// Instructions start when they issue; what is left is to free the entries of accesses that were sent.
inline bool ReadPortsCore::execute(Cycle now) {
  if (now < frees_place_at_) return false;
  frees_place_at_ = never;
  for (SubCore& sub_core : sub_cores_) {
    RingQueue<QueuedAccess>& queue = sub_core.accesses;
    while (!queue.empty() && queue.front().in_flight == InFlightPool::none && queue.front().leaves <= now)
      queue.pop_front();
    if (!queue.empty() && queue.front().in_flight == InFlightPool::none)
      frees_place_at_ = std::min(frees_place_at_, queue.front().leaves);
  }
  return false;
}

inline bool ReadPortsCore::send_access(Cycle now) {
  if (now < sends_at_) return false;
  sends_at_ = never;
  const auto count = static_cast<uint32_t>(sub_cores_.size());
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t s = next_sub_core_ + i < count ? next_sub_core_ + i : next_sub_core_ + i - count;
    RingQueue<QueuedAccess>& queue = sub_cores_[s].accesses;
    size_t at = 0;
    while (at < queue.size() && queue[at].in_flight == InFlightPool::none) ++at;
    if (at == queue.size()) continue;
    QueuedAccess& waiting = queue[at];
    if (waiting.leaves > now) {
      sends_at_ = std::min(sends_at_, waiting.leaves);
      continue;
    }
    const InFlight& access = parts_.pool[waiting.in_flight];
    const IssueRule& rule = access.instruction->issue;
    if (rule.present) [[unlikely]]
      parts_.warps.dependences().operands_read(access.warp, rule, now + rule.operands_read);
    parts_.load_store.accept(waiting.in_flight, now);
    waiting = {InFlightPool::none, now + access_place_return};
    frees_place_at_ = std::min(frees_place_at_, waiting.leaves);
    sends_at_ = now + 1;  // others have not been looked at
    next_sub_core_ = (s + 1) % count;
    return true;
  }
  return false;
}

inline void ReadPortsCore::operand_missing(uint32_t scheduler, Cycle now) {
  sub_cores_[scheduler].issue_blocked_until = now + operand_miss;
}

inline void ReadPortsCore::dispatch(const Issued& issued, Cycle now) {
  const uint32_t scheduler = parts_.warps.scheduler_of(issued.warp);
  if (!issued.instruction.memory_pipeline) {
    start(issued, scheduler, now);
    return;
  }
  SubCore& sub_core = sub_cores_[scheduler];
  const Cycle first = access_first - issued.instruction.issue.departs_early;
  const Cycle leaves = std::max(now + first, sub_core.last_access_left + access_interval);
  sub_core.last_access_left = leaves;
  sub_core.accesses.push_back({issued.in_flight, leaves});
  sends_at_ = std::min(sends_at_, leaves);
}

inline void ReadPortsCore::start(const Issued& issued, uint32_t scheduler, Cycle now) {
  const DecodedInstruction& d = issued.instruction;
  constants_.clear();
  if (d.constant_load && issued.record.mask != 0) find_constants(issued);
  const Cycle queued = constants_.empty() ? 0 : parts_.constant_cache.queue(constants_.size(), now);
  SubCore& sub_core = sub_cores_[scheduler];
  const uint32_t delay = sub_core.ports.read(d, issued.warp, now);
  const uint32_t place = units_.place(d.unit, scheduler);
  if (d.shared_operands > 0) [[unlikely]]
    start_product(issued, sub_core, place, now + delay);
  else
    units_.start(d.unit, place, now, d.initiation_interval);
  if (d.issue.present) [[unlikely]] {
    parts_.warps.dependences().delay(issued.warp, delay);
    parts_.warps.dependences().operands_read(issued.warp, d.issue, now + d.issue.operands_read + delay);
  }
  Counters& counters = parts_.counters[issued.slot];
  if (delay > 0) {
    sub_core.issue_blocked_until = now + 1 + delay;
    counters[Counter::register_bank_conflicts] += delay;
  }
  if (d.shared_operands > 0) [[unlikely]]
    return;
  const auto w = static_cast<uint16_t>(issued.warp);
  const Cycle done = now + d.latency + delay + queued;
  if (constants_.empty() || parts_.constant_cache.load({&d, w}, constants_, issued.slot, now, done, counters))
    wheel_.schedule(done, {&d, w});
}

/// A tensor core takes multiplications by warp groups in order, and each when its operands have come from
/// shared memory.
inline void ReadPortsCore::start_product(const Issued& issued, SubCore& sub_core, uint32_t place, Cycle now) {
  const DecodedInstruction& d = issued.instruction;
  RingQueue<Product>& products = sub_core.products;
  const Cycle begin = products.empty() ? now : std::max(now, products.back().ends);
  const Cycle fetched = now + parts_.load_store.fetch_operands(d.shared_operands, now);
  const Cycle ends = std::max(begin + d.initiation_interval, fetched);
  products.push_back(
      {&d, static_cast<uint16_t>(issued.warp), ends, ends + d.latency - d.initiation_interval});
  ++products_;
  const size_t places = parts_.spec.sm.warp_group_queue;
  const Cycle free_at = products.size() < places ? now + 1 : products[products.size() - places].ends;
  units_.start(d.unit, place, now, static_cast<uint32_t>(std::max(free_at, now + 1) - now));
}

inline void ReadPortsCore::find_constants(const Issued& issued) {
  std::array<uint64_t, 64> lanes;
  const InstructionSource& source = *parts_.warps[issued.warp].kernel->source;
  const auto end = lanes.begin() + source.lane_addresses(issued.record, lanes.data());
  // In lane order; usually there is one address.
  for (auto lane = lanes.begin(); lane != end; ++lane)
    if (lane == lanes.begin() ||
        (*lane != constants_.back() && std::find(lanes.begin(), lane, *lane) == lane))
      constants_.push_back(*lane);
}

inline bool ReadPortsCore::fetch(Cycle now) {
  // Each sub-core refills one warp per cycle: an empty one if there is one, else the next in turn.
  const WarpTable& warps = parts_.warps;
  if (warps.fillable() == 0) return false;
  bool changed = false;
  for (const SubCore& sub_core : sub_cores_) {
    const uint64_t wanted = warps.fillable() & sub_core.warps;
    if (wanted == 0) continue;
    const uint64_t empty = wanted & warps.fetchable();
    const uint32_t w = parts_.front_end.next_in_turn(empty ? empty : wanted);
    changed = true;
    if (parts_.front_end.fetch(w, now)) parts_.front_end.fill(w, now);
  }
  return changed;
}

inline Cycle ReadPortsCore::next_event(Cycle now) const {
  Cycle next = std::min(wheel_.next_after(now), parts_.warps.dependences().next_due(now));
  next = std::min(next, std::max(now + 1, std::min(sends_at_, frees_place_at_)));
  for (uint32_t s = 0; s < sub_cores_.size(); ++s) {
    const SubCore& sub_core = sub_cores_[s];
    if (sub_core.issue_blocked_until > now) next = std::min(next, sub_core.issue_blocked_until);
    if (!sub_core.products.empty()) next = std::min(next, std::max(now + 1, sub_core.products.front().done));
    const SchedulerMasks& m = parts_.warps.masks(s);
    uint64_t ready = m.issuable();  // each needs one unit
    for (size_t u = 0; ready != 0 && u < m.needs.size(); ++u) {
      const Unit unit = static_cast<Unit>(u);
      const uint64_t here = m.needs[u] & ready;
      ready ^= here;
      if (here == 0 || unit == Unit::Memory) continue;
      next = std::min(next, std::max(now + 1, units_.free_at(units_.place(unit, s))));
    }
  }
  return next;
}

template class SmWith<ReadPortsCore>;

}  // namespace simt
