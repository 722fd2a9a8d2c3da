#include "timing/core/operand_collector.hpp"

#include <algorithm>
#include <bit>

namespace simt {

OperandCollector::OperandCollector(const SmSpec& spec)
    : divided_(spec.sub_core_model),
      entries_(spec.sub_cores),
      banks_(divided_ ? spec.register_file.banks / spec.sub_cores : spec.register_file.banks),
      power_of_two_(std::has_single_bit(banks_)) {
  const uint32_t units = spec.register_file.collector_units;
  all_collectors_ = static_cast<uint32_t>((uint64_t{1} << units) - 1);
  const uint32_t each = divided_ ? units / spec.sub_cores : units;
  const auto mask = static_cast<uint32_t>((uint64_t{1} << each) - 1);
  for (uint32_t s = 0; s < spec.sub_cores; ++s) {
    usable_collectors_[s] = mask << (divided_ ? s * each : 0);
    first_bank_[s] = divided_ ? s * banks_ : 0;
  }
}

uint32_t OperandCollector::oldest_ready(Unit unit) const {
  const size_t u = index(unit);
  uint32_t best = static_cast<uint32_t>(std::countr_zero(execute_full_[u]));
  for (uint32_t rest = execute_full_[u] & (execute_full_[u] - 1); rest; rest &= rest - 1) {
    const auto e = static_cast<uint32_t>(std::countr_zero(rest));
    if (execute_[u][e].age < execute_[u][best].age) best = e;
  }
  return best;
}

inline bool OperandCollector::allocate(size_t u) {
  // Only the oldest instruction of a unit is considered: as long as its sub-core has no free collector, the
  // unit's other issue latches wait behind it.
  Latches& latches = issue_[u];
  const Collected& oldest = latches.items[latches.head];
  const uint32_t free = usable_collectors_[oldest.scheduler] & ~busy_collectors_;
  if (free == 0) return false;
  const auto c = static_cast<uint32_t>(std::countr_zero(free));
  const DecodedInstruction& d = *oldest.instruction;
  held_[c] = oldest;
  operands_left_[c] = d.read_count;
  busy_collectors_ |= 1u << c;
  ready_collectors_ |= uint32_t{d.read_count == 0} << c;
  for (uint32_t i = 0; i < d.read_count; ++i) {
    const uint32_t bank = bank_of(d.reads[i], oldest.warp, oldest.scheduler);
    push(bank_queues_[bank], static_cast<uint8_t>(c * StaticInstruction::max_registers + i));
    banks_waiting_ |= uint64_t{1} << bank;
  }
  refused_[part_of(oldest.scheduler)] &= ~(1u << u);
  latches.head = (latches.head + 1) % max_sub_cores;
  if (--latches.count == 0) issue_pending_ &= ~(1u << collection_turn[u]);
  changed_ = true;
  return true;
}

/// Passes instructions that have all their operands to the execute latches.
inline void OperandCollector::pass_on() {
  for (uint32_t ready = ready_collectors_ & ~blocked_collectors_; ready; ready &= ready - 1) {
    const auto c = static_cast<uint32_t>(std::countr_zero(ready));
    const Collected& held = held_[c];
    const size_t u = index(held.instruction->unit);
    const uint32_t full = execute_full_[u];
    const uint32_t entry = divided_ ? held.scheduler : static_cast<uint32_t>(std::countr_one(full));
    if (entry >= entries_ || full >> entry & 1) {
      blocked_collectors_ |= 1u << c;
      continue;
    }
    execute_[u][entry] = held;
    execute_full_[u] = full | 1u << entry;
    ready_units_ |= 1u << u;
    busy_collectors_ &= ~(1u << c);
    ready_collectors_ &= ~(1u << c);
    changed_ = true;
  }
}

/// Reads an operand from each bank that is not being written. What is left in a bank's queue waits.
inline void OperandCollector::read_operands() {
  uint64_t reading = banks_waiting_ & ~banks_written_;
  changed_ |= reading != 0;
  for (; reading; reading &= reading - 1) {
    const auto bank = static_cast<uint32_t>(std::countr_zero(reading));
    BankQueue& queue = bank_queues_[bank];
    const uint32_t c = pop(queue) / StaticInstruction::max_registers;
    banks_waiting_ ^= uint64_t{queue.count == 0} << bank;
    ready_collectors_ |= uint32_t{--operands_left_[c] == 0} << c;
  }
  bank_conflicts_ += static_cast<uint32_t>(std::popcount(banks_waiting_));
  banks_written_ = 0;
}

void OperandCollector::step() {
  pass_on();
  read_operands();
  // Every pass gives each unit one collector; a unit that gets none now gets none in this step.
  for (uint32_t trying = issue_pending_; trying != 0 && busy_collectors_ != all_collectors_;) {
    uint32_t served = 0;
    for (uint32_t rest = trying; rest; rest &= rest - 1) {
      const auto turn = static_cast<uint32_t>(std::countr_zero(rest));
      if (allocate(index(collection_order[turn]))) served |= 1u << turn;
    }
    trying = served & issue_pending_;
  }
}

}  // namespace simt
