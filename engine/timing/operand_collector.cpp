#include "timing/operand_collector.hpp"

#include <algorithm>
#include <bit>

namespace simt {
namespace {

// Order in which units compete for collectors.
constexpr std::array<Unit, 9> collection_order = {Unit::Fp32,    Unit::Sfu,    Unit::Memory,
                                                  Unit::Fp64,    Unit::Int,    Unit::Branch,
                                                  Unit::Texture, Unit::Tensor, Unit::Uniform};

}  // namespace

OperandCollector::OperandCollector(const SmSpec& spec, InFlightPool& pool)
    : pool_(pool),
      divided_(spec.sub_core_model),
      schedulers_(spec.sub_cores),
      entries_(spec.sub_cores),
      all_entries_((1u << spec.sub_cores) - 1),
      banks_(std::clamp(spec.register_file.banks, 1u, 64u)),
      banks_per_scheduler_(std::max(1u, banks_ / spec.sub_cores)),
      collectors_per_scheduler_(std::max(1u, spec.register_file.collector_units / spec.sub_cores)),
      collectors_(std::min<size_t>(64, size_t{collectors_per_scheduler_} * spec.sub_cores)),
      bank_queues_(banks_) {}

void OperandCollector::issue(Unit unit, uint32_t scheduler, uint32_t in_flight) {
  const size_t u = index(unit);
  const uint32_t entry = divided_ ? scheduler : static_cast<uint32_t>(std::countr_one(issue_full_[u]));
  issue_[u][entry] = in_flight;
  issue_full_[u] |= 1u << entry;
  issue_pending_ |= 1u << u;
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
  // Only the oldest instruction of a unit is considered: while its sub-core has no free collector, the unit's
  // other issue latches wait behind it (performance model section 1).
  const size_t u = index(unit);
  uint32_t entry = static_cast<uint32_t>(std::countr_zero(issue_full_[u]));
  for (uint32_t rest = issue_full_[u] & (issue_full_[u] - 1); rest; rest &= rest - 1) {
    const auto e = static_cast<uint32_t>(std::countr_zero(rest));
    if (pool_[issue_[u][e]].age < pool_[issue_[u][entry]].age) entry = e;
  }
  const uint32_t in_flight = issue_[u][entry];
  const InFlight& instruction = pool_[in_flight];
  const uint32_t scheduler = instruction.warp % schedulers_;
  const uint32_t first = divided_ ? scheduler * collectors_per_scheduler_ : 0;
  const uint32_t last =
      divided_ ? first + collectors_per_scheduler_ : static_cast<uint32_t>(collectors_.size());
  for (uint32_t c = first; c < last; ++c) {
    if (busy_collectors_ >> c & 1) continue;
    const DecodedInstruction& d = *instruction.instruction;
    collectors_[c] = {in_flight, scheduler, d.read_count};
    busy_collectors_ |= uint64_t{1} << c;
    if (d.read_count == 0) ready_collectors_ |= uint64_t{1} << c;
    for (uint32_t i = 0; i < d.read_count; ++i) {
      const uint32_t bank = bank_of(d.reads[i], instruction.warp, scheduler);
      bank_queues_[bank].push_back(static_cast<uint8_t>(c));
      banks_waiting_ |= uint64_t{1} << bank;
    }
    issue_full_[u] &= ~(1u << entry);
    if (issue_full_[u] == 0) issue_pending_ &= ~(1u << u);
    changed_ = true;
    return true;
  }
  return false;
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
    busy_collectors_ &= ~(uint64_t{1} << c);
    ready_collectors_ &= ~(uint64_t{1} << c);
    changed_ = true;
  }
  for (uint64_t waiting = banks_waiting_; waiting; waiting &= waiting - 1) {
    const auto bank = static_cast<uint32_t>(std::countr_zero(waiting));
    std::vector<uint8_t>& queue = bank_queues_[bank];
    if (banks_written_ >> bank & 1) {
      ++bank_conflicts_;
      continue;
    }
    const uint8_t c = queue.front();
    queue.erase(queue.begin());
    if (queue.empty())
      banks_waiting_ &= ~(uint64_t{1} << bank);
    else
      ++bank_conflicts_;
    if (--collectors_[c].operands_left == 0) ready_collectors_ |= uint64_t{1} << c;
    changed_ = true;
  }
  banks_written_ = 0;
  for (bool progress = issue_pending_ != 0; progress;) {
    progress = false;
    for (Unit unit : collection_order)
      if (issue_full_[index(unit)] != 0) progress |= allocate(unit);
  }
}

bool OperandCollector::write_back(const DecodedInstruction& instruction, uint32_t warp, uint32_t scheduler) {
  for (uint32_t i = 0; i < instruction.write_count; ++i) {
    const uint64_t bank = uint64_t{1} << bank_of(instruction.writes_at[i], warp, scheduler);
    if (banks_written_ & bank) return false;
    banks_written_ |= bank;
  }
  return true;
}

}  // namespace simt
