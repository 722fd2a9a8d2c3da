#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "isa/instruction_source.hpp"

namespace simt {

/// Executes a launch without timing, part by part, and sums up what it does: what samplers compare launches
/// by.
class LaunchProfiler {
 public:
  /// Both must outlive this.
  LaunchProfiler(InstructionSource& source, const BasicBlocks& blocks)
      : source_(source), blocks_(blocks), executions_(blocks.count()) {}

  /// Executes CTAs [first, end), as InstructionSource::execute does.
  void execute(uint64_t first, uint64_t end, uint32_t threads);

  /// By basic block: how often warps have executed it.
  const std::vector<uint64_t>& executions() const { return executions_; }
  const InstructionCounts& executed() const { return executed_; }
  /// Sectors that instructions ask the L1 for.
  const AccessCounts& accesses() const { return accesses_; }
  /// Sectors that footprints ask the L2 for.
  uint64_t l2_sectors() const { return l2_sectors_; }
  /// Different sectors of global memory that were read, or written.
  uint64_t sectors_read() const { return different(0); }
  uint64_t sectors_written() const { return different(1); }

 private:
  static constexpr uint64_t page_lines = 4096;
  /// By line: bits 0 to 3 for sectors read, 4 to 7 for sectors written.
  using Page = std::vector<uint8_t>;
  void add(const Footprint& footprint);
  uint64_t different(int half) const;

  InstructionSource& source_;
  const BasicBlocks& blocks_;
  std::vector<uint64_t> executions_;
  InstructionCounts executed_;
  AccessCounts accesses_;
  uint64_t l2_sectors_ = 0;
  std::unordered_map<uint64_t, Page> pages_;
};

}  // namespace simt
