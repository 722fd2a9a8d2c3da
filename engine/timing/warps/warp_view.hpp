#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "isa/instruction.hpp"

namespace simt {

/// What a scheduler's warps wait for. Masks have one bit per position: its warps' places, at most 64.
struct SchedulerMasks {
  uint64_t resident = 0;
  uint64_t has_instruction = 0;  ///< instruction buffer not empty
  uint64_t finished = 0;         ///< last instruction issued
  uint64_t barrier = 0, membar = 0, async_copy = 0, atomics = 0, sleeping = 0;
  uint64_t constant = 0;                          ///< next instruction waits for a constant operand
  uint64_t blocked = 0;                           ///< next instruction waits for a register, or, as its
                                                  ///< control bits demand, for time or counters
  uint64_t blocked_long = 0, blocked_short = 0;   ///< subsets of blocked: values from global or local memory,
                                                  ///< and from shared memory
  uint64_t blocked_group = 0;                     ///< the same: groups of warp-group multiplications
  uint64_t stopped = 0;                           ///< its stream has no record behind those in its buffer
  uint64_t stopped_group = 0, stopped_value = 0;  ///< subsets of stopped: what CtaStream::awaits() says
  std::array<uint64_t, static_cast<size_t>(Unit::Count)> needs{};  ///< unit of the next instruction
  uint64_t shared = 0;  ///< next instruction accesses shared memory

  uint64_t waiting() const {
    return finished | barrier | membar | async_copy | atomics | sleeping | constant;
  }
  uint64_t issuable(uint64_t waiting) const { return has_instruction & ~waiting & ~blocked; }
  uint64_t issuable() const { return issuable(waiting()); }
};

/// What a scheduler can ask about one of its resident warps.
struct WarpFacts {
  uint64_t pc = 0;  ///< of the next instruction; this and the next three are 0 if it is not yet fetched
  Unit unit{};      ///< that the next instruction goes to
  Operation operation{};
  MemorySpace space{};        ///< that it accesses
  uint16_t cta_slot = 0;      ///< place of its CTA on the SM
  uint16_t index_in_cta = 0;  ///< among the CTA's warps
  uint64_t issued = 0;        ///< instructions that it has issued
};

/// The warps of one scheduler, by position.
class WarpView {
 public:
  /// stride: between the ages of neighbouring positions.
  WarpView(const SchedulerMasks& masks, const uint64_t* ages, uint32_t stride)
      : masks_(masks), ages_(ages), stride_(stride) {}
  virtual ~WarpView() = default;

  const SchedulerMasks& masks() const { return masks_; }
  /// The order in which the warp was launched: smaller is older.
  uint64_t age(uint32_t position) const { return ages_[size_t{position} * stride_]; }
  virtual WarpFacts facts(uint32_t position) const = 0;

 private:
  const SchedulerMasks& masks_;
  const uint64_t* ages_;
  uint32_t stride_;
};

}  // namespace simt
