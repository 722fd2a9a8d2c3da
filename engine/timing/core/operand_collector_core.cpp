#include "timing/core/operand_collector_core.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "timing/core/sm_with.hpp"

namespace simt {
namespace {

// Order in which units are offered their instructions; it decides which gets the last slot of the result bus.
constexpr auto start_order = then_special(std::array{
    Unit::Fp32, Unit::Fp64, Unit::Int, Unit::Sfu, Unit::Branch, Unit::Texture, Unit::Tensor, Unit::Uniform});

// Cycles from a unit's last stage to the registers.
constexpr Cycle result_latency = 2;

}  // namespace

// Inline, so that SmWith, which is instantiated at the end, can inline them.

inline bool OperandCollectorCore::write_back(Cycle now) {
  if (!wheel_.any(now)) return false;
  wheel_.take(now, [&](const CompletionWheel::Entry& entry) {
    uint8_t written = 0;  // fixed-latency results do not wait for banks
    collector_.write_back(*entry.instruction, entry.warp, parts_.warps.scheduler_of(entry.warp), written);
    parts_.complete(*entry.instruction, entry.warp);
  });
  return true;
}

inline bool OperandCollectorCore::execute(Cycle now) {
  constexpr uint32_t memory = 1u << static_cast<uint32_t>(Unit::Memory);
  if ((collector_.ready_units() & ~memory) == 0) return false;
  const bool divided = parts_.spec.sm.sub_core_model;
  bool changed = false;
  for (Unit unit : start_order) {
    for (uint32_t ready = collector_.ready_entries(unit); ready; ready &= ready - 1) {
      uint32_t entry = static_cast<uint32_t>(std::countr_zero(ready));
      if (!divided) entry = collector_.oldest_ready(unit);
      const OperandCollector::Collected& oldest = collector_.ready_instruction(unit, entry);
      const DecodedInstruction& d = *oldest.instruction;
      uint32_t place = units_.place(unit, entry);
      if (!divided)
        for (uint32_t i = 0; i < units_.count(unit) && !units_.accepts(place, now); ++i)
          place = units_.next(unit, place);
      if (!units_.accepts(place, now) || !units_.reserve_result(place, now, d.latency)) continue;
      units_.occupy(place, now, d.initiation_interval);
      wheel_.schedule(now + d.latency + result_latency, {&d, oldest.warp});
      collector_.take(unit, entry);
      changed = true;
    }
  }
  return changed;
}

inline bool OperandCollectorCore::send_access(Cycle now) {
  if (collector_.ready_entries(Unit::Memory) == 0) return false;
  const uint32_t entry = collector_.oldest_ready(Unit::Memory);
  parts_.load_store.accept(collector_.ready_instruction(Unit::Memory, entry).in_flight, now);
  collector_.take(Unit::Memory, entry);
  return true;
}

inline bool OperandCollectorCore::read_operands(Counters& counters) {
  for (uint32_t i = 0; i < parts_.spec.sm.register_file.port_throughput && collector_.busy(); ++i)
    collector_.step();
  collector_.end_cycle();
  if (const uint64_t conflicts = collector_.take_bank_conflicts())
    counters[Counter::register_bank_conflicts] += conflicts;
  return collector_.take_changed();
}

inline bool OperandCollectorCore::fetch(Cycle now) {
  // Fetch and decode are two stages with one buffer between them, repeated fetch_width times a cycle; a warp
  // is fetched only when its instruction buffer is empty, and then gets all its entries. Fetch looks at one
  // warp after the other until it finds such a warp, and frees those on its way that have ended.
  bool changed = false;
  looked_at_ = 0;
  for (uint32_t i = 0; i < parts_.spec.sm.front_end.fetch_width; ++i) {
    if (fetched_ >= 0) {
      parts_.front_end.fill(static_cast<uint32_t>(fetched_), now);
      fetched_ = -1;
      changed = true;
    }
    const uint64_t wanted = parts_.warps.fetchable();
    if (wanted == 0) {
      looked_at_ = ~uint64_t{0};
      break;
    }
    const uint32_t last = parts_.front_end.last_in_turn(), w = parts_.front_end.next_in_turn(wanted);
    const auto up_to = [](uint32_t slot) { return ~uint64_t{0} >> (63 - slot); };
    looked_at_ |= w > last ? up_to(w) & ~up_to(last) : up_to(w) | ~up_to(last);
    changed = true;
    if (parts_.front_end.fetch(w, now)) fetched_ = static_cast<int32_t>(w);
  }
  return changed;
}

inline Cycle OperandCollectorCore::next_event(Cycle now) const {
  Cycle next = wheel_.next_after(now);
  for (Unit unit : start_order) {
    if (collector_.ready_entries(unit) == 0) continue;
    // A free unit was refused the result bus: retry in the next cycle.
    uint32_t place = units_.place(unit, 0);
    for (uint32_t i = 0; i < units_.count(unit); ++i, place = units_.next(unit, place))
      next = std::min(next, std::max(now + 1, units_.free_at(place)));
  }
  return next;
}

template class SmWith<OperandCollectorCore>;

}  // namespace simt
