// Feeds arbitrary text to the PTX parser, and computes control flow and register allocation for what it
// accepts.

#include <cstdlib>
#include <string>

#include "ptx/control_flow.hpp"
#include "ptx/parser.hpp"
#include "ptx/register_allocation.hpp"

namespace {

using namespace simt::ptx;

void require(bool condition) {
  if (!condition) std::abort();
}

void check_operand(const Module& module, const Function& function, const Operand& operand) {
  switch (operand.kind) {
    case OperandKind::Register:
      require(operand.index < function.registers.size());
      break;
    case OperandKind::Variable:
      require(operand.index < (operand.local ? function.variables : module.variables).size());
      break;
    case OperandKind::Label:
      require(operand.index < function.labels.size());
      require(function.labels[operand.index].target <= function.instructions.size());
      break;
    default:
      require(operand.first_part + uint64_t{operand.part_count} <= function.operands.size());
  }
}

void check_function(const Module& module, const Function& function) {
  for (const Operand& operand : function.operands) check_operand(module, function, operand);
  const ControlFlow flow = control_flow(function, module);
  for (const auto& block : flow.blocks) {
    require(block.first < block.last && block.last <= function.instructions.size());
    require(block.post_dominator == ControlFlow::none || block.post_dominator < flow.blocks.size());
  }
  const RegisterAllocation allocation = allocate_registers(function, module, flow);
  require(allocation.max_live <= allocation.registers);
  for (uint32_t i = 0; i < function.instructions.size(); ++i) {
    const Access both = access(function, module, i);
    for (const auto* registers : {&both.reads, &both.writes})
      for (const uint32_t r : *registers) {
        const bool predicate = function.registers[r].type == Type::Pred;
        require(allocation.place[r] < (predicate ? allocation.predicates : allocation.registers));
      }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const Module module = parse(std::string(reinterpret_cast<const char*>(data), size), "fuzz");
    for (const Variable& variable : module.variables)
      require(variable.initial.empty() || variable.initial.size() == variable.size);
    for (const Function& function : module.functions) check_function(module, function);
  } catch (const ParseError&) {
  }
  return 0;
}
