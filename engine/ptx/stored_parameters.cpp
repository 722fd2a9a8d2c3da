#include "ptx/stored_parameters.hpp"

#include <algorithm>

#include "ptx/register_allocation.hpp"

namespace simt::ptx {

namespace {

constexpr uint32_t word_bytes = 8;

using instructions::Memory;
using instructions::Space;

bool stores(const Mnemonic& mnemonic) {
  const Memory memory = mnemonic.facts().memory;
  if (mnemonic.facts().space != Space::Named || mnemonic.has("shared") || mnemonic.has("local") ||
      mnemonic.has("param"))
    return false;
  return memory == Memory::Store || memory == Memory::Atomic ||
         (memory == Memory::Copy && mnemonic.has("global"));
}

/// Whether its result comes from memory, not from the registers it reads.
bool loads(const Mnemonic& mnemonic) {
  return mnemonic.facts().memory == Memory::Load || mnemonic.facts().memory == Memory::Atomic;
}

const Operand* first_address(const Function& function, const Instruction& instruction) {
  for (uint32_t k = 0; k < instruction.operand_count; ++k) {
    const Operand& operand = function.operands[instruction.first_operand + k];
    if (operand.kind == OperandKind::Address) return &function.operands[operand.first_part];
  }
  return nullptr;
}

}  // namespace

std::vector<bool> stored_parameters(const Function& kernel, const Module& module) {
  const auto is_predicate = [&](uint32_t r) { return kernel.registers[r].type == Type::Pred; };
  // Trace back from the addresses of stores to what they are computed from.
  std::vector<std::vector<uint32_t>> sources(kernel.registers.size());
  std::vector<bool> wanted(kernel.registers.size());
  std::vector<uint32_t> left;
  const auto want = [&](uint32_t r) {
    if (wanted[r] || is_predicate(r)) return;
    wanted[r] = true;
    left.push_back(r);
  };
  for (uint32_t i = 0; i < kernel.instructions.size(); ++i) {
    const Mnemonic& mnemonic = module.mnemonics[kernel.instructions[i].mnemonic];
    if (stores(mnemonic)) {
      const Operand* base = first_address(kernel, kernel.instructions[i]);
      if (base && base->kind == OperandKind::Register) want(base->index);
    }
    if (loads(mnemonic)) continue;
    const Access access = ptx::access(kernel, module, i);
    for (const uint32_t w : access.writes)
      sources[w].insert(sources[w].end(), access.reads.begin(), access.reads.end());
  }
  while (!left.empty()) {
    const uint32_t r = left.back();
    left.pop_back();
    for (const uint32_t source : sources[r]) want(source);
  }
  const std::vector<uint64_t> offsets = parameter_offsets(kernel.parameters);
  std::vector<bool> stored;
  for (uint32_t i = 0; i < kernel.instructions.size(); ++i) {
    const Mnemonic& mnemonic = module.mnemonics[kernel.instructions[i].mnemonic];
    if (!mnemonic.loads_parameter()) continue;
    const Operand* base = first_address(kernel, kernel.instructions[i]);
    if (!base || base->kind != OperandKind::Variable || !base->local || base->index >= offsets.size())
      continue;
    const Operand& address = kernel.operands[kernel.instructions[i].first_operand + 1];
    uint64_t word = (offsets[base->index] + static_cast<uint64_t>(base->value + address.value)) / word_bytes;
    const Operand& loaded = kernel.operands[kernel.instructions[i].first_operand];
    const bool vector = loaded.kind == OperandKind::Vector;
    for (uint32_t k = 0; k < (vector ? loaded.part_count : 1); ++k, ++word) {
      const Operand& part = vector ? kernel.operands[loaded.first_part + k] : loaded;
      if (part.kind != OperandKind::Register || !wanted[part.index]) continue;
      stored.resize(std::max<size_t>(stored.size(), word + 1));
      stored[word] = true;
    }
  }
  return stored;
}

}  // namespace simt::ptx
