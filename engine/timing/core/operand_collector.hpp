#pragma once
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "timing/base/spec.hpp"
#include "timing/core/in_flight.hpp"
#include "timing/core/unit_order.hpp"

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

  /// An instruction on its way from a scheduler to an execution unit.
  struct Collected {
    const DecodedInstruction* instruction = nullptr;
    uint64_t age = 0;  ///< order of issue within the SM
    uint32_t in_flight = InFlightPool::none;
    uint16_t warp = 0;
    uint16_t scheduler = 0;
  };

  explicit OperandCollector(const SmSpec& spec);

  /// Bit per unit whose issue latches have no room for an instruction of the scheduler.
  uint32_t refused(uint32_t scheduler) const { return refused_[part_of(scheduler)]; }
  void issue(const DecodedInstruction& instruction, uint32_t warp, uint32_t scheduler, uint32_t in_flight) {
    const size_t u = index(instruction.unit);
    Latches& latches = issue_[u];
    latches.items[(latches.head + latches.count++) % max_sub_cores] = {
        &instruction, issued_++, in_flight, static_cast<uint16_t>(warp), static_cast<uint16_t>(scheduler)};
    if (divided_ || latches.count == entries_) refused_[part_of(scheduler)] |= 1u << u;
    issue_pending_ |= 1u << collection_turn[u];
  }

  /// One step: dispatch collected instructions, read operands, take new instructions.
  void step();
  /// Occupies the banks of the registers the instruction writes, from register `written` on. False if one of
  /// them is already being written. A bank accepts one register per cycle: if two of the instruction's
  /// registers share a bank, `written` advances to the second, which is left for the next cycle.
  bool write_back(const DecodedInstruction& instruction, uint32_t warp, uint32_t scheduler,
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

  /// Ends the cycle's register writes; call once per cycle, after its steps.
  void end_cycle() { banks_written_ = 0; }

  /// Bit per unit with a full execute latch.
  uint32_t ready_units() const { return ready_units_; }
  /// Bit per entry whose execute latch holds an instruction.
  uint32_t ready_entries(Unit unit) const { return execute_full_[index(unit)]; }
  const Collected& ready_instruction(Unit unit, uint32_t entry) const { return execute_[index(unit)][entry]; }
  /// The entry with the oldest instruction; ready_entries() must not be 0.
  uint32_t oldest_ready(Unit unit) const;
  void take(Unit unit, uint32_t entry) {
    execute_full_[index(unit)] &= ~(1u << entry);
    if (execute_full_[index(unit)] == 0) ready_units_ &= ~(1u << index(unit));
    blocked_collectors_ &= divided_ ? ~usable_collectors_[entry] : 0;
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
  static constexpr uint32_t max_sub_cores = 8, max_collectors = 32, max_banks = 64;
  /// Order in which units compete for collectors.
  static constexpr auto collection_order =
      then_special(std::array{Unit::Fp32, Unit::Sfu, Unit::Memory, Unit::Fp64, Unit::Int, Unit::Branch,
                              Unit::Texture, Unit::Tensor, Unit::Uniform});
  static constexpr std::array<uint8_t, unit_count> collection_turn = [] {
    std::array<uint8_t, unit_count> turn{};
    for (uint8_t i = 0; i < collection_order.size(); ++i) turn[static_cast<size_t>(collection_order[i])] = i;
    return turn;
  }();
  static size_t index(Unit unit) { return static_cast<size_t>(unit); }
  /// A unit's issue latches, oldest instruction first.
  struct Latches {
    uint32_t head = 0, count = 0;
    std::array<Collected, max_sub_cores> items{};
  };
  uint32_t bank_of(uint32_t reg, uint32_t warp, uint32_t scheduler) const {
    const uint32_t n = reg + warp;
    return (power_of_two_ ? n & (banks_ - 1) : n % banks_) + first_bank_[scheduler];
  }
  /// The index of what schedulers share, unless the SM is divided.
  uint32_t part_of(uint32_t scheduler) const { return divided_ ? scheduler : 0; }
  bool allocate(size_t unit);
  void pass_on();
  void read_operands();

  bool divided_;
  uint32_t entries_;  // latches of each unit
  uint32_t banks_;    // from which a scheduler's instructions read
  bool power_of_two_;
  std::array<uint32_t, max_sub_cores> usable_collectors_{};  // by scheduler: bit per collector
  std::array<uint32_t, max_sub_cores> refused_{};
  std::array<uint32_t, max_sub_cores> first_bank_{};  // by scheduler
  uint32_t busy_collectors_ = 0;                      // bit per collector
  uint32_t all_collectors_ = 0;
  uint32_t ready_collectors_ = 0;  // bit per collector that has all its operands
  // Bit per ready collector that found its execute latch full, which has not been emptied since.
  uint32_t blocked_collectors_ = 0;
  uint32_t issue_pending_ = 0;  // bit per unit with a full issue latch, in the order of their turns
  uint32_t ready_units_ = 0;    // bit per unit with a full execute latch
  uint64_t issued_ = 0;         // instructions
  uint64_t banks_waiting_ = 0;  // bit per bank that operands wait for
  uint64_t banks_written_ = 0;
  uint64_t bank_conflicts_ = 0;
  bool changed_ = false;
  std::array<Collected, max_collectors> held_{};  // by collector
  std::array<uint8_t, max_collectors> operands_left_{};
  std::array<Latches, unit_count> issue_{};
  std::array<std::array<Collected, max_sub_cores>, unit_count> execute_{};
  std::array<uint32_t, unit_count> execute_full_{};
  /// Operands waiting for a bank, in order: a list through next_operand_, so that few of the host's cache
  /// lines are in use. An operand is its collector times max_registers plus its place in the instruction.
  struct BankQueue {
    uint8_t first = 0, last = 0;
    uint16_t count = 0;
  };
  void push(BankQueue& queue, uint8_t operand) {
    (queue.count++ == 0 ? queue.first : next_operand_[queue.last]) = operand;
    queue.last = operand;
  }
  uint8_t pop(BankQueue& queue) {
    const uint8_t operand = std::exchange(queue.first, next_operand_[queue.first]);
    --queue.count;
    return operand;
  }
  std::array<uint8_t, max_collectors * StaticInstruction::max_registers> next_operand_{};
  std::array<BankQueue, max_banks> bank_queues_{};
};

}  // namespace simt
