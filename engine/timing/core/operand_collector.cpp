#include "timing/core/operand_collector.hpp"

#include <algorithm>
#include <bit>

namespace simt {
namespace {

// Order in which units compete for collectors.
constexpr std::array<Unit, 9> collection_order = {Unit::Fp32,    Unit::Sfu,    Unit::Memory,
                                                  Unit::Fp64,    Unit::Int,    Unit::Branch,
                                                  Unit::Texture, Unit::Tensor, Unit::Uniform};

constexpr std::array<uint8_t, OperandCollector::unit_count> collection_turn = [] {
  std::array<uint8_t, OperandCollector::unit_count> turn{};
  for (uint8_t i = 0; i < collection_order.size(); ++i) turn[static_cast<size_t>(collection_order[i])] = i;
  return turn;
}();

}  // namespace

OperandCollector::OperandCollector(const SmSpec& spec, InFlightPool& pool)
    : pool_(pool),
      divided_(spec.sub_core_model),
      schedulers_(spec.sub_cores),
      entries_(spec.sub_cores),
      all_entries_((1u << spec.sub_cores) - 1),
      banks_(spec.register_file.banks),
      banks_per_scheduler_(banks_ / spec.sub_cores),
      collectors_per_scheduler_(spec.register_file.collector_units / spec.sub_cores),
      collectors_(spec.register_file.collector_units),
      bank_queues_(banks_) {}

void OperandCollector::issue(Unit unit, uint32_t scheduler, uint32_t in_flight) {
  const size_t u = index(unit);
  const uint32_t entry = divided_ ? scheduler : static_cast<uint32_t>(std::countr_one(issue_full_[u]));
  issue_[u][entry] = in_flight;
  issue_full_[u] |= 1u << entry;
  issue_pending_ |= 1u << collection_turn[u];
}

uint32_t OperandCollector::oldest_ready(Unit unit) const {
  const size_t u = index(unit);
  uint32_t best = static_cast<uint32_t>(std::countr_zero(execute_full_[u]));
  for (uint32_t rest = execute_full_[u] & (execute_full_[u] - 1); rest; rest &= rest - 1) {
    const auto e = static_cast<uint32_t>(std::countr_zero(rest));
    if (pool_[execute_[u][e]].age < pool_[execute_[u][best]].age) best = e;
  }
  return best;
}

bool OperandCollector::allocate(Unit unit) {
  // Only the oldest instruction of a unit is considered: as long as its sub-core has no free collector, the
  // unit's other issue latches wait behind it.
  const size_t u = index(unit);
  uint32_t entry = static_cast<uint32_t>(std::countr_zero(issue_full_[u]));
  for (uint32_t rest = issue_full_[u] & (issue_full_[u] - 1); rest; rest &= rest - 1) {
    const auto e = static_cast<uint32_t>(std::countr_zero(rest));
    if (pool_[issue_[u][e]].age < pool_[issue_[u][entry]].age) entry = e;
  }
  const uint32_t in_flight = issue_[u][entry];
  const InFlight& instruction = pool_[in_flight];
  const uint32_t scheduler = instruction.warp % schedulers_;
  const uint64_t first = divided_ ? scheduler * collectors_per_scheduler_ : 0;
  const uint64_t count = divided_ ? collectors_per_scheduler_ : collectors_.size();
  const uint64_t free = ~busy_collectors_ & ((uint64_t{1} << count) - 1) << first;
  if (free == 0) return false;
  const auto c = static_cast<uint32_t>(std::countr_zero(free));
  const DecodedInstruction& d = *instruction.instruction;
  collectors_[c] = {in_flight, scheduler, d.read_count};
  busy_collectors_ |= uint64_t{1} << c;
  if (d.read_count == 0) ready_collectors_ |= uint64_t{1} << c;
  for (uint32_t i = 0; i < d.read_count; ++i) {
    const uint32_t bank = bank_of(d.reads[i], instruction.warp, scheduler);
    bank_queues_[bank].push(static_cast<uint8_t>(c));
    banks_waiting_ |= uint64_t{1} << bank;
  }
  issue_full_[u] &= ~(1u << entry);
  if (issue_full_[u] == 0) issue_pending_ &= ~(1u << collection_turn[u]);
  changed_ = true;
  return true;
}

void OperandCollector::step() {
  for (uint64_t ready = ready_collectors_; ready; ready &= ready - 1) {
    const auto c = static_cast<uint32_t>(std::countr_zero(ready));
    Collector& collector = collectors_[c];
    const size_t u = index(pool_[collector.in_flight].instruction->unit);
    uint32_t entry = collector.scheduler;
    if (divided_) {
      if (execute_full_[u] >> entry & 1) continue;
    } else {
      if (execute_full_[u] == all_entries_) continue;
      entry = static_cast<uint32_t>(std::countr_one(execute_full_[u]));
    }
    execute_[u][entry] = collector.in_flight;
    execute_full_[u] |= 1u << entry;
    ready_units_ |= 1u << u;
    busy_collectors_ &= ~(uint64_t{1} << c);
    ready_collectors_ &= ~(uint64_t{1} << c);
    changed_ = true;
  }
  for (uint64_t waiting = banks_waiting_; waiting; waiting &= waiting - 1) {
    const auto bank = static_cast<uint32_t>(std::countr_zero(waiting));
    BankQueue& queue = bank_queues_[bank];
    if (banks_written_ >> bank & 1) {
      ++bank_conflicts_;
      continue;
    }
    const uint8_t c = queue.pop();
    if (queue.count == 0)
      banks_waiting_ &= ~(uint64_t{1} << bank);
    else
      ++bank_conflicts_;
    if (--collectors_[c].operands_left == 0) ready_collectors_ |= uint64_t{1} << c;
    changed_ = true;
  }
  banks_written_ = 0;
  // Every pass gives each unit one collector; a unit that gets none now gets none in this step.
  for (uint32_t trying = issue_pending_; trying != 0;) {
    uint32_t served = 0;
    for (uint32_t rest = trying; rest; rest &= rest - 1) {
      const auto turn = static_cast<uint32_t>(std::countr_zero(rest));
      if (allocate(collection_order[turn])) served |= 1u << turn;
    }
    trying = served & issue_pending_;
  }
}

bool OperandCollector::write_back(const DecodedInstruction& instruction, uint32_t warp, uint32_t scheduler,
                                  uint8_t& written) {
  uint64_t taken = 0;
  for (uint8_t i = written; i < instruction.write_count; ++i) {
    const uint64_t bank = uint64_t{1} << bank_of(instruction.writes_at[i], warp, scheduler);
    if (taken & bank) {
      written = i;
      return false;
    }
    if (banks_written_ & bank) return false;
    banks_written_ |= bank;
    taken |= bank;
  }
  return true;
}

}  // namespace simt
