#include <algorithm>
#include <bit>
#include <cstring>

#include "machine/grid.hpp"
#include "machine/round_up.hpp"
#include "ptx/translation/instructions.hpp"
#include "ptx/translation/references.hpp"
#include "ptx/translation/refusal.hpp"

namespace simt::functional {

using ptx::OperandKind;
using ptx::Space;
using ptx::Type;

std::optional<Type> Translation::take_type_if_any() {
  const std::string_view name =
      take_first([](std::string_view m) { return ptx::type_named(m) != Type::None; });
  return name.empty() ? std::nullopt : std::optional(ptx::type_named(name));
}

Type Translation::take_type() {
  const auto type = take_type_if_any();
  if (!type) unsupported("a type is missing");
  return *type;
}

const ptx::Operand& Translation::operand(uint32_t index) {
  if (index >= instruction_->operand_count)
    unsupported("it has " + std::to_string(instruction_->operand_count) + " operands, expected more");
  return function_->operands[instruction_->first_operand + index];
}

const ptx::Operand& Translation::part(const ptx::Operand& operand, uint32_t index) const {
  if (index >= operand.part_count) unsupported("an operand has too few parts");
  return function_->operands[operand.first_part + index];
}

uint32_t Translation::register_bytes(const ptx::Operand& operand) const {
  if (operand.kind != OperandKind::Register) return 0;
  return ptx::bytes(function_->registers[operand.index].type);
}

Type Translation::register_type(const ptx::Operand& operand) const {
  return operand.kind == OperandKind::Register ? function_->registers[operand.index].type : Type::None;
}

bool Translation::is_predicate(const ptx::Operand& operand) const {
  return register_type(operand) == Type::Pred;
}

bool Translation::is_immediate(const ptx::Operand& operand) const {
  return operand.kind == OperandKind::Integer || operand.kind == OperandKind::Float;
}

int64_t Translation::immediate(const ptx::Operand& operand) {
  if (operand.kind != OperandKind::Integer) unsupported("an integer constant is expected");
  return operand.value;
}

uint64_t Translation::immediate_bits(const ptx::Operand& operand, Type type) {
  const uint32_t bytes = ptx::bytes(type);
  uint64_t bits;
  if (operand.kind == OperandKind::Integer) {
    bits = static_cast<uint64_t>(operand.value);
  } else {
    const uint64_t raw = static_cast<uint64_t>(operand.value);
    if (bytes == 8 && operand.single)
      bits = std::bit_cast<uint64_t>(static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(raw))));
    else if (bytes == 4 && !operand.single)
      bits = std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(raw)));
    else
      bits = raw;
  }
  return bytes >= 8 ? bits : bits & ((uint64_t{1} << (8 * bytes)) - 1);
}

Place Translation::constant(uint64_t bits, uint32_t bytes) {
  auto& known = bytes == 8 ? constants8_ : constants4_;
  const auto it = known.find(bits);
  if (it != known.end()) return it->second;
  const Place result = append_constant(bits, bytes);
  known.emplace(bits, result);
  return result;
}

uint32_t Translation::fixed_frame_bytes() const {
  return allocation_.registers * place::register_bytes + round_up(4 * (allocation_.predicates + 1), 64);
}

Place Translation::carry_flag() const {
  return place::frame | (allocation_.registers * place::register_bytes + 4 * allocation_.predicates);
}

Place Translation::saved_stack() const {
  return place::frame | fixed_frame_bytes();
}

uint32_t Translation::scratch_slot(uint32_t bytes) {
  const uint32_t result = slots_begin_ + slots_now_;
  slots_now_ += round_up(bytes, 8);
  slot_bytes_ = std::max(slot_bytes_, slots_now_);
  return result;
}

Place Translation::scratch(uint32_t bytes) {
  const Place result = place::frame | (fixed_frame_bytes() + scratch_now_);
  scratch_now_ += std::max(4u, bytes) * warp_lanes;
  scratch_bytes_ = std::max(scratch_bytes_, scratch_now_);
  return result;
}

Place Translation::source_of_any_size(const ptx::Operand& operand, Type type, uint32_t& bytes) {
  if (operand.negated) unsupported("a negated operand");
  switch (operand.kind) {
    case OperandKind::Register: {
      if (operand.component) unsupported("a component of a register");
      const auto& r = function_->registers[operand.index];
      if (r.type == Type::Pred) unsupported("a predicate where a value is expected");
      bytes = ptx::bytes(r.type);
      return place::frame | allocation_.place[operand.index] * place::register_bytes;
    }
    case OperandKind::Integer:
    case OperandKind::Float:
      bytes = ptx::bytes(type);
      return constant(immediate_bits(operand, type), bytes == 8 ? 8 : 4);
    case OperandKind::Variable: {
      bytes = ptx::bytes(type);
      return constant(variable_address(operand), bytes == 8 ? 8 : 4);
    }
    case OperandKind::Symbol: {
      const uint32_t f = function_index(operand.text);
      if (f == UINT32_MAX) unsupported("`" + std::string(operand.text) + "` is not defined");
      bytes = 8;
      return constant(function_address(f), 8);
    }
    case OperandKind::Special: {
      bytes = 4;
      static const std::map<std::string_view, Place> places{{"tid.x", thread_place::tid_x},
                                                            {"tid.y", thread_place::tid_y},
                                                            {"tid.z", thread_place::tid_z},
                                                            {"laneid", thread_place::laneid},
                                                            {"lanemask_eq", thread_place::lanemask_eq},
                                                            {"lanemask_le", thread_place::lanemask_le},
                                                            {"lanemask_lt", thread_place::lanemask_lt},
                                                            {"lanemask_ge", thread_place::lanemask_ge},
                                                            {"lanemask_gt", thread_place::lanemask_gt},
                                                            {"warpid", thread_place::warpid}};
      const auto it = places.find(operand.text);
      if (it == places.end()) unsupported("special register %" + std::string(operand.text));
      return it->second;
    }
    default:
      unsupported("an operand of this form");
  }
}

void Translation::check_size(const char* what, uint32_t bytes, Type type) const {
  // PTX holds 8-bit values in 16-bit registers; both have a 32-bit place here.
  if (std::max(4u, bytes) != std::max(4u, ptx::bytes(type)))
    unsupported(std::string(what) + " of " + std::to_string(8 * bytes) + " bits where " +
                std::to_string(8 * ptx::bytes(type)) + " are expected");
}

Place Translation::source(const ptx::Operand& operand, Type type) {
  uint32_t bytes = 0;
  const Place p = source_of_any_size(operand, type, bytes);
  check_size("a register", bytes, type);
  return p;
}

Place Translation::destination_of_any_size(const ptx::Operand& operand, Type type, uint32_t& bytes) {
  if (operand.kind == OperandKind::Discard) {
    bytes = ptx::bytes(type);
    return scratch(bytes);
  }
  if (operand.kind != OperandKind::Register) unsupported("the destination is not a register");
  return source_of_any_size(operand, type, bytes);
}

Place Translation::destination(const ptx::Operand& operand, Type type) {
  uint32_t bytes = 0;
  const Place p = destination_of_any_size(operand, type, bytes);
  check_size("a destination", bytes, type);
  return p;
}

PredicateOperand Translation::predicate_source(const ptx::Operand& operand) {
  if (operand.kind == OperandKind::Integer) {
    // A constant predicate: all ones or all zeros.
    return {constant(operand.value ? full_mask : 0, 4), operand.negated};
  }
  if (!is_predicate(operand)) unsupported("a predicate is expected");
  return {
      place::frame | (allocation_.registers * place::register_bytes + 4 * allocation_.place[operand.index]),
      operand.negated};
}

Place Translation::predicate_destination(const ptx::Operand& operand) {
  if (operand.kind == OperandKind::Discard) return scratch(4);
  return predicate_source(operand).place;
}

const ptx::Variable& Translation::variable(const ptx::Operand& operand) const {
  if (operand.kind != OperandKind::Variable) unsupported("a variable is expected");
  return operand.local ? function_->variables[operand.index] : program_.module.variables[operand.index];
}

uint32_t Translation::stack_offset(const ptx::Operand& operand) const {
  const ptx::Variable& v = variable(operand);
  if (!operand.local || (v.space != Space::Param && v.space != Space::Local))
    unsupported("a parameter or local variable is expected");
  return stack_offsets_[operand.index] + static_cast<uint32_t>(operand.value);
}

uint64_t Translation::variable_address(const ptx::Operand& operand) {
  const ptx::Variable& v = variable(operand);
  const auto add = static_cast<uint64_t>(operand.value);
  if (!operand.local) {
    const uint64_t address = module_addresses_[operand.index];
    if (address == UINT64_MAX) unsupported("`" + std::string(v.name) + "` has no address here");
    return address + add;
  }
  if (v.space == Space::Shared) return shared_offsets_[operand.index] + add;
  unsupported("the address of `" + std::string(v.name) + "` is known at run time only");
}

Address Translation::address(const ptx::Operand& operand) {
  Address result;
  const ptx::Operand* base = &operand;
  if (operand.kind == OperandKind::Address) {
    base = &part(operand, 0);
    result.offset = operand.value;
  }
  switch (base->kind) {
    case OperandKind::Register: {
      uint32_t bytes = 0;
      result.place = source_of_any_size(*base, Type::B64, bytes);
      if (bytes != 4 && bytes != 8) unsupported("an address of " + std::to_string(8 * bytes) + " bits");
      result.base = bytes == 8 ? Address::Base::Wide : Address::Base::Narrow;
      return result;
    }
    case OperandKind::Integer:
      result.place = constant(static_cast<uint64_t>(base->value + result.offset), 8);
      result.offset = 0;
      return result;
    case OperandKind::Variable: {
      const ptx::Variable& v = variable(*base);
      result.space = v.space;
      if (base->local && (v.space == Space::Param || v.space == Space::Local)) {
        result.offset += stack_offset(*base);
        result.base = Address::Base::Stack;
        result.entry_parameter =
            v.space == Space::Param && function_->entry && base->index < function_->parameters.size();
        return result;
      }
      uint64_t at = variable_address(*base) + static_cast<uint64_t>(result.offset);
      // Without a state space, the address is generic.
      const auto& modifiers = mnemonic_->modifiers;
      const bool says_shared = std::any_of(modifiers.begin(), modifiers.end(),
                                           [](std::string_view m) { return m.starts_with("shared"); });
      if (v.space == Space::Shared && !says_shared) at += window::shared;
      result.place = constant(at, 8);
      result.offset = 0;
      return result;
    }
    default:
      unsupported("an address of this form");
  }
}

uint32_t Translation::function_index(std::string_view name) const {
  return functional::function_index(program_.module, name);
}

Op& Translation::emit(Handler handler, Control control) {
  PredicateOperand guard;
  if (instruction_->guard >= 0)
    guard = {place::frame | (allocation_.registers * place::register_bytes +
                             4 * allocation_.place[static_cast<size_t>(instruction_->guard)]),
             instruction_->guard_negated};
  return append(handler, control, guard, {function_number_, index_});
}

uint32_t Translation::label_target(uint32_t label) {
  return first_op_[function_->labels[label].target];
}

uint32_t Translation::reconvergence_op() const {
  return flow_.reconvergence(index_);
}

void Translation::unsupported(const std::string& why) const {
  refuse(program_.module, instruction_->line, why);
}

void translate_unsupported(Translation& t) {
  std::string known;
  for (const instructions::PtxRow* row : instructions::ptx_rows_of(t.mnemonic().opcode))
    if (instructions::is_executable(*row))
      known += (known.empty() ? "" : ", ") + std::string(row->name.value);
  t.unsupported(known.empty() ? "this instruction is not supported" : "expected one of " + known);
}

}  // namespace simt::functional
