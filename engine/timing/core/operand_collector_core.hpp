#pragma once
#include <cstdint>

#include "timing/core/completion_wheel.hpp"
#include "timing/core/core_parts.hpp"
#include "timing/core/execution_units.hpp"
#include "timing/core/operand_collector.hpp"

namespace simt {

/// The core of GPGPU-Sim and Accel-Sim, the common baseline: operand collectors between issue and execution,
/// which every instruction passes through; a result bus; a fetch stage that fills empty instruction buffers
/// in turn. Dependences are those listed in the trace.
class OperandCollectorCore {
 public:
  static constexpr CoreTraits traits{.vector_registers = false,
                                     .textures_in_memory = false,
                                     .sleeps = false,
                                     .bypass_only_strong_gpu = true,
                                     .tensor_shapes = false,
                                     .control_bits = false,
                                     .generic_space = MemorySpace::Shared,
                                     // Of GPGPU-Sim, for 80 SMs.
                                     .local_memory = 0x1f880000,
                                     .atomics_hold_warp = true,
                                     .stores_hold_warp = true,
                                     .reductions_as_stores = false,
                                     .numbered_barriers = false,
                                     .membar_awaits_stores = false,
                                     .ctas_begin_in_turn = false,
                                     .carve_out_for_grid = true,
                                     .l1_overhead = 0,
                                     .shared_overhead = 0};

  explicit OperandCollectorCore(const CoreParts& parts)
      : parts_(parts), collector_(parts.spec.sm), units_(parts.spec.sm) {}

  bool write_back(Cycle now);
  bool write_port_free(const DecodedInstruction& d, uint32_t w, uint8_t& written) {
    return collector_.write_back(d, w, parts_.warps.scheduler_of(w), written);
  }
  bool execute(Cycle now);
  bool send_access(Cycle now);
  bool read_operands(Counters& counters);
  bool may_issue(uint32_t, Cycle) const { return true; }
  uint32_t refused(uint32_t scheduler, Cycle) const { return collector_.refused(scheduler); }
  void operand_missing(uint32_t, Cycle) {}
  void dispatch(const Issued& issued, Cycle) {
    collector_.issue(issued.instruction, issued.warp, parts_.warps.scheduler_of(issued.warp),
                     issued.in_flight);
  }
  bool in_turn(Unit) const { return false; }
  bool fetch(Cycle now);
  /// Slots whose warps can retire in this cycle: those that fetch has looked at.
  uint64_t retirable() const { return looked_at_; }
  void forget_fetch(uint32_t w) {
    if (fetched_ == static_cast<int32_t>(w)) fetched_ = -1;
  }
  Cycle next_event(Cycle now) const;

 private:
  CoreParts parts_;
  int32_t fetched_ = -1;  // warp fetched and not yet decoded
  uint64_t looked_at_ = 0;
  OperandCollector collector_;
  ExecutionUnits units_;
  CompletionWheel wheel_;
};

}  // namespace simt
