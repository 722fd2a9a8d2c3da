#pragma once
#include <concepts>

#include "timing/base/spec.hpp"
#include "timing/core/constant_cache.hpp"
#include "timing/core/front_end.hpp"
#include "timing/core/in_flight.hpp"
#include "timing/core/load_store_unit.hpp"
#include "timing/warps/core_traits.hpp"
#include "timing/warps/warp_table.hpp"

namespace simt {

/// The parts of an SM that a core model uses.
struct CoreParts {
  const Spec& spec;
  WarpTable& warps;
  InFlightPool& pool;
  FrontEnd& front_end;
  ConstantCache& constant_cache;
  LoadStoreUnit& load_store;
  std::vector<Counters>& counters;  ///< by launch slot

  /// A fixed-latency instruction completes.
  void complete(const DecodedInstruction& instruction, uint32_t w) const {
    if (instruction.awaited) warps.release(w, instruction);
    warps.leave_pipeline(w);
  }
};

/// An instruction being issued by a scheduler.
struct Issued {
  const DecodedInstruction& instruction;
  const DynamicRecord& record;  ///< if the instruction uses it
  uint32_t warp;
  uint16_t slot;       ///< of its launch
  uint32_t in_flight;  ///< its index in the pool; none for fixed-latency instructions
};

/// A core model: how an SM processes instructions from fetch to write-back. In each cycle, SmWith calls, in
/// this order: write_back(), execute(), write_port_free() for results from memory, send_access(),
/// read_operands(), then may_issue(), refused() and dispatch() for each scheduler, and fetch(). Functions
/// that return bool and are not const return whether anything changed.
template <class Core>
concept CoreModel = requires(Core core, const Core& c, Cycle now, Unit unit, uint32_t n, uint8_t& written,
                             const DecodedInstruction& d, const Issued& issued, Counters& counters) {
  { Core::traits } -> std::convertible_to<const CoreTraits&>;
  { core.write_back(now) } -> std::same_as<bool>;
  { core.execute(now) } -> std::same_as<bool>;
  // Takes the write ports for the result of warp n's instruction, from register `written` on; true if all
  // were free, otherwise to be retried in the next cycle.
  { core.write_port_free(d, n, written) } -> std::same_as<bool>;
  // Passes one instruction to the load/store unit, which can accept it.
  { core.send_access(now) } -> std::same_as<bool>;
  { core.read_operands(counters) } -> std::same_as<bool>;
  // Whether scheduler n may issue in this cycle.
  { c.may_issue(n, now) } -> std::same_as<bool>;
  // Bit per unit that accepts no instruction from scheduler n.
  { core.refused(n, now) } -> std::same_as<uint32_t>;
  // The instruction chosen by scheduler n lacks its constant operand.
  { core.operand_missing(n, now) } -> std::same_as<void>;
  { core.dispatch(issued, now) } -> std::same_as<void>;
  // Whether the sub-cores have the unit in turn: who had it last is the last to get it again.
  { c.in_turn(unit) } -> std::same_as<bool>;
  { core.fetch(now) } -> std::same_as<bool>;
  // Slots whose warps can retire in this cycle, if they have ended.
  { c.retirable() } -> std::same_as<uint64_t>;
  // Warp n has been dropped.
  { core.forget_fetch(n) } -> std::same_as<void>;
  { c.next_event(now) } -> std::same_as<Cycle>;
};

}  // namespace simt
