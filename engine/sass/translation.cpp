#include "sass/translation.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <string>

#include "machine/calls.hpp"
#include "machine/launch_values.hpp"
#include "sass/instructions.hpp"
#include "sass/rows.hpp"

namespace simt::sass {

namespace {

constexpr uint32_t word_bytes = 4;

/// An address that is the sum of registers.
struct SumDetail : Detail {
  Place base = place::none, uniform = place::none;
  bool wide_base = false, wide_uniform = false;
  uint32_t scale = 1;
};

uint64_t lane(const Context& c, Place at, bool wide, uint32_t i) {
  return wide ? pair_at(row(c, at), i) : row(c, at)[i];
}

void run_sum(Context& c, const Op& op) {
  const auto& d = op.details<SumDetail>();
  map_pairs(c, op.destination, [&](uint32_t i) {
    const uint64_t base = d.base == place::none ? 0 : lane(c, d.base, d.wide_base, i) * d.scale;
    return base + (d.uniform == place::none ? 0 : lane(c, d.uniform, d.wide_uniform, i));
  });
}

std::string hexadecimal(uint32_t value) {
  char text[2 + 2 * sizeof value] = {'0', 'x'};
  return {text, std::to_chars(text + 2, std::end(text), value, 16).ptr};
}

struct BothDetail : Detail {
  Truth first, second;
};
void run_both(Context& c, const Op& op) {
  const auto& d = op.details<BothDetail>();
  write_predicate(c, op.destination, d.first.bits(c) & d.second.bits(c));
}

}  // namespace

Place Frame::general(uint32_t index) const {
  return place::frame | index * place::register_bytes;
}
Place Frame::nowhere() const {
  return general(registers);
}
Place Frame::uniform(uint32_t index) const {
  return general(registers + spare + index);
}
Place Frame::barrier(uint32_t index) const {
  return uniform(uniforms + index);
}
Place Frame::predicate(uint32_t index) const {
  return barrier(barriers) + index * word_bytes;
}
Place Frame::uniform_predicate(uint32_t index) const {
  return predicate(8 + index);
}
Place Frame::reduced_truth() const {
  return predicate(16);
}
Place Frame::reduced_count() const {
  return barrier(barriers + 1);
}
Place Frame::reported() const {
  return barrier(barriers + 2);
}
Place Frame::after_collective() const {
  return barrier(barriers + 4);
}
Place Frame::scratch() const {
  return barrier(barriers + 6);
}
uint32_t Frame::bytes(uint32_t scratch_rows) const {
  return scratch() + scratch_rows * place::register_bytes;
}

Frame Frame::joined(const Frame& other) const {
  return {std::max(registers, other.registers), std::max(uniforms, other.uniforms),
          std::max(barriers, other.barriers)};
}

Translation::Translation(const Module& module, Translated& result)
    : BasicTranslation(result.program), module_(module), result_(result), sm_(module.sm) {}

void Translation::begin(uint32_t section, uint32_t index) {
  section_ = section;
  index_ = index;
  line_ = &module_.sections[section].lines[index];
  const std::string_view text = line_->opcode;
  row_ = &opcode_row(text);
  modifiers_.clear();
  for (size_t dot = text.find('.'); dot != std::string_view::npos;) {
    const size_t next = text.find('.', dot + 1);
    modifiers_.push_back(text.substr(dot + 1, next - dot - 1));
    dot = next;
  }
  BasicTranslation::begin(modifiers_);
  placed_ = looked_at_ = 0;
  raw_ = {};
  leaves_ = false;
  raw_.source_line = line_->source_line;
  timed_opcode_ = line_->opcode;
  raw_.control = ControlBits::of(line_->high);
  bearer_ = UINT32_MAX;
  reads_.clear();
  writes_.clear();
  parameter_words_.clear();
  scratch_now_ = 0;
  guard_ = {};
  operands_.clear();
  try {
    for (const std::string& operand : line_->operands) operands_.push_back(parse_operand(operand));
    // nvdisasm writes P2R's register file before the opcode.
    if (line_->predicate == "PR" || line_->predicate == "UPR") {
      Operand file;
      file.text = line_->predicate;
      if (operands_.empty()) unsupported("it has no operands");
      operands_.insert(operands_.begin() + 1, file);
    } else if (!line_->predicate.empty()) {
      const Operand guard = parse_operand(std::string_view(line_->predicate).substr(1));
      const bool uniform = guard.kind == OperandKind::UniformPredicate;
      if (!uniform && guard.kind != OperandKind::Predicate) unsupported("its guard is no predicate");
      if (guard.index != Operand::true_predicate) {
        note(false, uniform ? RegisterFile::UniformPredicate : RegisterFile::Predicate, guard.index, 1);
        guard_ = {uniform ? frame_.uniform_predicate(guard.index) : frame_.predicate(guard.index),
                  guard.negated};
      } else if (guard.negated) {
        guard_ = {constant({0}), false};
      }
    }
  } catch (const std::invalid_argument& error) {
    unsupported(error.what());
  }
}

void Translation::begin_system_function(size_t instruction) {
  // It runs in the frame of whichever section calls it: all begin with the general registers.
  section_ = 0;
  index_ = static_cast<uint32_t>(instruction - section_begin_[0]);
  frame_.registers = Operand::zero;
  guard_ = {};
  operands_.clear();
  scratch_now_ = 0;
}

AccessSpace Translation::space() const {
  switch (what().space) {
    case MemorySpace::Global:
      return AccessSpace::Global;
    case MemorySpace::Shared:
      return AccessSpace::Shared;
    case MemorySpace::Local:
      return AccessSpace::Local;
    default:
      return AccessSpace::Generic;
  }
}

void Translation::take_all() {
  take_all_modifiers();
  looked_at_ = ~uint64_t{0};
}

const Operand& Translation::at(uint32_t index) const {
  if (index >= operands_.size())
    unsupported("it has " + std::to_string(operands_.size()) + " operands, expected more");
  return operands_[index];
}

const Operand& Translation::operand(uint32_t index) const {
  const Operand& result = at(index);
  looked_at_ |= uint64_t{1} << index;
  return result;
}

const Operand& Translation::placed(uint32_t index) {
  const Operand& result = at(index);
  placed_ |= uint64_t{1} << index;
  return result;
}

void Translation::check_all_used() const {
  if (const std::string_view left = untaken(); !left.empty())
    unsupported("the modifier ." + std::string(left) + " is not supported");
  for (uint32_t k = 0; k < operands_.size(); ++k) {
    if (looked_at_ >> k & 1) continue;
    const Operand& o = operands_[k];
    if (!(placed_ >> k & 1)) unsupported("operand `" + written(k) + "` is not expected");
    if (o.negated || o.absolute || o.inverted || !o.suffixes.empty())
      unsupported("the form of operand `" + written(k) + "` is not supported");
  }
}

bool Translation::is(uint32_t index, OperandKind kind) const {
  return index < operands_.size() && operands_[index].kind == kind;
}

bool Translation::is_predicate(uint32_t index) const {
  return is(index, OperandKind::Predicate) || is(index, OperandKind::UniformPredicate);
}

void Translation::note(bool written, RegisterFile file, uint32_t index, uint32_t words) {
  const bool predicate = file == RegisterFile::Predicate || file == RegisterFile::UniformPredicate;
  if (index == (predicate ? Operand::true_predicate : Operand::zero)) return;
  const uint32_t flag = file == RegisterFile::General     ? 0
                        : file == RegisterFile::Uniform   ? uniform_flag
                        : file == RegisterFile::Predicate ? predicate_flag
                                                          : uniform_predicate_flag;
  for (uint32_t k = 0; k < words; ++k) (written ? writes_ : reads_).push_back(flag + index + k);
  uint8_t& count = written ? raw_.destination_count : raw_.source_count;
  auto& list = written ? raw_.destinations : raw_.sources;
  if (count == StaticInstruction::max_registers) return;
  if (!written) raw_.source_slots[count] = static_cast<uint8_t>(slot_);
  Register& r = list[count++];
  r.index = static_cast<uint16_t>(index);
  r.file = file;
  r.width = static_cast<uint8_t>(words);
}

std::string Translation::written(uint32_t index) const {
  // P2R's register file is not among the operands that nvdisasm writes.
  const uint32_t added = static_cast<uint32_t>(operands_.size() - line_->operands.size());
  if (added && index == 1) return line_->predicate;
  return line_->operands[index - (index > 1 ? added : 0)];
}

Place Translation::constant(std::initializer_list<uint32_t> words) {
  const std::vector<uint32_t> key(words);
  const auto [known, is_new] = constants_.try_emplace(key);
  if (!is_new) return known->second;
  auto word = key.begin();
  known->second = append_constant(*word, word_bytes);  // the other rows follow it
  while (++word != key.end()) append_constant(*word, word_bytes);
  return known->second;
}

Place Translation::launch_row(uint32_t bank, uint32_t offset, uint32_t words) {
  const uint32_t parameters = functional::parameters_begin(sm_);
  constexpr uint32_t parameter_word = 8;
  for (uint32_t at = offset; bank == 0 && at < offset + words * word_bytes; at += word_bytes)
    if (at >= parameters) parameter_words_.push_back((at - parameters) / parameter_word);
  const auto known = launch_rows_.find({bank, offset, words});
  if (known != launch_rows_.end()) return known->second;
  const Place result = place::launch | static_cast<Place>(constant_words_.size() * place::register_bytes);
  for (uint32_t k = 0; k < words; ++k) constant_words_.push_back(constant_at(bank, offset + k * word_bytes));
  launch_rows_[{bank, offset, words}] = result;
  return result;
}

functional::ConstantWord Translation::constant_at(uint32_t bank, uint32_t offset) {
  using functional::LaunchValue;
  if (bank != 0 || offset >= functional::parameters_begin(sm_)) return {bank, offset};
  const auto value = functional::launch_value_at(sm_, offset);
  if (!value)
    unsupported("what sm_" + std::to_string(sm_) + " holds in c[0x0][" + hexadecimal(offset) +
                "] is not known");
  program().asks_for_workspace |= *value == LaunchValue::BarrierHigh || *value == LaunchValue::BarrierLow;
  return {functional::launch_value_bank, static_cast<uint32_t>(*value)};
}

Place Translation::general(uint32_t index, uint32_t words, bool written) {
  note(written, RegisterFile::General, index, words);
  if (index != Operand::zero) {
    if (index + words > frame_.registers + Frame::spare) unsupported("a register beyond those of the kernel");
    return frame_.general(index);
  }
  if (written && words > Frame::spare) unsupported("a result of so many registers that goes nowhere");
  if (written) return frame_.nowhere();
  return constant({0, 0, 0, 0});
}

Place Translation::uniform(uint32_t index, uint32_t words) {
  note(false, RegisterFile::Uniform, index, words);
  return index == Operand::zero ? constant({0, 0, 0, 0}) : frame_.uniform(index);
}

Place Translation::value(uint32_t index, uint32_t words, bool is_double) {
  const Operand& o = placed(index);
  slot_ = slot_of(index);
  switch (o.kind) {
    case OperandKind::Register:
      return general(o.index, words, false);
    case OperandKind::Uniform:
      return uniform(o.index, words);
    case OperandKind::Constant: {
      if (o.base != Operand::none || o.uniform != Operand::none) unsupported("an indexed constant");
      if (o.bank >= functional::ConstantBanks::count) unsupported("a constant bank above 7");
      if (o.bank == 0 && raw_.constant_operand == StaticInstruction::no_constant)
        raw_.constant_operand = static_cast<uint32_t>(o.value);
      return launch_row(o.bank, static_cast<uint32_t>(o.value), words);
    }
    case OperandKind::Number:
      return is_double ? constant({0, immediate_bits()}) : constant({immediate_bits()});
    case OperandKind::Integer: {
      const auto bits = static_cast<uint64_t>(o.value);
      if (is_double) return constant({0, immediate_bits()});
      return words == 2 ? constant({static_cast<uint32_t>(bits), static_cast<uint32_t>(bits >> 32)})
                        : constant({static_cast<uint32_t>(bits)});
    }
    case OperandKind::Address:
      return constant({immediate_bits()});
    default:
      unsupported("operand `" + written(index) + "`");
  }
}

Place Translation::source(uint32_t index, uint32_t words) {
  return value(index, words, false);
}

Place Translation::source_double(uint32_t index) {
  return value(index, 2, true);
}

Place Translation::destination(uint32_t index, uint32_t words) {
  const Operand& o = placed(index);
  if (o.kind == OperandKind::Register) return general(o.index, words, true);
  if (o.kind != OperandKind::Uniform) unsupported("its destination is no register");
  note(true, RegisterFile::Uniform, o.index, words);
  return o.index == Operand::zero ? frame_.nowhere() : frame_.uniform(o.index);
}

uint32_t Translation::slot_of(uint32_t index) const {
  // Slots count the operands that are registers, constants or immediates, without the destination.
  uint32_t slot = 0;
  for (uint32_t k = 0; k < index; ++k) slot += !is_predicate(k);
  const bool writes_first = !operands_.empty() && operands_[0].kind != OperandKind::Memory;
  return std::min(3u, slot - (writes_first && slot ? 1 : 0));
}

PredicateOperand Translation::predicate(uint32_t index) {
  const Operand& o = operand(index);
  if (!is_predicate(index)) unsupported("operand `" + written(index) + "` is no predicate");
  if (o.index == Operand::true_predicate) return {constant({functional::full_mask}), o.negated};
  const bool uniform = o.kind == OperandKind::UniformPredicate;
  note(false, uniform ? RegisterFile::UniformPredicate : RegisterFile::Predicate, o.index, 1);
  return {uniform ? frame_.uniform_predicate(o.index) : frame_.predicate(o.index), o.negated};
}

uint32_t Translation::take_condition() {
  const uint32_t first = is_predicate(0) ? 1 : 0, last = operand_count() - 1;
  if (first)
    also_guarded_by(predicate(0));
  else if (operand_count() > 1 && is_predicate(last))
    also_guarded_by(predicate(last));
  return first;
}

void Translation::also_guarded_by(PredicateOperand condition) {
  if (guard_.place == place::none) {
    guard_ = condition;
    return;
  }
  Op& both = emit(run_both);
  both.guard = place::none;
  both.guard_negated = false;
  both.destination = scratch(1);
  const Place result = both.destination;
  auto& d = detail<BothDetail>();
  d.first = guard_;
  d.second = condition;
  guard_ = {result, false};
}

Place Translation::predicate_destination(uint32_t index) {
  const Operand& o = placed(index);
  if (!is_predicate(index)) unsupported("operand `" + written(index) + "` is no predicate");
  const bool uniform = o.kind == OperandKind::UniformPredicate;
  note(true, uniform ? RegisterFile::UniformPredicate : RegisterFile::Predicate, o.index, 1);
  return uniform ? frame_.uniform_predicate(o.index) : frame_.predicate(o.index);
}

Place Translation::predicate_by_number(uint32_t index, bool uniform, bool written) {
  note(written, uniform ? RegisterFile::UniformPredicate : RegisterFile::Predicate, index, 1);
  return uniform ? frame_.uniform_predicate(index) : frame_.predicate(index);
}

Place Translation::barrier(uint32_t index) {
  const Operand& o = placed(index);
  if (o.kind != OperandKind::Convergence) unsupported("operand `" + written(index) + "` is no barrier");
  return frame_.barrier(o.index);
}

int64_t Translation::integer(uint32_t index) const {
  if (operand(index).kind != OperandKind::Integer)
    unsupported("operand `" + written(index) + "` is no integer");
  return operand(index).value;
}

Address Translation::address(uint32_t index, bool narrow) {
  const Operand& o = operand(index);
  if (o.kind != OperandKind::Memory || !o.base_suffixes.empty())
    unsupported("operand `" + written(index) + "` is no address");
  slot_ = slot_of(index);
  // Without a descriptor, .E marks 64-bit registers; Turing has none, and does not write .64 after uniform
  // ones. Nor does Blackwell where an address has no descriptor.
  constexpr uint32_t first_with_descriptors = 80, blackwell = 100;
  const bool extended = has("E") && !narrow;
  const bool unmarked = sm_ < first_with_descriptors || (sm_ >= blackwell && o.descriptor == Operand::none);
  const bool wide_uniform = o.wide_uniform || (extended && unmarked && o.uniform != Operand::none);
  const bool wide = o.wide_base || wide_uniform || (extended && o.base != Operand::none);
  const bool wide_base = o.wide_base || (wide && !o.unsigned_base && !wide_uniform);
  Address result;
  result.offset = o.value;
  const auto base = [&](bool two) {
    return o.base == Operand::none ? place::none : general(o.base, two ? 2 : 1, false);
  };
  const auto uniform = [&](bool two) {
    if (o.uniform == Operand::none || o.uniform == Operand::zero) return place::none;
    note(false, RegisterFile::Uniform, o.uniform, two ? 2 : 1);
    return frame_.uniform(o.uniform);
  };
  const Place b = base(wide_base), u = uniform(wide_uniform);
  result.base = wide ? Address::Base::Pair : Address::Base::Narrow;
  if (u == place::none && o.scale == 1 && (wide_base || !wide)) {
    result.place = b == place::none ? constant({0, 0}) : b;
  } else if (b == place::none && wide_uniform == wide) {
    result.place = u;
  } else {
    result.place = scratch(2);
    emit(run_sum).destination = result.place;
    auto& d = detail<SumDetail>();
    d.base = b;
    d.uniform = u;
    d.wide_base = wide_base;
    d.wide_uniform = wide_uniform;
    d.scale = o.scale;
  }
  return result;
}

Address Translation::own_address(uint32_t index, bool narrow) {
  Address result = address(index, narrow);
  if (result.base == Address::Base::Narrow) result.base = Address::Base::Own;
  return result;
}

uint64_t Translation::section_address() const {
  return functional::machine_code_window + functional::instruction_bytes * section_begin_[section_];
}

uint64_t Translation::code_address() const {
  return section_address() + functional::instruction_bytes * index_;
}

uint64_t Translation::target(uint32_t index) const {
  const Operand& o = operand(index);
  if (o.kind == OperandKind::Integer) return section_address() + static_cast<uint64_t>(o.value);
  const auto known = o.kind == OperandKind::Name ? functions_.find(o.text) : functions_.end();
  if (known == functions_.end()) unsupported("operand `" + written(index) + "` is no address of code");
  return known->second;
}

Place Translation::scratch(uint32_t words) {
  const Place result = frame_.scratch() + scratch_now_ * place::register_bytes;
  scratch_now_ += words;
  scratch_rows_ = std::max(scratch_rows_, scratch_now_);
  return result;
}

Op& Translation::emit(Handler handler, Control control) {
  return append(handler, control, guard_,
                {section_, static_cast<uint32_t>(section_begin_[section_] + index_)});
}

PredicateOperand Translation::take_guard(Op& op) {
  const PredicateOperand guard{op.guard, op.guard_negated};
  op.guard = place::none;
  op.guard_negated = false;
  return guard.place == place::none ? PredicateOperand{constant({functional::full_mask}), false} : guard;
}

void Translation::accesses(uint32_t bytes, AddressKind kind) {
  bearer_ = static_cast<uint32_t>(program().code.size() - 1);
  raw_.addresses = kind;
  raw_.memory_bytes = bytes;
  for (const Operand& o : operands_)
    if (o.text == "desc" && holds_policy(o.descriptor))
      program().code.back().policy = frame_.uniform(o.descriptor + 1);
}

/// Whether a pair of uniform registers holds a cache policy: not if the instruction that last wrote it, in
/// the order of the code, loaded the descriptor that a launch has in constant bank 0 before its parameters.
bool Translation::holds_policy(uint32_t descriptor) const {
  if (descriptor == Operand::zero) return false;
  const Section& section = module_.sections[section_];
  const std::string low = "UR" + std::to_string(descriptor), high = "UR" + std::to_string(descriptor + 1);
  for (uint32_t i = index_; i-- > 0;) {
    const Line& line = section.lines[i];
    const auto writes = [&](size_t k) {
      return k < line.operands.size() && (line.operands[k] == low || line.operands[k] == high);
    };
    if (!writes(0) && !(writes(1) && line.operands[0].starts_with("UP"))) continue;
    const bool pair = has_modifiers(line.opcode, "64");
    constexpr std::string_view bank = "c[0x0][0x";
    if (!pair || line.operands.size() < 2 || !line.operands[1].starts_with(bank)) return true;
    const std::string_view offset = std::string_view(line.operands[1]).substr(bank.size());
    uint32_t at = 0;
    std::from_chars(offset.data(), offset.data() + offset.size(), at, 16);
    return at >= section.constants->parameters;
  }
  return false;
}

std::optional<uint32_t> Translation::number_in_uniform(uint32_t index) const {
  for (uint32_t i = index_; i-- > 0;) {
    const Line& line = module_.sections[section_].lines[i];
    for (size_t k = 0; k < std::min<size_t>(line.operands.size(), 2); ++k) {
      const std::string& name = line.operands[k];
      if (k == 1 && !line.operands[0].starts_with("UP")) break;
      if (!name.starts_with("UR") || name == "URZ") continue;
      const uint32_t words = has_modifiers(line.opcode, "256")   ? 8
                             : has_modifiers(line.opcode, "128") ? 4
                             : has_modifiers(line.opcode, "64")  ? 2
                                                                 : 1;
      uint32_t first = 0;
      std::from_chars(name.data() + 2, name.data() + name.size(), first);
      if (index - first >= words) continue;
      if (line.opcode != "UMOV" || !line.predicate.empty()) return std::nullopt;
      const Operand value = parse_operand(line.operands[1]);
      if (value.kind != OperandKind::Integer) return std::nullopt;
      return static_cast<uint32_t>(value.value);
    }
  }
  return std::nullopt;
}

void Translation::order_matters() {
  program().functions[section_].order_sensitive = true;
}

void Translation::unsupported(const std::string& why) const {
  char address[16];
  std::snprintf(address, sizeof address, "0x%04x", index_ * functional::instruction_bytes);
  const functional::Program& p = result_.program;
  throw CodeError(module_.name + ": " + module_.sections[section_].name + "+" + address + ": " +
                  p.listing.lines[section_begin_[section_] + index_].text + ": " + why);
}

}  // namespace simt::sass
