#include "functional/translator.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <set>

#include "functional/calls.hpp"
#include "functional/grid.hpp"
#include "functional/instructions.hpp"
#include "functional/texture.hpp"
#include "ptx/contraction.hpp"
#include "ptx/schedule.hpp"

namespace simt::functional {
namespace {

using ptx::OperandKind;
using ptx::Space;
using ptx::Type;

constexpr uint32_t unlimited = UINT32_MAX;

uint32_t round_up(uint32_t value, uint32_t to) {
  return to <= 1 ? value : (value + to - 1) / to * to;
}

std::string line_text(const ptx::Module& module, uint32_t line) {
  const std::string& text = *module.text;
  size_t begin = 0;
  for (uint32_t l = 1; l < line; ++l) {
    begin = text.find('\n', begin);
    if (begin == std::string::npos) return {};
    ++begin;
  }
  size_t end = std::min(text.find('\n', begin), text.size());
  while (begin < end && std::isspace(static_cast<unsigned char>(text[begin]))) ++begin;
  while (end > begin && std::isspace(static_cast<unsigned char>(text[end - 1]))) --end;
  return text.substr(begin, end - begin);
}

[[noreturn]] void refuse(const ptx::Module& module, uint32_t line, const std::string& why) {
  throw TranslationError(module.name + ":" + std::to_string(line) + ": " + line_text(module, line) + ": " +
                         why);
}

}  // namespace

Translate Registry::find(std::string_view opcode) const {
  const auto it = opcodes_.find(opcode);
  return it == opcodes_.end() ? nullptr : it->second;
}

const Builtin* Registry::builtin(std::string_view name) const {
  const auto it = builtins_.find(name);
  return it == builtins_.end() ? nullptr : &it->second;
}

std::vector<std::string> Registry::opcodes() const {
  std::vector<std::string> names;
  for (const auto& [name, translate] : opcodes_) names.push_back(name);
  return names;
}

const Registry& Registry::instance() {
  static const Registry registry = [] {
    Registry r;
    register_moves(r);
    register_control(r);
    register_memory(r);
    register_arithmetic(r);
    register_integer(r);
    register_bits(r);
    register_video(r);
    register_float(r);
    register_transcendental(r);
    register_conversion(r);
    register_comparison(r);
    register_atomic(r);
    register_warp(r);
    register_matrix(r);
    register_mma(r);
    register_wmma(r);
    register_wgmma(r);
    register_system(r);
    register_mbarrier(r);
    register_async(r);
    register_tensor(r);
    register_cluster(r);
    register_texture(r);
    return r;
  }();
  return registry;
}

const FunctionCode* Program::find(const std::string& name) const {
  for (const FunctionCode& f : functions)
    if (f.entry && f.name == name) return &f;
  return nullptr;
}

const ptx::Instruction& Program::instruction(uint32_t op) const {
  static const ptx::Instruction nowhere;
  const ptx::Function& f = module.functions[functions[origins[op].function].ptx];
  if (f.instructions.empty()) return nowhere;
  // What is appended behind a function's last instruction stands for it.
  return f.instructions[std::min<size_t>(origins[op].instruction, f.instructions.size() - 1)];
}

std::string Program::text(uint32_t op) const {
  return line_text(module, instruction(op).line);
}

bool Translation::take(std::string_view modifier) {
  const auto& all = mnemonic_->modifiers;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i] != modifier || (taken_ >> i & 1)) continue;
    taken_ |= uint64_t{1} << i;
    return true;
  }
  return false;
}

int Translation::take_one_of(std::initializer_list<std::string_view> modifiers, int otherwise) {
  int index = 0;
  for (const std::string_view m : modifiers) {
    if (take(m)) return index;
    ++index;
  }
  return otherwise;
}

std::optional<Type> Translation::take_type_if_any() {
  const auto& all = mnemonic_->modifiers;
  for (size_t i = 0; i < all.size(); ++i) {
    if (taken_ >> i & 1) continue;
    const Type type = ptx::type_named(all[i]);
    if (type == Type::None) continue;
    taken_ |= uint64_t{1} << i;
    return type;
  }
  return std::nullopt;
}

Type Translation::take_type() {
  const auto type = take_type_if_any();
  if (!type) unsupported("a type is missing");
  return *type;
}

std::string_view Translation::take_next() {
  const auto& all = mnemonic_->modifiers;
  for (size_t i = 0; i < all.size(); ++i) {
    if (taken_ >> i & 1) continue;
    taken_ |= uint64_t{1} << i;
    return all[i];
  }
  return {};
}

void Translation::take_all() {
  taken_ = ~uint64_t{0};
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
  const size_t offset = program_.constants.size() * sizeof(Line);
  program_.constants.resize(program_.constants.size() + warp_lanes * bytes / sizeof(Line));
  auto* at = reinterpret_cast<std::byte*>(program_.constants.data()) + offset;
  for (uint32_t i = 0; i < warp_lanes; ++i) std::memcpy(at + i * bytes, &bits, bytes);
  const Place result = place::constants | static_cast<Place>(offset);
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

Place Translation::source(const ptx::Operand& operand, Type type) {
  uint32_t bytes = 0;
  const Place p = source_of_any_size(operand, type, bytes);
  // 8-bit values live in 16-bit registers in PTX; both take a 32-bit place here.
  if (std::max(4u, bytes) != std::max(4u, ptx::bytes(type)))
    unsupported("a register of " + std::to_string(8 * bytes) + " bits where " +
                std::to_string(8 * ptx::bytes(type)) + " are expected");
  return p;
}

Place Translation::destination_of_any_size(const ptx::Operand& operand, Type type, uint32_t& bytes) {
  if (operand.kind == OperandKind::Discard) {
    bytes = ptx::bytes(type);
    return scratch(bytes);
  }
  if (operand.kind != OperandKind::Register) unsupported("the destination is no register");
  return source_of_any_size(operand, type, bytes);
}

Place Translation::destination(const ptx::Operand& operand, Type type) {
  uint32_t bytes = 0;
  const Place p = destination_of_any_size(operand, type, bytes);
  if (std::max(4u, bytes) != std::max(4u, ptx::bytes(type)))
    unsupported("a destination of " + std::to_string(8 * bytes) + " bits where " +
                std::to_string(8 * ptx::bytes(type)) + " are expected");
  return p;
}

PredicateOperand Translation::predicate_source(const ptx::Operand& operand) {
  if (operand.kind == OperandKind::Integer) {
    // A constant predicate: all ones or zeros.
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
      // Without a state space the address is a generic one.
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
  for (const auto& [alias, aliased] : program_.module.aliases)
    if (alias == name) name = aliased;
  for (uint32_t i = 0; i < program_.module.functions.size(); ++i)
    if (program_.module.functions[i].defined && program_.module.functions[i].name == name) return i;
  return UINT32_MAX;
}

Op& Translation::emit(Handler handler, Control control) {
  Op op;
  op.run = handler;
  op.control = control;
  if (instruction_->guard >= 0) {
    op.guard = place::frame | (allocation_.registers * place::register_bytes +
                               4 * allocation_.place[static_cast<size_t>(instruction_->guard)]);
    op.guard_negated = instruction_->guard_negated;
  }
  program_.code.push_back(op);
  program_.origins.push_back({function_number_, index_});
  return program_.code.back();
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

/// Translates all functions of a module.
class Translator {
 public:
  Translator(Program& program, DeviceMemory& memory, const std::map<std::string, uint64_t>& places)
      : program_(program), memory_(memory), places_(places), t_(program, Registry::instance()) {}

  void run() {
    place_variables();
    find_references();
    place_shared();
    program_.functions.resize(program_.module.functions.size());
    for (uint32_t f = 0; f < program_.module.functions.size(); ++f) translate(f);
    for (uint32_t f = 0; f < program_.module.functions.size(); ++f) {
      FunctionCode& code = program_.functions[f];
      code.order_sensitive = false;
      for (const uint32_t g : reachable_[f]) code.order_sensitive |= sensitive_[g];
      std::set<uint32_t> under_way;
      code.deepest_stack = deepest_stack(f, under_way);
    }
  }

 private:
  const ptx::Module& module() const { return program_.module; }

  void place_variables() {
    program_.variables.assign(module().variables.size(), UINT64_MAX);
    for (size_t i = 0; i < module().variables.size(); ++i) {
      const ptx::Variable& v = module().variables[i];
      if (v.space != Space::Global && v.space != Space::Constant) continue;
      if (v.linkage == ptx::Linkage::Extern) continue;
      const bool opaque = ptx::is_opaque(v.type);
      const uint64_t bytes = opaque ? sizeof(TextureDescriptor) : std::max<uint64_t>(1, v.size);
      const std::string name(v.name);
      uint64_t address = 0;
      if (const auto place = places_.find(name); place == places_.end())
        address = memory_.allocate(bytes, name);
      else if (memory_.allocate_at(place->second, bytes, name))
        address = place->second;
      if (!address) refuse(module(), v.line, "no room for its " + std::to_string(bytes) + " bytes");
      std::copy(v.initial.begin(), v.initial.end(), reinterpret_cast<uint8_t*>(memory_.host(address)));
      program_.variables[i] = address;
      if (!opaque) continue;
      try {
        const TextureDescriptor descriptor = initial_descriptor(v);
        std::memcpy(memory_.host(address), &descriptor, sizeof descriptor);
      } catch (const std::invalid_argument& error) {
        refuse(module(), v.line, std::string(error.what()) + " is not supported");
      }
    }
    for (size_t i = 0; i < module().variables.size(); ++i) {
      const ptx::Variable& v = module().variables[i];
      for (const ptx::Relocation& r : v.relocations) {
        uint64_t value = 0;
        bool found = false;
        for (size_t k = 0; k < module().variables.size() && !found; ++k) {
          if (module().variables[k].name != r.symbol || program_.variables[k] == UINT64_MAX) continue;
          value = program_.variables[k];
          found = true;
        }
        if (!found) {
          const uint32_t f = t_.function_index(r.symbol);
          if (f == UINT32_MAX)
            refuse(module(), v.line,
                   "the initialiser names `" + std::string(r.symbol) + "`, which is not defined");
          value = function_address(f);
        }
        value = (value + static_cast<uint64_t>(r.addend)) >> r.mask_shift;
        std::memcpy(memory_.host(program_.variables[i] + r.offset), &value, r.bytes);
      }
    }
  }

  /// For each function: the functions that it may reach, itself among them, and the shared variables named.
  void find_references() {
    const size_t count = module().functions.size();
    std::vector<std::set<uint32_t>> calls(count);
    named_.resize(count);
    indirect_.assign(count, false);
    dynamic_stack_.assign(count, false);
    std::set<uint32_t> by_address;
    for (uint32_t f = 0; f < count; ++f) {
      const ptx::Function& function = module().functions[f];
      for (const ptx::Operand& o : function.operands) {
        if (o.kind == OperandKind::Symbol && !o.local) {
          const uint32_t callee = t_.function_index(o.text);
          if (callee != UINT32_MAX) calls[f].insert(callee);
        } else if (o.kind == OperandKind::Variable && !o.local &&
                   module().variables[o.index].space == Space::Shared) {
          named_[f].insert(o.index);
        }
      }
      for (const ptx::Instruction& i : function.instructions) {
        const std::string_view opcode = module().mnemonics[i.mnemonic].opcode;
        dynamic_stack_[f] = dynamic_stack_[f] || opcode == "alloca";
        for (uint32_t k = 0; k < i.operand_count; ++k) {
          const ptx::Operand& o = function.operands[i.first_operand + k];
          if (opcode == "call")
            indirect_[f] = indirect_[f] || o.kind == OperandKind::Register;
          else if (o.kind == OperandKind::Symbol && t_.function_index(o.text) != UINT32_MAX)
            by_address.insert(t_.function_index(o.text));
        }
      }
    }
    // A function whose address is taken can be reached from any indirect call.
    for (const ptx::Variable& v : module().variables)
      for (const ptx::Relocation& r : v.relocations)
        if (const uint32_t f = t_.function_index(r.symbol); f != UINT32_MAX) by_address.insert(f);
    reachable_.resize(count);
    for (uint32_t f = 0; f < count; ++f) {
      std::vector<uint32_t> open{f};
      while (!open.empty()) {
        const uint32_t g = open.back();
        open.pop_back();
        if (!reachable_[f].insert(g).second) continue;
        for (const uint32_t h : calls[g]) open.push_back(h);
        if (indirect_[g])
          for (const uint32_t h : by_address) open.push_back(h);
      }
    }
    calls_ = std::move(calls);
  }

  /// Shared variables that only one kernel uses begin at the same place as those of other kernels; those that
  /// several use lie before them.
  void place_shared() {
    const auto& variables = module().variables;
    const size_t count = module().functions.size();
    std::vector<std::vector<uint32_t>> users(variables.size());
    for (uint32_t f = 0; f < count; ++f) {
      if (!module().functions[f].entry) continue;
      std::set<uint32_t> all;
      for (const uint32_t g : reachable_[f]) all.insert(named_[g].begin(), named_[g].end());
      for (const uint32_t v : all) users[v].push_back(f);
    }
    uint32_t common = 0;
    for (size_t v = 0; v < variables.size(); ++v) {
      if (users[v].size() < 2 || variables[v].size == 0) continue;
      common = round_up(common, variables[v].alignment);
      program_.variables[v] = common;
      common += static_cast<uint32_t>(variables[v].size);
    }
    static_shared_.assign(count, 0);
    own_shared_.resize(count);
    for (uint32_t f = 0; f < count; ++f) {
      if (!module().functions[f].entry) continue;
      uint32_t at = 0;
      for (size_t v = 0; v < variables.size(); ++v)
        if (users[v].size() > 1 && std::find(users[v].begin(), users[v].end(), f) != users[v].end())
          at = common;
      for (size_t v = 0; v < variables.size(); ++v) {
        if (users[v].size() != 1 || users[v][0] != f || variables[v].size == 0) continue;
        at = round_up(at, variables[v].alignment);
        program_.variables[v] = at;
        at += static_cast<uint32_t>(variables[v].size);
      }
      static_shared_[f] = at;
    }
    // Variables of function bodies: of each function that a kernel reaches, behind the rest. A device
    // function that several kernels reach has one place for its own.
    std::vector<bool> placed(count);
    for (bool shared_functions : {true, false}) {
      for (uint32_t g = 0; g < count; ++g) {
        if (placed[g]) continue;
        std::vector<uint32_t> entries;
        for (uint32_t f = 0; f < count; ++f)
          if (module().functions[f].entry && reachable_[f].count(g)) entries.push_back(f);
        if ((entries.size() > 1) != shared_functions) continue;
        placed[g] = true;
        uint32_t at = 0;
        for (const uint32_t f : entries) at = std::max(at, static_shared_[f]);
        const ptx::Function& function = module().functions[g];
        own_shared_[g].assign(function.variables.size(), UINT32_MAX);
        bool any = false;
        for (size_t v = 0; v < function.variables.size(); ++v) {
          const ptx::Variable& variable = function.variables[v];
          if (variable.space != Space::Shared) continue;
          any = true;
          at = round_up(at, variable.alignment);
          own_shared_[g][v] = at;
          at += static_cast<uint32_t>(variable.size);
        }
        if (any)
          for (const uint32_t f : entries) static_shared_[f] = at;
      }
    }
    // Dynamic shared memory begins behind the static part; where kernels share a function that names it, they
    // must agree on where.
    for (uint32_t f = 0; f < count; ++f)
      if (module().functions[f].entry) static_shared_[f] = round_up(static_shared_[f], 16);
    for (uint32_t g = 0; g < count; ++g) {
      if (module().functions[g].entry) continue;
      bool dynamic = false;
      for (const uint32_t v : named_[g]) dynamic |= variables[v].size == 0;
      if (!dynamic) continue;
      uint32_t most = 0;
      for (uint32_t f = 0; f < count; ++f)
        if (module().functions[f].entry && reachable_[f].count(g)) most = std::max(most, static_shared_[f]);
      for (uint32_t f = 0; f < count; ++f)
        if (module().functions[f].entry && reachable_[f].count(g)) static_shared_[f] = most;
    }
  }

  uint32_t dynamic_shared_offset(uint32_t function) const {
    for (uint32_t f = 0; f < module().functions.size(); ++f)
      if (module().functions[f].entry && reachable_[f].count(function)) return static_shared_[f];
    return 0;
  }

  void translate(uint32_t number) {
    const ptx::Function& function = module().functions[number];
    FunctionCode& code = program_.functions[number];
    code.name = std::string(function.name);
    code.ptx = number;
    code.entry = function.entry;
    code.first = static_cast<uint32_t>(program_.code.size());
    code.shared_bytes = static_shared_[number];
    place_stack(function, code);
    sensitive_.push_back(false);
    if (!function.defined) {
      code.body = code.end = code.first;
      return;
    }
    t_.function_ = &function;
    t_.function_number_ = number;
    t_.flow_ = ptx::control_flow(function, module());
    t_.allocation_ = ptx::allocate_registers(function, module(), t_.flow_);
    t_.shared_offsets_ = own_shared_[number];
    t_.module_addresses_ = program_.variables;
    for (size_t v = 0; v < module().variables.size(); ++v)
      if (module().variables[v].space == Space::Shared && module().variables[v].size == 0)
        t_.module_addresses_[v] = dynamic_shared_offset(number);
    t_.first_op_.assign(function.instructions.size() + 1, 0);
    t_.patches_.clear();
    t_.saves_stack_ = dynamic_stack_[number] && !function.entry;
    t_.scratch_bytes_ = scratch_base();
    t_.slots_begin_ = code.stack_bytes;
    t_.slot_bytes_ = 0;
    t_.order_sensitive_ = false;
    begin_function(number);
    code.body = static_cast<uint32_t>(program_.code.size());
    for (size_t i = 0; i < function.instructions.size(); ++i) {
      t_.instruction_ = &function.instructions[i];
      t_.index_ = static_cast<uint32_t>(i);
      t_.mnemonic_ = &module().mnemonics[t_.instruction_->mnemonic];
      t_.taken_ = 0;
      t_.scratch_now_ = scratch_base();
      t_.slots_now_ = 0;
      t_.first_op_[i] = static_cast<uint32_t>(program_.code.size());
      const Translate opcode = t_.registry_.find(t_.mnemonic_->opcode);
      if (!opcode) t_.unsupported("this instruction is not supported");
      opcode(t_);
      const auto& modifiers = t_.mnemonic_->modifiers;
      for (size_t m = 0; m < modifiers.size(); ++m)
        if (!(t_.taken_ >> m & 1))
          t_.unsupported("`." + std::string(modifiers[m]) + "` is not supported here");
    }
    t_.first_op_.back() = static_cast<uint32_t>(program_.code.size());
    // Falling off the end returns.
    const ptx::Instruction end;
    t_.instruction_ = &end;
    t_.index_ = static_cast<uint32_t>(function.instructions.size());
    emit_return(t_);
    for (const auto& patch : t_.patches_) patch();
    code.end = static_cast<uint32_t>(program_.code.size());
    code.registers = t_.allocation_.registers;
    code.max_live = t_.allocation_.max_live;
    code.places = t_.allocation_.place;
    code.frame_bytes = t_.fixed_frame_bytes() + t_.scratch_bytes_;
    code.stack_bytes = round_up(code.stack_bytes + t_.slot_bytes_, 16);
    sensitive_.back() = t_.order_sensitive_;
  }

  /// Behind the function's own registers lies what `alloca` had taken when it was called.
  uint32_t scratch_base() const { return t_.saves_stack_ ? place::register_bytes : 0; }

  /// Ops in front of the first instruction: what the function's registers begin with.
  void begin_function(uint32_t number) {
    const ptx::Function& function = module().functions[number];
    const ptx::Instruction begin;
    t_.instruction_ = &begin;
    t_.index_ = 0;
    if (t_.saves_stack_) emit_save_stack(t_);
    t_.register_parameters_.clear();
    t_.register_results_.clear();
    uint32_t next = 0;
    for (size_t v = 0; v < function.results.size() + function.parameters.size(); ++v) {
      const ptx::Variable& variable = function.variables[v];
      if (function.entry || variable.space != Space::Register) continue;
      const uint32_t at = t_.allocation_.place[next++];
      if (at == ptx::RegisterAllocation::unused) continue;
      const bool predicate = variable.type == Type::Pred;
      const Translation::RegisterSlot slot{
          place::frame | (predicate ? t_.allocation_.registers * place::register_bytes + 4 * at
                                    : at * place::register_bytes),
          {t_.stack_offsets_[v], slot_bytes(variable)}};
      if (v < function.results.size()) {
        t_.register_results_.push_back(slot);
        continue;
      }
      Op& op = t_.emit(from_stack(slot.slot.bytes));
      op.destination = slot.place;
      op.immediate = slot.slot.offset;
    }
  }

  /// Of a parameter or result that is a register.
  uint32_t slot_bytes(const ptx::Variable& variable) const {
    const uint32_t bytes = ptx::bytes(variable.type);
    if (variable.type == Type::Pred) return predicate_bytes;
    if (bytes == 0 || bytes > 8 || variable.size > bytes)
      refuse(module(), variable.line, "a parameter in a register of this type is not supported");
    return std::max(4u, bytes);
  }

  void place_stack(const ptx::Function& function, FunctionCode& code) {
    t_.stack_offsets_.assign(function.variables.size(), 0);
    const size_t results = function.results.size(), parameters = function.parameters.size();
    uint32_t at = 0, block = 0;
    for (size_t v = 0; v < function.variables.size(); ++v) {
      const ptx::Variable& variable = function.variables[v];
      if (variable.space == Space::Shared || variable.space == Space::Global) continue;
      const bool in_register = variable.space == Space::Register;
      const uint32_t size = in_register ? slot_bytes(variable) : static_cast<uint32_t>(variable.size);
      if (function.entry && v < parameters) {
        block = round_up(block, variable.alignment);
        t_.stack_offsets_[v] = block;
        code.parameter_offsets.push_back(block);
        code.parameter_sizes.push_back(size);
        block += size;
        continue;
      }
      at = round_up(at, std::max(variable.alignment, in_register ? size : 4u));
      t_.stack_offsets_[v] = at;
      if (v < results) {
        code.result_offsets.push_back(at);
        code.result_sizes.push_back(size);
      } else if (v < results + parameters) {
        code.parameter_offsets.push_back(at);
        code.parameter_sizes.push_back(size);
      }
      at += size;
    }
    code.stack_bytes = round_up(at, 16);
    code.parameter_bytes = block;
  }

  /// Bytes of stack that a thread needs for a function and all that it calls; unlimited where that is not
  /// known (recursion, indirect calls).
  uint32_t deepest_stack(uint32_t f, std::set<uint32_t>& under_way) {
    if (const auto it = deepest_.find(f); it != deepest_.end()) return it->second;
    if (indirect_[f] || dynamic_stack_[f] || !under_way.insert(f).second) return unlimited;
    uint32_t most = 0;
    for (const uint32_t g : calls_[f]) most = std::max(most, deepest_stack(g, under_way));
    under_way.erase(f);
    const uint32_t result = most == unlimited ? unlimited : program_.functions[f].stack_bytes + most;
    deepest_[f] = result;
    return result;
  }

  Program& program_;
  DeviceMemory& memory_;
  const std::map<std::string, uint64_t>& places_;
  Translation t_;
  std::vector<std::set<uint32_t>> reachable_, calls_, named_;
  std::vector<uint32_t> static_shared_;
  std::vector<std::vector<uint32_t>> own_shared_;
  std::vector<bool> sensitive_, indirect_, dynamic_stack_;
  std::map<uint32_t, uint32_t> deepest_;
};

Program translate(ptx::Module module, DeviceMemory& memory, const std::map<std::string, uint64_t>& places) {
  Program program;
  program.module = std::move(module);
  for (ptx::Function& function : program.module.functions) {
    ptx::contract(function, program.module);
    ptx::schedule(function, program.module);
  }
  try {
    Translator(program, memory, places).run();
  } catch (...) {
    free_variables(program, memory);
    throw;
  }
  return program;
}

void free_variables(const Program& program, DeviceMemory& memory) {
  for (size_t i = 0; i < program.variables.size(); ++i) {
    const Space space = program.module.variables[i].space;
    if (space == Space::Global || space == Space::Constant) memory.free(program.variables[i]);
  }
}

}  // namespace simt::functional
