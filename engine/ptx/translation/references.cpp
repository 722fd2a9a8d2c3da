#include "ptx/translation/references.hpp"

namespace simt::functional {
namespace {

using ptx::OperandKind;

/// Records what the operands and instructions of function `f` refer to; functions whose address is taken are
/// added to `by_address`.
void read_function(const ptx::Module& module, uint32_t f, References& found, std::set<uint32_t>& by_address) {
  const ptx::Function& function = module.functions[f];
  for (const ptx::Operand& o : function.operands) {
    if (o.kind == OperandKind::Symbol && !o.local) {
      const uint32_t callee = function_index(module, o.text);
      if (callee != UINT32_MAX) found.calls[f].insert(callee);
    } else if (o.kind == OperandKind::Variable && !o.local &&
               module.variables[o.index].space == ptx::Space::Shared) {
      found.shared[f].insert(o.index);
    }
  }
  for (const ptx::Instruction& i : function.instructions) {
    const instructions::Facts& facts = module.mnemonics[i.mnemonic].facts();
    if (facts.memory == instructions::Memory::StackAllocation) found.takes_stack[f] = true;
    for (uint32_t k = 0; k < i.operand_count; ++k) {
      const ptx::Operand& o = function.operands[i.first_operand + k];
      if (facts.control == instructions::Control::Call)
        found.calls_indirectly[f] = found.calls_indirectly[f] || o.kind == OperandKind::Register;
      else if (o.kind == OperandKind::Symbol && function_index(module, o.text) != UINT32_MAX)
        by_address.insert(function_index(module, o.text));
    }
  }
}

}  // namespace

References find_references(const ptx::Module& module) {
  const size_t count = module.functions.size();
  References found;
  found.calls.resize(count);
  found.reachable.resize(count);
  found.shared.resize(count);
  found.calls_indirectly.assign(count, false);
  found.takes_stack.assign(count, false);
  std::set<uint32_t> by_address;
  for (uint32_t f = 0; f < count; ++f) read_function(module, f, found, by_address);
  // A function whose address is taken can be reached from every indirect call.
  for (const ptx::Variable& v : module.variables)
    for (const ptx::Relocation& r : v.relocations)
      if (const uint32_t f = function_index(module, r.symbol); f != UINT32_MAX) by_address.insert(f);
  for (uint32_t f = 0; f < count; ++f) {
    std::vector<uint32_t> open{f};
    while (!open.empty()) {
      const uint32_t g = open.back();
      open.pop_back();
      if (!found.reachable[f].insert(g).second) continue;
      for (const uint32_t h : found.calls[g]) open.push_back(h);
      if (found.calls_indirectly[g])
        for (const uint32_t h : by_address) open.push_back(h);
    }
  }
  return found;
}

uint32_t function_index(const ptx::Module& module, std::string_view name) {
  for (const auto& [alias, aliased] : module.aliases)
    if (alias == name) name = aliased;
  for (uint32_t i = 0; i < module.functions.size(); ++i)
    if (module.functions[i].defined && module.functions[i].name == name) return i;
  return UINT32_MAX;
}

}  // namespace simt::functional
