#include "check/variables.hpp"

#include <algorithm>
#include <cstring>
#include <map>

#include "ptx/register_allocation.hpp"

namespace simt::check {
namespace {

using ptx::OperandKind;

/// What is known of a register: nothing yet; a number; an address in a variable; or anything.
struct Value {
  enum Kind : uint8_t { Unseen, Number, Inside, Anything } kind = Unseen;
  const Extent* in = nullptr;
  bool operator==(const Value&) const = default;
};

constexpr Value number{Value::Number}, anything{Value::Anything};

/// One of two values.
Value either(Value a, Value b) {
  if (a.kind == Value::Unseen) return b;
  if (b.kind == Value::Unseen) return a;
  return a == b ? a : anything;
}

Value sum(Value a, Value b) {
  if (a.kind == Value::Unseen || b.kind == Value::Unseen) return {};
  if (a.kind == Value::Number) return b;
  return b.kind == Value::Number ? a : anything;
}

Value difference(Value a, Value b) {
  if (a.kind == Value::Unseen || b.kind == Value::Unseen) return {};
  if (b.kind == Value::Number) return a;
  return a == b && a.kind == Value::Inside ? number : anything;
}

}  // namespace

Variables::Variables(const Program& program) : program_(program) {
  if (program.is_machine_code()) return;
  const ptx::Module& module = program.module;
  for (size_t k = 0; k < module.variables.size() && k < program.variables.size(); ++k)
    add(module.variables[k], program.variables[k], UINT32_MAX);
  for (uint32_t op = 0; op < program.code.size(); ++op) add_named(op);
  of_op_.resize(program.code.size());
  for (uint32_t f = 0; f < program.functions.size(); ++f) trace(program, f);
}

void Variables::add(const ptx::Variable& variable, uint64_t begin, uint32_t function) {
  const bool is_shared = variable.space == ptx::Space::Shared;
  const bool known =
      is_shared ? begin < UINT32_MAX : variable.space == ptx::Space::Global && begin < UINT64_MAX;
  if (!known || variable.size == 0) return;
  all_.push_back({variable.name, begin, begin + variable.size, is_shared, function});
}

/// The shared variable of a function that an Op names: the Op has its offset as a constant.
void Variables::add_named(uint32_t op) {
  const Program& program = program_;
  const functional::Origin origin = program.origins[op];
  const functional::FunctionCode& code = program.functions[origin.function];
  const functional::Place from = program.code[op].a;
  if (code.ptx == UINT32_MAX || from == functional::place::none ||
      from >> functional::place::bank_shift != functional::place::constants >> functional::place::bank_shift)
    return;
  const ptx::Function& function = program.module.functions[code.ptx];
  if (op < code.body || origin.instruction >= function.instructions.size()) return;
  const ptx::Instruction& instruction = function.instructions[origin.instruction];
  for (uint32_t k = 0; k < instruction.operand_count; ++k) {
    const ptx::Operand* o = &function.operands[instruction.first_operand + k];
    int64_t offset = 0;
    if (o->kind == OperandKind::Address) {
      offset = o->value;
      o = &function.operands[o->first_part];
    }
    if (o->kind != OperandKind::Variable) continue;
    if (!o->local || function.variables[o->index].space != ptx::Space::Shared) return;
    uint32_t place = 0;
    const auto* const bytes = reinterpret_cast<const std::byte*>(program.constants.data());
    std::memcpy(&place, bytes + (from & ~functional::place::constants), sizeof place);
    place -= static_cast<uint32_t>(offset + o->value);
    const ptx::Variable& variable = function.variables[o->index];
    const bool is_known = std::any_of(all_.begin(), all_.end(), [&](const Extent& each) {
      return each.name.data() == variable.name.data();
    });
    if (!is_known) add(variable, place, origin.function);
    return;
  }
}

const Extent* Variables::shared_at(uint64_t offset, uint32_t kernel) const {
  for (const Extent& each : all_)
    if (each.is_shared && offset >= each.begin && offset < each.end &&
        (each.function == UINT32_MAX || each.function == kernel || !program_.functions[each.function].entry))
      return &each;
  return nullptr;
}

/// Follows addresses through the registers of a function, until nothing new is found.
void Variables::trace(const Program& program, uint32_t number_of_function) {
  const functional::FunctionCode& code = program.functions[number_of_function];
  if (code.ptx == UINT32_MAX || all_.empty()) return;
  const ptx::Module& module = program.module;
  const ptx::Function& function = module.functions[code.ptx];
  std::map<std::pair<bool, uint32_t>, const Extent*> named;  // by `local` and number
  for (const Extent& each : all_) {
    if (each.function != UINT32_MAX && each.function != number_of_function) continue;
    const auto& variables = each.function == UINT32_MAX ? module.variables : function.variables;
    for (uint32_t k = 0; k < variables.size(); ++k)
      if (variables[k].name.data() == each.name.data()) named[{each.function != UINT32_MAX, k}] = &each;
  }
  const bool names_any = std::any_of(function.operands.begin(), function.operands.end(), [&](const auto& o) {
    return o.kind == OperandKind::Variable && named.contains({o.local, o.index});
  });
  if (!names_any) return;

  std::vector<Value> values(function.registers.size());
  std::vector<std::vector<uint32_t>> written(function.instructions.size());
  std::vector<bool> has_value(function.registers.size());
  for (uint32_t i = 0; i < function.instructions.size(); ++i) {
    written[i] = ptx::access(function, module, i).writes;
    for (const uint32_t r : written[i]) has_value[r] = true;
  }
  for (size_t r = 0; r < values.size(); ++r)
    if (!has_value[r]) values[r] = anything;  // a parameter
  const auto value_of = [&](const ptx::Operand& o) -> Value {
    if (o.kind == OperandKind::Register) return values[o.index];
    if (o.kind != OperandKind::Variable) return number;
    const auto at = named.find({o.local, o.index});
    return at == named.end() ? anything : Value{Value::Inside, at->second};
  };
  const auto result_of = [&](const ptx::Instruction& instruction) -> Value {
    const std::string_view name = module.mnemonics[instruction.mnemonic].opcode;
    const auto operand = [&](uint32_t k) {
      return k < instruction.operand_count ? value_of(function.operands[instruction.first_operand + k])
                                           : number;
    };
    if (name == "mov" || name == "cvta" || name == "cvt") return operand(1);
    if (name == "add" || name == "or" || name == "and") return sum(operand(1), operand(2));
    if (name == "sub") return difference(operand(1), operand(2));
    if (name == "mad") return sum(number, operand(3));
    if (name == "selp") return either(operand(1), operand(2));
    if (name == "ld" || name == "atom" || name == "call") return name == "call" ? anything : number;
    Value all = number;
    for (uint32_t k = 1; k < instruction.operand_count; ++k)
      if (const Value one = operand(k); one.kind == Value::Inside || one.kind == Value::Anything)
        all = anything;
    return all;
  };
  for (bool changes = true; changes;) {
    changes = false;
    for (uint32_t i = 0; i < written.size(); ++i)
      for (const uint32_t r : written[i]) {
        const Value now = either(values[r], result_of(function.instructions[i]));
        changes |= !(now == values[r]);
        values[r] = now;
      }
  }
  for (uint32_t op = code.body; op < code.end; ++op) {
    const uint32_t i = program.origins[op].instruction;
    if (program.origins[op].function != number_of_function || i >= function.instructions.size()) continue;
    const ptx::Instruction& instruction = function.instructions[i];
    for (uint32_t k = 0; k < instruction.operand_count; ++k) {
      const ptx::Operand& address = function.operands[instruction.first_operand + k];
      if (address.kind != OperandKind::Address) continue;
      const Value base = value_of(function.operands[address.first_part]);
      if (base.kind == Value::Inside) of_op_[op] = base.in;
      break;
    }
  }
}

}  // namespace simt::check
