#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "timing/core/in_flight.hpp"
#include "timing/spec.hpp"

namespace simt {

/// Issue latches, operand collectors and register banks, between the schedulers and the execution units.
///
/// Each unit has one issue latch and one execute latch per sub-core (shared by all schedulers if the SM is
/// not divided). A collector unit takes an instruction from an issue latch, reads one operand per bank and
/// step, and passes the instruction to the execute latch. A register write keeps its bank busy for the next
/// step.
class OperandCollector {
 public:
  static constexpr size_t unit_count = static_cast<size_t>(Unit::Count);

  OperandCollector(const SmSpec& spec, InFlightPool& pool);

  bool can_issue(Unit unit, uint32_t scheduler) const {
    return divided_ ? !(issue_full_[index(unit)] >> scheduler & 1) : issue_full_[index(unit)] != all_entries_;
  }
  /// Whether all units' issue latches are free.
  bool all_can_issue() const { return issue_pending_ == 0; }
  void issue(Unit unit, uint32_t scheduler, uint32_t in_flight);

  /// One step: dispatch collected instructions, read operands, take new instructions.
  void step();
  /// Occupies the banks of the registers the instruction writes, from register `written` on. False if one of
  /// them is already being written. A bank accepts one register per cycle: if two of the instruction's
  /// registers share a bank, `written` advances to the second, which is left for the next cycle.
  bool write_back(const DecodedInstruction& instruction, uint32_t warp, uint32_t scheduler, uint8_t& written);

  /// Ends the cycle's register writes; call once per cycle, after its steps.
  void end_cycle() { banks_written_ = 0; }

  /// Bit per unit with a full execute latch.
  uint32_t ready_units() const { return ready_units_; }
  /// Bit per entry whose execute latch holds an instruction.
  uint32_t ready_entries(Unit unit) const { return execute_full_[index(unit)]; }
  uint32_t ready_instruction(Unit unit, uint32_t entry) const { return execute_[index(unit)][entry]; }
  /// The entry with the oldest instruction; ready_entries() must not be 0.
  uint32_t oldest_ready(Unit unit) const;
  void take(Unit unit, uint32_t entry) {
    execute_full_[index(unit)] &= ~(1u << entry);
    if (execute_full_[index(unit)] == 0) ready_units_ &= ~(1u << index(unit));
    changed_ = true;
  }

  /// True if an instruction is between the issue latch and the execute latch.
  bool busy() const { return busy_collectors_ != 0 || issue_pending_ != 0; }
  /// True if the last steps moved anything; cleared by the call.
  bool take_changed() {
    const bool changed = changed_;
    changed_ = false;
    return changed;
  }
  /// Operand reads that waited for their bank since the last call.
  uint64_t take_bank_conflicts() {
    const uint64_t conflicts = bank_conflicts_;
    bank_conflicts_ = 0;
    return conflicts;
  }

 private:
  static size_t index(Unit unit) { return static_cast<size_t>(unit); }
  struct Collector {
    uint32_t in_flight = InFlightPool::none;
    uint32_t scheduler = 0;
    uint32_t operands_left = 0;
  };
  uint32_t bank_of(uint32_t reg, uint32_t warp, uint32_t scheduler) const {
    return divided_ ? (reg + warp) % banks_per_scheduler_ + scheduler * banks_per_scheduler_
                    : (reg + warp) % banks_;
  }
  bool allocate(Unit unit);

  InFlightPool& pool_;
  bool divided_;
  uint32_t schedulers_;
  uint32_t entries_;
  uint32_t all_entries_;
  uint32_t banks_;
  uint32_t banks_per_scheduler_;
  uint32_t collectors_per_scheduler_;
  std::vector<Collector> collectors_;
  uint64_t busy_collectors_ = 0;   // bit per collector
  uint64_t ready_collectors_ = 0;  // bit per collector that has all its operands
  std::array<std::array<uint32_t, 8>, unit_count> issue_{}, execute_{};
  std::array<uint32_t, unit_count> issue_full_{}, execute_full_{};
  uint32_t issue_pending_ = 0;  // bit per unit with a full issue latch
  uint32_t ready_units_ = 0;    // bit per unit with a full execute latch
  static constexpr uint32_t max_collectors = 32;
  /// Collectors waiting for a bank, in order. Has room for every operand of every collector. An empty queue
  /// begins anew at its first place, so that few of the host's cache lines are in use.
  struct BankQueue {
    uint16_t head = 0, count = 0;
    std::array<uint8_t, max_collectors * StaticInstruction::max_registers> collectors{};
    void push(uint8_t c) { collectors[(head + count++) % collectors.size()] = c; }
    uint8_t pop() {
      const uint8_t c = collectors[head];
      head = --count == 0 ? uint16_t{0} : static_cast<uint16_t>((head + 1u) % collectors.size());
      return c;
    }
  };
  std::vector<BankQueue> bank_queues_;
  uint64_t banks_waiting_ = 0;
  uint64_t banks_written_ = 0;
  uint64_t bank_conflicts_ = 0;
  bool changed_ = false;
};

}  // namespace simt
