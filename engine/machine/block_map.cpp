#include "machine/block_map.hpp"

#include <algorithm>

#include "machine/calls.hpp"

namespace simt::functional {

std::vector<uint32_t> leaders(const Program& program, const Lowering& lowering) {
  std::vector<uint32_t> result;
  const auto add = [&](uint32_t op) {
    // Ops that cost nothing have no lowered instruction.
    while (op < lowering.of_op.size() && lowering.of_op[op].count == 0) ++op;
    if (op < lowering.of_op.size()) result.push_back(lowering.of_op[op].first);
  };
  for (const FunctionCode& f : program.functions) add(f.first);
  for (uint32_t at = 0; at < program.code.size(); ++at) {
    const Op& op = program.code[at];
    // Machine code jumps to addresses in registers and tables, which follow its branches.
    if (program.is_machine_code() && op.control != Control::None) add(at + 1);
    if (op.control == Control::Branch) add(op.target);
    if (op.control == Control::BranchIndirect)
      for (const uint32_t target : op.details<BranchTable>().targets) add(target);
    if (op.control == Control::Branch || op.control == Control::BranchIndirect) add(op.reconvergence);
  }
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

BlockMap::BlockMap(const BasicBlocks& blocks, const Lowering& lowering) {
  // The ranges of ops are contiguous, as are the blocks.
  uint32_t block = 0;
  for (uint32_t op = 0; op < lowering.of_op.size(); ++op) {
    const Lowering::Range& range = lowering.of_op[op];
    first_from_.push_back(block);
    for (; block < blocks.count() && blocks[block].first < range.first + range.count; ++block)
      op_of_.push_back(op);
  }
  op_of_.push_back(UINT32_MAX);
}

}  // namespace simt::functional
