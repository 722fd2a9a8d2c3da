#pragma once
#include <cstdint>
#include <vector>

#include "isa/basic_blocks.hpp"
#include "machine/code.hpp"
#include "machine/lowering.hpp"

namespace simt::functional {

/// Static indices of the lowered instructions that control can jump to: branch targets, reconvergence points
/// and function entries.
std::vector<uint32_t> leaders(const Program& program, const Lowering& lowering);

/// Derives which basic blocks of lowered instructions a warp executes from the ops it executes.
class BlockMap {
 public:
  BlockMap(const BasicBlocks& blocks, const Lowering& lowering);

  /// A warp has executed ops [begin, end) in sequence, so many times: counts the blocks that begin there.
  void count(uint32_t begin, uint32_t end, uint32_t* counts, uint32_t times = 1) const {
    for (uint32_t block = first_from_[begin]; op_of_[block] < end; ++block) counts[block] += times;
  }

 private:
  std::vector<uint32_t> first_from_;  ///< by op: the first block that begins at or after it
  std::vector<uint32_t> op_of_;       ///< by block: the op of its first instruction; a sentinel follows the
                                      ///< last block
};

}  // namespace simt::functional
