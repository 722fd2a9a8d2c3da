#include "ptx/lowering/lowerer.hpp"

#include <algorithm>
#include <stdexcept>

#include "machine/calls.hpp"

namespace simt::functional {
namespace {

using instructions::Algebra;
using instructions::Latency;
using instructions::MachineCode;
using instructions::Vectors;
using ptx::OperandKind;
using ptx::Type;
using std::string_view;

using Place32 = Lowerer::Place32;

constexpr uint32_t none = UINT32_MAX;
constexpr uint32_t predicate_flag = 0x10000;
constexpr uint32_t general_registers = 254;  // 255 is RZ; registers beyond share numbers, which affects
                                             // timing only
constexpr uint32_t never_written = general_registers - 2;  // but in functions that need nearly all
// Start of kernel parameters in constant bank 0, as in disassembly (c[0x0][0x160]).
constexpr uint64_t constant_bank_bytes = 64 * 1024;
constexpr uint32_t hopper_parameters = 0x210, volta_parameters = 0x160, kepler_parameters = 0x140;

Register as_register(const Place32& p, uint32_t offset, uint32_t width) {
  Register r;
  if (p.predicate) {
    r.file = RegisterFile::Predicate;
    r.index = static_cast<uint16_t>(p.first % 7);
    return r;
  }
  r.index = static_cast<uint16_t>((p.first + offset) % general_registers);
  r.width = static_cast<uint8_t>(width);
  return r;
}
void read(RawInstruction& raw, const Place32& p) {
  if (raw.source_count < StaticInstruction::max_registers)
    raw.sources[raw.source_count++] = as_register(p, 0, p.count);
}
void write(RawInstruction& raw, const Place32& p) {
  if (raw.destination_count < StaticInstruction::max_registers)
    raw.destinations[raw.destination_count++] = as_register(p, 0, p.count);
}
void read_part(RawInstruction& raw, const Place32& p, uint32_t part) {
  if (raw.source_count < StaticInstruction::max_registers)
    raw.sources[raw.source_count++] = as_register(p, p.count > 1 ? part : 0, 1);
}
void write_part(RawInstruction& raw, const Place32& p, uint32_t part) {
  if (raw.destination_count < StaticInstruction::max_registers)
    raw.destinations[raw.destination_count++] = as_register(p, p.count > 1 ? part : 0, 1);
}

/// The type classes of an instruction, for MachineCases.
instructions::TypeClasses classes_of(const Lowerer& l) {
  using namespace instructions;
  const Type type = l.type();
  const bool eight = ptx::bytes(type) == 8;
  const TypeClasses sources =
      ptx::is_signed(l.type(1)) || ptx::is_signed(l.type(2)) ? signed_sources : TypeClasses{0};
  if (type == Type::Pred) return pred | sources;
  if (!ptx::is_float(type)) return (eight ? wide : narrow) | sources;
  if (type == Type::F32x2) return f32x2 | sources;
  if (eight) return f64 | sources;
  return (type == Type::F32 || type == Type::TF32 ? f32 : half) | sources;
}

}  // namespace

Type Lowerer::last_type(const ptx::Mnemonic& mnemonic) {
  const auto& m = mnemonic.modifiers;
  for (size_t k = m.size(); k-- > 0;)
    if (const Type t = ptx::type_named(m[k]); t != Type::None) return t;
  return Type::None;
}

Type Lowerer::type(uint32_t k) const {
  for (const string_view m : mnemonic_->modifiers)
    if (const Type t = ptx::type_named(m); t != Type::None && k-- == 0) return t;
  return Type::None;
}

Lowering Lowerer::run() {
  result_.of_op.resize(program_.code.size());
  result_.reads_of_op.resize(program_.code.size());
  result_.writes_of_op.resize(program_.code.size());
  for (const FunctionCode& function : program_.functions)
    if (function.end > function.first) lower_function(function);
  return std::move(result_);
}

void Lowerer::lower_function(const FunctionCode& function) {
  code_ = &function;
  function_ = &program_.module.functions[function.ptx];
  flow_ = ptx::control_flow(*function_, program_.module);
  written_.clear();
  collect_accesses();
  find_fusions();
  find_parameters();
  uint32_t op = function.first;
  const auto appended = [&](uint32_t until) {
    for (; op < until; ++op) {
      begin();
      const bool returns = program_.code[op].control == Control::Return;
      add(!returns ? "MOV" : function.entry ? "EXIT" : "RET.REL.NODEC");
      end(op, op + 1, none);
    }
  };
  appended(function.body);  // parameters that are registers
  uint32_t block = none;
  for (uint32_t i = 0; i < function_->instructions.size(); ++i) {
    if (flow_.block_of[i] != block) {
      block = flow_.block_of[i];
      copies_.clear();
    }
    const uint32_t first = op;
    while (op < function.end && program_.origins[op].instruction == i) ++op;
    lower_instruction(i, first, op);
  }
  appended(function.end);  // falling off the end
}

// --- contents of registers --------------------------------------------------------------------------------

void Lowerer::collect_accesses() {
  uses_.assign(function_->registers.size(), 0);
  defined_by_.assign(function_->registers.size(), none);
  accesses_.clear();
  for (uint32_t i = 0; i < function_->instructions.size(); ++i) {
    accesses_.push_back(ptx::access(*function_, program_.module, i));
    for (const uint32_t r : accesses_.back().reads) ++uses_[r];
    for (const uint32_t r : accesses_.back().writes) defined_by_[r] = defined_by_[r] == none ? i : none - 1;
  }
}

void Lowerer::find_fusions() {
  const auto count = static_cast<uint32_t>(function_->instructions.size());
  fused_.assign(count, false);
  fuses_.assign(count, none);
  std::vector<uint32_t> additions(function_->registers.size());
  const auto is_product = [&](uint32_t r) {
    const uint32_t m = defined_by_[r];
    return m < count && mnemonic(m).facts().algebra == Algebra::Product && mnemonic(m).has("wide") &&
           function_->instructions[m].guard < 0;
  };
  const auto is_addition = [&](uint32_t i) {
    const ptx::Mnemonic& m = mnemonic(i);
    if (m.facts().algebra != Algebra::Sum || m.modifiers.empty()) return false;
    const Type t = ptx::type_named(m.modifiers.back());
    return ptx::bytes(t) == 8 && !ptx::is_float(t);
  };
  for (uint32_t i = 0; i < count; ++i)
    if (is_addition(i))
      for (const uint32_t r : accesses_[i].reads) additions[r] += is_product(r);
  for (uint32_t i = 0; i < count; ++i) {
    if (!is_addition(i)) continue;
    for (const uint32_t r : accesses_[i].reads) {
      if (!is_product(r) || additions[r] != uses_[r]) continue;
      fused_[defined_by_[r]] = true;
      fuses_[i] = defined_by_[r];
      break;
    }
  }
}

void Lowerer::find_parameters() {
  constant_of_.assign(function_->registers.size(), StaticInstruction::no_constant);
  if (!function_->entry) return;
  const uint32_t bank_offset = sm_ >= 90   ? hopper_parameters
                               : sm_ >= 70 ? volta_parameters
                                           : kepler_parameters;
  const std::vector<uint64_t> offsets = ptx::parameter_offsets(function_->parameters);
  for (uint32_t i = 0; i < function_->instructions.size(); ++i) {
    const ptx::Access& access = accesses_[i];
    if (mnemonic(i).loads_parameter()) {
      find_loaded_parameter(i, bank_offset, offsets);
    } else if (mnemonic(i).facts().algebra == Algebra::Copy && access.reads.size() == 1 &&
               access.writes.size() == 1 && defined_by_[access.writes[0]] == i) {
      constant_of_[access.writes[0]] = constant_of_[access.reads[0]];
    }
  }
}

void Lowerer::find_loaded_parameter(uint32_t i, uint64_t bank_offset, const std::vector<uint64_t>& offsets) {
  const ptx::Instruction& instruction = function_->instructions[i];
  const ptx::Operand& value = function_->operands[instruction.first_operand];
  const ptx::Operand& address = function_->operands[instruction.first_operand + 1];
  if (address.kind != OperandKind::Address) return;
  const ptx::Operand& base = function_->operands[address.first_part];
  if (base.kind != OperandKind::Variable || !base.local || base.index >= offsets.size()) return;
  const uint64_t offset =
      bank_offset + offsets[base.index] + static_cast<uint64_t>(base.value + address.value);
  const bool vector = value.kind == OperandKind::Vector;
  for (uint32_t k = 0; k < (vector ? value.part_count : 1); ++k) {
    const ptx::Operand& part = vector ? function_->operands[value.first_part + k] : value;
    if (part.kind == OperandKind::Register && defined_by_[part.index] == i && offset < constant_bank_bytes)
      constant_of_[part.index] = static_cast<uint32_t>(offset + k * ptx::bytes(last_type(mnemonic(i))));
  }
}

// --- operands ---------------------------------------------------------------------------------------------

std::vector<Place32> Lowerer::places(const std::vector<uint32_t>& registers) const {
  std::vector<Place32> result;
  for (const uint32_t r : registers) {
    const Type t = function_->registers[r].type;
    const uint32_t at = code_->places[r];
    if (at == ptx::RegisterAllocation::unused) continue;
    if (t == Type::Pred)
      result.push_back({at, 1, true});
    else
      result.push_back({at, std::max(1u, ptx::bytes(t) / 4), false});
  }
  return result;
}

/// Vectors in consecutive registers become the operands that machine code names: the first register of each
/// 128 bits.
void Lowerer::join_vectors() {
  if (mnemonic_->facts().vectors == Vectors::Apart) return;
  for (uint32_t k = 0; k < operand_count(); ++k)
    if (operand(k)->kind == OperandKind::Vector) join_vector(*operand(k));
}

void Lowerer::join_vector(const ptx::Operand& vector) {
  std::vector<uint32_t> registers;
  for (uint32_t part = 0; part < vector.part_count; ++part)
    if (const auto& o = function_->operands[vector.first_part + part]; o.kind == OperandKind::Register)
      registers.push_back(o.index);
  const std::vector<Place32> parts = places(registers);
  if (parts.empty() || parts.size() != vector.part_count) return;
  for (size_t p = 1; p < parts.size(); ++p)
    if (parts[p].predicate || parts[p].first != parts[p - 1].first + parts[p - 1].count) return;
  const uint32_t begin = parts.front().first, end = parts.back().first + parts.back().count;
  const uint32_t bytes = std::min(16u, ptx::bytes(type()) * vector.part_count);
  const uint32_t width = mnemonic_->facts().vectors == Vectors::Pieces ? (bytes + 3) / 4 : end - begin;
  for (std::vector<Place32>* list : {&reads_, &writes_}) {
    const auto inside = [&](const Place32& p) { return !p.predicate && p.first >= begin && p.first < end; };
    const auto at = std::find_if(list->begin(), list->end(), inside) - list->begin();
    if (std::erase_if(*list, inside) == 0) continue;
    std::vector<Place32> pieces;
    for (uint32_t first = begin; first < end; first += width)
      pieces.push_back({first, std::min(width, end - first), false});
    list->insert(list->begin() + at, pieces.begin(), pieces.end());
  }
}

/// Reads refer to the register a value was copied from, because copies cost nothing.
void Lowerer::follow_copies() {
  for (size_t k = 0, count = reads_.size(); k < count; ++k) {
    const Place32 p = reads_[k];
    if (p.predicate) continue;
    for (auto it = copies_.lower_bound(p.first); it != copies_.end() && it->first < p.first + p.count; ++it)
      if (it->first == p.first && it->second.count == p.count)
        reads_[k] = it->second;
      else  // an element of a vector
        reads_.push_back(it->second);
  }
  for (const Place32& w : writes_) {
    const auto written = [&](uint32_t place) { return place >= w.first && place < w.first + w.count; };
    std::erase_if(copies_, [&](const auto& c) { return written(c.first) || written(c.second.first); });
  }
}

std::optional<int64_t> Lowerer::constant(uint32_t operand) const {
  const ptx::Operand* o = this->operand(operand);
  while (o && o->kind == OperandKind::Register) {
    const uint32_t i = defined_by_[o->index];
    if (i >= function_->instructions.size() || mnemonic(i).facts().algebra != Algebra::Copy) return {};
    o = &function_->operands[function_->instructions[i].first_operand + 1];
  }
  if (!o || o->kind != OperandKind::Integer) return {};
  return static_cast<int64_t>(o->value);
}

void Lowerer::omit_read(uint32_t operand) {
  const ptx::Operand* o = this->operand(operand);
  if (o == nullptr || o->kind != OperandKind::Register) return;
  for (const Place32& p : places({o->index})) {
    const auto copy = copies_.find(p.first);
    const uint32_t first = copy == copies_.end() ? p.first : copy->second.first;
    std::erase_if(reads_, [&](const Place32& r) { return !r.predicate && r.first == first; });
  }
}

/// Of the machine instructions for a PTX instruction, the first reads the parameter.
void Lowerer::name_constant(uint32_t i) {
  if (first_ == result_.instructions.size()) return;
  uint32_t& operand = result_.instructions[first_].constant_operand;
  const auto look_for = [&](uint32_t instruction) {
    for (const uint32_t r : accesses_[instruction].reads)
      if (operand == StaticInstruction::no_constant) operand = constant_of_[r];
  };
  look_for(i);
  if (fuses_[i] != none) look_for(fuses_[i]);
}

// --- one instruction --------------------------------------------------------------------------------------

void Lowerer::lower_instruction(uint32_t i, uint32_t op, uint32_t op_end) {
  begin();
  instruction_ = &function_->instructions[i];
  mnemonic_ = &mnemonic(i);
  line_ = program_.module.own_location(instruction_->location).line;
  reads_ = places(accesses_[i].reads);
  writes_ = places(accesses_[i].writes);
  // Machine code lists addresses and values first; PTX's guard precedes them in reads_.
  if (instruction_->guard >= 0) std::rotate(reads_.begin(), reads_.begin() + 1, reads_.end());
  join_vectors();
  follow_copies();
  deferred_ = false;
  for (uint32_t k = op; k < op_end; ++k) deferred_ |= program_.code[k].control == Control::Deferred;
  apply_rule(i);
  name_constant(i);
  for (const uint32_t r : accesses_[i].writes)
    for (const Place32& p : places({r}))
      for (uint32_t k = 0; k < p.count; ++k)
        if (!p.predicate) written_[p.first + k] = r;
  end(op, op_end, i);
}

void Lowerer::apply_rule(uint32_t i) {
  if (fused_[i]) return;
  if (fuses_[i] != none) return fuse(fuses_[i]);
  const Latency latency = mnemonic_->facts().latency;
  if (plain_ && (latency == Latency::Division || latency == Latency::SpecialFunction)) return lower_plainly();
  const auto& lowering = mnemonic_->row->lowering;
  if (lowering.function) return lowering.function(*this);
  const instructions::TypeClasses classes = classes_of(*this);
  for (uint32_t k = 0; k < lowering.count; ++k) {
    const instructions::MachineCase& rule = lowering.cases[k];
    if ((rule.types & classes) && (!rule.modifier || has(rule.modifier))) return append(rule.code);
  }
  throw std::logic_error("the instruction table has no machine code for " + std::string(mnemonic_->text));
}

/// A division, root or special function as if it were a product.
void Lowerer::lower_plainly() {
  if (!ptx::is_float(type()))
    ptx::bytes(type()) == 8 ? halves("IMAD", "IMAD.X") : void(one("IMAD"));
  else
    one(type() == Type::F64 ? "DMUL" : type() == Type::F32 ? "FMUL" : "HMUL2");
}

/// The places of registers, but for values that those of other registers have overwritten since: in machine
/// code they would be in registers of their own, which wait for nothing.
std::vector<Place32> Lowerer::places_of_values(const std::vector<uint32_t>& registers) const {
  std::vector<Place32> result = places(registers);
  size_t k = 0;
  for (const uint32_t r : registers)
    for (const Place32& p : places({r})) {
      const auto last = written_.find(p.first);
      if (last != written_.end() && last->second != r) result[k].first = never_written;
      ++k;
    }
  return result;
}

/// An addition that absorbs the product it reads.
void Lowerer::fuse(uint32_t product) {
  const auto factors = places_of_values(accesses_[product].reads);
  const auto result = places(accesses_[product].writes)[0];
  std::erase_if(reads_, [&](const Place32& p) { return p.first == result.first; });
  reads_.insert(reads_.begin(), factors.begin(), factors.end());
  one("IMAD.WIDE");
}

void Lowerer::append(const MachineCode& code) {
  using Shape = MachineCode::Shape;
  switch (code.shape) {
    case Shape::Nothing:
      break;
    case Shape::Copy:
      copy();
      break;
    case Shape::One:
      one(code.opcodes[0]);
      break;
    case Shape::Halves:
      halves(code.opcodes[0], code.opcodes[1]);
      break;
    case Shape::Chain:
      for (uint32_t k = 0; k < code.count; ++k) link(k == 0, code.opcodes[k]);
      break;
    case Shape::Repeat:
      repeat(code.count, code.opcodes[0]);
      break;
    case Shape::Access:
      memory(code.opcodes[0], code.count);
      break;
  }
}

// --- emitting ---------------------------------------------------------------------------------------------

void Lowerer::begin() {
  first_ = static_cast<uint32_t>(result_.instructions.size());
  access_ = none;
  reads_.clear();
  writes_.clear();
}

RawInstruction& Lowerer::add(string_view sass) {
  auto known = opcode_index_.find(sass);
  if (known == opcode_index_.end()) {
    known = opcode_index_.emplace(sass, static_cast<uint32_t>(result_.opcodes.size())).first;
    result_.opcodes.emplace_back(sass);
  }
  RawInstruction raw;
  raw.pc = result_.instructions.size() * instruction_bytes;
  raw.opcode = known->second;
  raw.source_line = line_;
  result_.instructions.push_back(raw);
  return result_.instructions.back();
}

/// One instruction with the PTX instruction's reads and writes.
RawInstruction& Lowerer::one(string_view sass) {
  RawInstruction& raw = add(sass);
  for (const Place32& p : reads_) read(raw, p);
  for (const Place32& p : writes_) write(raw, p);
  return raw;
}

/// A pair of instructions for the low and high halves of 64-bit registers.
void Lowerer::halves(string_view low, string_view high) {
  for (uint32_t part = 0; part < 2; ++part) {
    RawInstruction& raw = add(part ? high : low);
    for (const Place32& p : reads_) read_part(raw, p, part);
    for (const Place32& p : writes_) write_part(raw, p, part);
  }
}

/// One of a sequence in which each instruction depends on the previous one.
void Lowerer::link(bool is_first, string_view sass) {
  RawInstruction& raw = add(sass);
  for (const Place32& p : is_first ? reads_ : writes_) read(raw, p);
  for (const Place32& p : writes_) write(raw, p);
}
void Lowerer::chain(std::initializer_list<string_view> sass) {
  for (const string_view& text : sass) link(&text == sass.begin(), text);
}
void Lowerer::repeat(uint32_t times, string_view sass) {
  for (uint32_t k = 0; k < times; ++k) link(k == 0, sass);
}

RawInstruction& Lowerer::memory(string_view sass, uint32_t bytes, AddressKind kind) {
  access_ = static_cast<uint32_t>(result_.instructions.size()) - first_;
  RawInstruction& raw = one(sass);
  raw.addresses = kind;
  raw.memory_bytes = bytes;
  return raw;
}

RawInstruction& Lowerer::barrier(string_view sass) {
  access_ = static_cast<uint32_t>(result_.instructions.size()) - first_;
  return one(sass);
}

/// A copy costs nothing: later readers in the block depend on its source instead.
void Lowerer::copy() {
  if (reads_.size() == 1 && writes_.size() == 1 && !reads_[0].predicate)
    copies_[writes_[0].first] = reads_[0];
}

void Lowerer::end(uint32_t op, uint32_t op_end, uint32_t instruction) {
  if (op >= op_end) return;
  const auto last = static_cast<uint32_t>(result_.instructions.size());
  for (uint32_t k = op; k < op_end; ++k) result_.of_op[k] = {last, 0, none};
  // Calls may copy arguments first; the access belongs to the Deferred op.
  uint32_t bearer = op;
  for (uint32_t k = op; k < op_end; ++k)
    if (program_.code[k].control == Control::Deferred) bearer = k;
  result_.of_op[bearer] = {first_, last - first_, access_};
  if (instruction == none) return;
  const auto list = [&](const std::vector<Place32>& places_of) {
    const auto at = static_cast<uint32_t>(result_.touched.size());
    for (const Place32& p : places_of)
      for (uint32_t k = 0; k < p.count; ++k)
        result_.touched.push_back(p.predicate ? predicate_flag + p.first : p.first + k);
    return Lowering::Registers{at, static_cast<uint32_t>(result_.touched.size()) - at};
  };
  // Registers that the instruction overwrites must also have received their values.
  auto touched = places(accesses_[instruction].reads);
  const auto written = places(accesses_[instruction].writes);
  touched.insert(touched.end(), written.begin(), written.end());
  const auto reads = list(touched), writes = list(written);
  for (uint32_t k = op; k < op_end; ++k) {
    result_.reads_of_op[k] = reads;
    result_.writes_of_op[k] = writes;
  }
}

Lowering lower(const Program& program, uint32_t sm_version, bool plain) {
  return Lowerer(program, sm_version, plain).run();
}

}  // namespace simt::functional
