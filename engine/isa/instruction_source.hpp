#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "isa/instruction.hpp"

namespace simt {

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
  uint64_t count() const { return uint64_t{x} * y * z; }
};

/// One kernel launch as the front end knows it.
struct LaunchInfo {
  uint64_t id = 0;
  std::string name;
  Dim3 grid, block;
  uint32_t shared_bytes = 0;  ///< static + dynamic, per CTA
  uint32_t registers_per_thread = 0;
  uint32_t sm_version = 0;  ///< 70, 80, 90, ...
  uint64_t stream = 0;
  uint64_t shared_base = 0;  ///< start of the generic window of shared memory, 0 if unknown
  uint64_t local_base = 0;   ///< start of the generic window of local memory, 0 if unknown
};

/// The instruction streams of one CTA's warps. Used by one SM's thread only.
class CtaStream {
 public:
  virtual ~CtaStream() = default;
  virtual uint32_t warps() const = 0;
  /// Gives warp `warp` its next record in program order; false at the warp's end.
  /// `record.deltas` stays valid until `lookahead` more records of the same warp were taken.
  virtual bool next(uint32_t warp, DynamicRecord& record) = 0;
  static constexpr uint32_t lookahead = 8;
};

/// Where a launch's instructions come from: a trace, or functional execution.
class InstructionSource {
 public:
  virtual ~InstructionSource() = default;
  virtual const LaunchInfo& launch() const = 0;
  virtual const std::vector<StaticInstruction>& instructions() const = 0;
  virtual const std::vector<std::string>& opcodes() const = 0;
  /// CTAs that have instructions, in the order in which they are dispatched.
  virtual uint64_t cta_count() const = 0;
  /// Called by the CTA dispatcher, from one thread at a time, `ordinal` rising.
  virtual std::unique_ptr<CtaStream> open_cta(uint64_t ordinal) = 0;
  /// Writes the address of each active lane (in lane order) to `out`, which holds at least 64 entries
  /// (bulk_count for TMA records); returns how many were written.
  virtual uint32_t lane_addresses(const DynamicRecord& record, uint64_t* out) const = 0;
};

}  // namespace simt
