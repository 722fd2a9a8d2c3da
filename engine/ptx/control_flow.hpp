#pragma once
#include <cstdint>
#include <vector>

#include "ptx/module.hpp"

namespace simt::ptx {

/// The basic blocks of a function, in program order.
struct ControlFlow {
  static constexpr uint32_t none = UINT32_MAX;

  struct Block {
    uint32_t first = 0, last = 0;      ///< instructions [first, last)
    std::vector<uint32_t> successors;  ///< blocks; a guarded ret or exit falls through
    uint32_t post_dominator = none;    ///< immediate; none if paths meet only at the function's end
  };
  std::vector<Block> blocks;
  std::vector<uint32_t> block_of;  ///< by instruction

  /// The instruction at which lanes that diverge at instruction `branch` reconverge; none for the function's
  /// end.
  uint32_t reconvergence(uint32_t branch) const {
    const uint32_t block = blocks[block_of[branch]].post_dominator;
    return block == none ? none : blocks[block].first;
  }
};

/// Blocks end at bra, brx.idx, ret, exit and trap; a call does not end one. Unreachable code is kept.
ControlFlow control_flow(const Function& function, const Module& module);

}  // namespace simt::ptx
