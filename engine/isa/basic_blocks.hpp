#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "isa/footprint.hpp"
#include "isa/instruction.hpp"

namespace simt {

/// The basic blocks of a kernel's static instructions: straight pieces of code that end at branches, exits
/// and CTA barriers, or before an instruction to which control jumps (Photon, MICRO'23, section 3,
/// observation 3).
class BasicBlocks {
 public:
  struct Block {
    uint32_t first = 0, length = 0;  ///< static instructions [first, first + length)
  };

  /// `leaders`: static indices of jump targets; indices beyond the end are ignored.
  BasicBlocks(const std::vector<StaticInstruction>& instructions, const std::vector<uint32_t>& leaders);

  uint32_t count() const { return static_cast<uint32_t>(blocks_.size()); }
  const Block& operator[](uint32_t block) const { return blocks_[block]; }
  /// The block that a static instruction lies in.
  uint32_t of(uint32_t static_index) const { return block_of_[static_index]; }
  /// Whether a warp's record `index` after its record `previous` begins an execution of a block. A jump into
  /// a block's middle, to no known leader, begins one of that block.
  bool begins(uint32_t previous, uint32_t index) const { return index != previous + 1 || leads_[index] != 0; }
  /// The value of `previous` at a warp's first record.
  static constexpr uint32_t none = UINT32_MAX - 1;

 private:
  std::vector<Block> blocks_;
  std::vector<uint32_t> block_of_;
  std::vector<uint8_t> leads_;
};

/// Instructions as the timing model counts them: by warp, and by active lane.
struct InstructionCounts {
  uint64_t warp_instructions = 0, thread_instructions = 0;

  InstructionCounts& operator+=(const InstructionCounts& other) {
    warp_instructions += other.warp_instructions;
    thread_instructions += other.thread_instructions;
    return *this;
  }
};

/// How often warps execute each basic block.
struct BlockCounts {
  uint32_t warps_per_cta = 0, blocks = 0;
  std::vector<uint32_t> counts;  ///< by CTA, warp and block
  bool complete = true;          ///< false: some warps were followed only in part
  /// For programs executed without timing: the input that the timing model would have had.
  std::optional<InstructionCounts> executed;
  /// Of CTAs executed or replayed without timing; the same for any number of lanes per warp. 0: not counted.
  uint64_t thread_instructions = 0;
  /// Likewise, by warp; of pairs of the input's warps, estimated from the blocks that they execute.
  uint64_t warp_instructions = 0;
  AccessCounts accesses;  ///< with footprints
};

}  // namespace simt
