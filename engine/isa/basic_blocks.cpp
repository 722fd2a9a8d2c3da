#include "isa/basic_blocks.hpp"

namespace simt {
namespace {

bool ends_block(Operation operation) {
  return operation == Operation::Branch || operation == Operation::Exit || operation == Operation::Barrier;
}

}  // namespace

BasicBlocks::BasicBlocks(const std::vector<StaticInstruction>& instructions,
                         const std::vector<uint32_t>& leaders)
    : block_of_(instructions.size()), leads_(instructions.size()) {
  for (const uint32_t leader : leaders)
    if (leader < leads_.size()) leads_[leader] = 1;
  const auto size = static_cast<uint32_t>(instructions.size());
  for (uint32_t i = 0; i < size; ++i) {
    leads_[i] |= i == 0 || ends_block(instructions[i - 1].operation);
    if (leads_[i]) blocks_.push_back({i, 0});
    ++blocks_.back().length;
    block_of_[i] = count() - 1;
  }
}

}  // namespace simt
