#pragma once
#include <cstdint>
#include <vector>

#include "timing/base/ring_queue.hpp"
#include "timing/core/completion_wheel.hpp"
#include "timing/core/core_parts.hpp"
#include "timing/core/execution_units.hpp"
#include "timing/warps/read_ports.hpp"

namespace simt {

/// The core of recent GPUs, after Huerta et al., MICRO 2025: sub-cores without operand collectors, whose
/// instructions read their operands at a fixed distance from issue; a queue of memory instructions in each;
/// constant caches; a front end that refills one instruction buffer per cycle and sub-core.
class ReadPortsCore {
 public:
  static constexpr CoreTraits traits{.vector_registers = true,
                                     .textures_in_memory = true,
                                     .sleeps = true,
                                     .bypass_only_strong_gpu = false,
                                     .tensor_shapes = true,
                                     .control_bits = true,
                                     .generic_space = MemorySpace::Global,
                                     // Beyond the global addresses that GPUs use.
                                     .local_memory = 0x8000000000 << 8,
                                     .atomics_hold_warp = false,
                                     .stores_hold_warp = false,
                                     .reductions_as_stores = true,
                                     .numbered_barriers = true,
                                     .membar_awaits_stores = true,
                                     // A V100 takes 1.37 M cycles for binomialOptions_k1, whose first
                                     // warps have most to do: 1.70 M if all are in one sub-core, 1.31 M
                                     // in two, 1.11 M in four. An RTX 3060 Ti issues 3.1 instructions
                                     // a cycle with 6 of each CTA's 8 warps at work (conv2d_tiled):
                                     // 3 at most if the idle ones were in two sub-cores only.
                                     .ctas_begin_in_turn = true,
                                     .carve_out_for_grid = false,
                                     // The specified latency covers the entire distance from a load's issue
                                     // to the issue of an instruction that needs its result.
                                     .l1_overhead = 5,
                                     .shared_overhead = 6};

  explicit ReadPortsCore(const CoreParts& parts);

  bool write_back(Cycle now);
  bool write_port_free(const DecodedInstruction&, uint32_t, uint8_t&) { return true; }
  bool execute(Cycle now);
  bool send_access(Cycle now);
  bool read_operands(Counters&) { return false; }
  bool may_issue(uint32_t scheduler, Cycle now) const {
    return sub_cores_[scheduler].issue_blocked_until <= now;
  }
  uint32_t refused(uint32_t scheduler, Cycle now) {
    const bool full = sub_cores_[scheduler].accesses.size() >= queue_places_;
    return units_.refused(scheduler, now) | (full ? 1u << static_cast<uint32_t>(Unit::Memory) : 0u);
  }
  void operand_missing(uint32_t scheduler, Cycle now);
  void dispatch(const Issued& issued, Cycle now);
  bool in_turn(Unit unit) const { return units_in_turn_ >> static_cast<uint32_t>(unit) & 1; }
  bool fetch(Cycle now);
  uint64_t retirable() const { return ~uint64_t{0}; }
  void forget_fetch(uint32_t) {}
  Cycle next_event(Cycle now) const;

 private:
  struct QueuedAccess {
    uint32_t in_flight;  ///< none: sent, but the entry is not free yet
    Cycle leaves;        ///< earliest cycle; once sent: when the entry becomes free
  };
  /// A multiplication by a warp group that a tensor core has been given. ends: when it takes the next.
  struct Product {
    const DecodedInstruction* instruction;
    uint16_t warp;
    Cycle ends, done;
  };
  struct SubCore {
    ReadPorts ports;
    uint64_t warps = 0;  ///< bit per warp slot
    Cycle issue_blocked_until = 0;
    RingQueue<QueuedAccess> accesses{};
    Cycle last_access_left = 0;
    RingQueue<Product> products{};
  };
  static constexpr Cycle never = ~Cycle{0};
  void start(const Issued& issued, uint32_t scheduler, Cycle now);
  void start_product(const Issued& issued, SubCore& sub_core, uint32_t place, Cycle now);
  void find_constants(const Issued& issued);

  CoreParts parts_;
  ExecutionUnits units_;
  CompletionWheel wheel_;
  std::vector<SubCore> sub_cores_;
  size_t queue_places_;
  uint32_t units_in_turn_ = 0;  // bit per unit of which there are fewer than sub-cores
  uint32_t products_ = 0;       // of all sub-cores
  uint32_t next_sub_core_ = 0;  // whose memory instruction goes first
  // Before these cycles, no queue of memory instructions sends one, or frees the entry of one.
  Cycle sends_at_ = never, frees_place_at_ = never;
  std::vector<uint64_t> constants_;  // distinct addresses of a load from constant memory
};

}  // namespace simt
