#pragma once
#include <cstdint>
#include <vector>

#include "functional/code.hpp"
#include "functional/lowering.hpp"
#include "isa/basic_blocks.hpp"

namespace simt::functional {

/// Static indices of a program's lowered instructions to which control jumps: targets of branches, where
/// diverged lanes meet, and where functions begin.
std::vector<uint32_t> leaders(const Program& program, const Lowering& lowering);

/// Tells, from the ops that a warp executes, which basic blocks of the lowered instructions it executes.
class BlockMap {
 public:
  BlockMap(const BasicBlocks& blocks, const Lowering& lowering);

  /// A warp has executed ops [begin, end) one after the other: counts the blocks that begin there.
  void count(uint32_t begin, uint32_t end, uint32_t* counts) const {
    for (uint32_t block = first_from_[begin]; op_of_[block] < end; ++block) ++counts[block];
  }

 private:
  std::vector<uint32_t> first_from_;  ///< by op: the first block that begins in it or later
  std::vector<uint32_t> op_of_;       ///< by block: the op that its first instruction belongs to; then none
};

}  // namespace simt::functional
