#include "isa/classify.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "isa/opcode.hpp"
#include "isa/tensor_shape.hpp"

namespace simt {
namespace {

constexpr int64_t barriers_per_cta = 16;
constexpr uint32_t register_bytes = 4;

using Tokens = std::vector<std::string_view>;

Tokens split(std::string_view opcode) {
  Tokens tokens;
  while (true) {
    const size_t dot = opcode.find('.');
    tokens.push_back(opcode.substr(0, dot));
    if (dot == std::string_view::npos) return tokens;
    opcode.remove_prefix(dot + 1);
  }
}

bool has(const Tokens& tokens, std::string_view token) {
  return std::find(tokens.begin() + 1, tokens.end(), token) != tokens.end();
}

std::optional<uint32_t> number(std::string_view text) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Bits of a type token: 128, U8, S16, F64, B32.
std::optional<uint32_t> type_bits(std::string_view token) {
  if (!token.empty() && std::string_view("USFB").find(token[0]) != std::string_view::npos)
    token.remove_prefix(1);
  const auto bits = number(token);
  if (bits && (*bits == 8 || *bits == 16 || *bits == 32 || *bits == 64 || *bits == 128 || *bits == 256))
    return bits;
  return std::nullopt;
}

bool is_memory(Operation operation) {
  switch (operation) {
    case Operation::Load:
    case Operation::Store:
    case Operation::Atomic:
    case Operation::Reduction:
    case Operation::AsyncCopy:
    case Operation::BulkLoad:
    case Operation::BulkStore:
    case Operation::MbarrierArrive:
    case Operation::MbarrierWait:
      return true;
    default:
      return false;
  }
}

/// Nothing if neither the row nor a modifier says.
std::optional<uint8_t> stated_access_bytes(const OpcodeRow& row, const Tokens& tokens) {
  if (row.also.access == Access::MatrixRows) return 16;
  if (row.also.access == Access::Mbarrier) return 8;
  for (size_t i = 1; i < tokens.size(); ++i)
    if (const auto bits = type_bits(tokens[i])) return static_cast<uint8_t>(*bits / 8);
  return std::nullopt;
}

// The opcode determines the access width. The width that the tracer writes can be wrong and is used only for
// unknown opcodes.
uint8_t access_bytes(const RawInstruction& raw, const OpcodeRow& row, const Tokens& tokens, bool known) {
  const bool traced = !known && raw.memory_bytes <= 32;
  return stated_access_bytes(row, tokens)
      .value_or(traced ? static_cast<uint8_t>(raw.memory_bytes) : register_bytes);
}

uint8_t registers_for(uint32_t bytes) {
  return static_cast<uint8_t>(std::max<uint32_t>(1, (bytes + register_bytes - 1) / register_bytes));
}

void set_widths(StaticInstruction& s, uint8_t destination, std::initializer_list<uint8_t> sources) {
  for (int i = 0; i < s.destination_count; ++i) s.destinations[i].width = destination;
  int i = 0;
  for (const uint8_t width : sources) {
    if (i == s.source_count) break;
    s.sources[i++].width = width;
  }
}

void set_pairs(StaticInstruction& s) {
  const auto widen = [](Register& r) {
    if (r.file == RegisterFile::General || r.file == RegisterFile::Uniform) r.width = 2;
  };
  for (int i = 0; i < s.destination_count; ++i) widen(s.destinations[i]);
  for (int i = 0; i < s.source_count; ++i) widen(s.sources[i]);
}

void set_memory_widths(StaticInstruction& s, const OpcodeRow& row, const Tokens& tokens) {
  uint8_t data = registers_for(s.access_bytes);
  if (row.also.access == Access::MatrixRows) {
    data = 1;
    for (const auto token : tokens)
      if (token == "2" || token == "4") data = static_cast<uint8_t>(token[0] - '0');
  }
  for (int i = 0; i < s.destination_count; ++i)
    if (s.destinations[i].file == RegisterFile::General) s.destinations[i].width = data;
  // The base register comes first, then the data. LDGSTS has two address registers and no data.
  // Addresses of constants are those of executed programs, in PTX's 64 bits.
  const bool wide_address = has(tokens, "E") || s.space == MemorySpace::Constant;
  for (int i = 0; i < s.source_count; ++i) {
    Register& source = s.sources[i];
    if (source.file != RegisterFile::General) continue;
    if (s.operation == Operation::AsyncCopy)
      source.width = i == 0 ? 1 : 2;
    else if (i == 0)
      source.width = wide_address ? 2 : 1;
    else
      source.width = data;
  }
  if (s.operation == Operation::AsyncCopy && s.source_count == 1) s.sources[0].width = 2;
}

// Widths of registers that are wider than 32 bits, as far as the opcode determines them. If fewer sources are
// listed than the opcode has (constants, immediates and uniform registers are not listed), it is unknown
// which are missing, and the width is 1.
void set_arithmetic_widths(StaticInstruction& s, const OpcodeRow& row, std::string_view opcode,
                           const Tokens& tokens) {
  if (s.unit == Unit::Tensor) {
    const auto product = product_registers(opcode);
    if (!product) return;
    if (row.also.warp_group && s.source_count == 1)
      set_widths(s, product->c, {product->c});
    else if (row.also.warp_group)
      set_widths(s, product->c, {product->a, product->c});
    else
      set_widths(s, product->c, {product->a, product->b, product->c});
    return;
  }
  if (s.unit == Unit::Fp64) return set_widths(s, 2, {2, 2, 2});
  switch (row.also.widths) {
    case Widths::Single:
      return;
    case Widths::Pair:
      return set_widths(s, has(tokens, "32") ? 1 : 2, {});
    case Widths::WideProduct:
      if (has(tokens, "WIDE")) set_widths(s, 2, {1, 1, 2});
      return;
    case Widths::Pairs:
      return set_pairs(s);
    case Widths::PairsBy64:
      if (has(tokens, "64") || has(tokens, "S64") || has(tokens, "U64")) set_pairs(s);
      return;
    case Widths::ToType:
    case Widths::FromType:
    case Widths::SameType:
      break;
  }
  // F2F.F64.F32 writes the first type and reads the second; F2I.F64 and I2F.F64 name the wide side.
  std::vector<uint32_t> bits;
  for (size_t i = 1; i < tokens.size(); ++i)
    if (const auto b = type_bits(tokens[i])) bits.push_back(*b);
  const auto registers = [](uint32_t b) { return static_cast<uint8_t>(b == 64 ? 2 : 1); };
  if (bits.size() >= 2)
    set_widths(s, registers(bits[0]), {registers(bits[1])});
  else if (bits.empty())
    return;
  else if (row.also.widths == Widths::FromType && tokens[1][0] == 'F')
    set_widths(s, 1, {registers(bits[0])});
  else if (row.also.widths == Widths::SameType)
    set_widths(s, registers(bits[0]), {registers(bits[0])});
  else
    set_widths(s, registers(bits[0]), {1});
}

/// .EF stands for .cs, whose lines are evicted first from L1 and L2, and for .L1::evict_first; .LU on global
/// memory is the same (PTX). The others are of the L1.
void set_eviction(StaticInstruction& s, const Tokens& tokens) {
  if (has(tokens, "EF") || has(tokens, "LU"))
    s.l1_eviction = s.l2_eviction = Eviction::First;
  else if (has(tokens, "EL"))
    s.l1_eviction = Eviction::Last;
  else if (has(tokens, "EU"))
    s.l1_eviction = Eviction::Unchanged;
  else if (has(tokens, "NA"))
    s.l1_eviction = Eviction::NoAllocate;
}

void refine_by_modifiers(StaticInstruction& s, const OpcodeRow& row, std::string_view opcode,
                         const Tokens& tokens) {
  s.operation = row.also.operations.of(opcode, s.operation);
  // Tracers before version 6 keep only the last immediate. If it was the only one, it is the barrier's
  // number; otherwise it is the number of threads, and the barrier is only known not to be number 0.
  if (s.is_barrier() && (s.immediate >= barriers_per_cta || s.immediate < 0)) {
    s.immediate2 = std::max<int64_t>(s.immediate, 0);
    s.immediate = 1;
  }
  if (s.space == MemorySpace::Global || s.space == MemorySpace::Generic) set_eviction(s, tokens);
  const bool strong = has(tokens, "STRONG") && (has(tokens, "GPU") || has(tokens, "SYS"));
  switch (s.operation) {
    case Operation::Load:
    case Operation::Store:
      s.bypass_l1 = strong || has(tokens, "CG") || has(tokens, "CV") || has(tokens, "MMIO");
      break;
    case Operation::AsyncCopy:
      s.bypass_l1 = strong || has(tokens, "BYPASS");
      break;
    case Operation::Atomic:
    case Operation::Reduction:
      s.bypass_l1 = s.space != MemorySpace::Shared;
      break;
    case Operation::MemoryBarrier:
      s.bypass_l1 = row.also.scoped_fence && !has(tokens, "CTA") && !has(tokens, "SM");
      break;
    default:
      break;
  }
}

}  // namespace

uint32_t lane_access_bytes(std::string_view opcode) {
  return stated_access_bytes(opcode_row(opcode), split(opcode)).value_or(register_bytes);
}

std::vector<StaticInstruction> classify(const std::vector<RawInstruction>& raw,
                                        const std::vector<std::string>& opcodes, const OpcodeTable& table,
                                        std::map<std::string, std::string>& unknown) {
  std::vector<StaticInstruction> instructions;
  instructions.reserve(raw.size());
  bool has_async_groups = false;
  for (const RawInstruction& r : raw) {
    const std::string_view opcode = opcodes.at(r.opcode);
    const Tokens tokens = split(opcode);
    const OpcodeRow& row = opcode_row(opcode);
    const bool has_addresses = r.addresses != AddressKind::None;
    const OpcodeTable::Match match = table.find(tokens[0], has_addresses, r.destination_count > 0);
    if (!match.exact) unknown.emplace(tokens[0], match.nearest);
    StaticInstruction s;
    s.pc = r.pc;
    s.opcode = r.opcode;
    s.source_line = r.source_line;
    s.immediate = r.immediate;
    s.immediate2 = r.immediate2;
    s.constant_operand = r.constant_operand;
    s.destination_count = r.destination_count;
    s.source_count = r.source_count;
    s.destinations = r.destinations;
    s.sources = r.sources;
    s.source_slots = r.source_slots;
    s.control = r.control;
    s.commits_group = r.commits_group;
    s.unit = match.opcode_class.unit;
    s.operation = match.opcode_class.operation;
    s.space = match.opcode_class.space;
    s.half_precision = match.opcode_class.half_precision;
    refine_by_modifiers(s, row, opcode, tokens);
    if (has_addresses && is_memory(s.operation)) s.access_bytes = access_bytes(r, row, tokens, match.exact);
    const bool load_store = s.unit == Unit::Memory || s.space == MemorySpace::Constant;
    if (s.control.present()) {
      // The widths are those of the machine code.
    } else if (load_store && is_memory(s.operation) && s.access_bytes != 0)
      set_memory_widths(s, row, tokens);
    else
      set_arithmetic_widths(s, row, opcode, tokens);
    has_async_groups |= s.operation == Operation::AsyncCommit;
    instructions.push_back(s);
  }
  // DEPBAR.LE also waits for ordinary scoreboards; without groups of asynchronous copies, it does nothing
  // else.
  if (!has_async_groups)
    for (StaticInstruction& s : instructions)
      if (s.operation == Operation::AsyncWait) s.operation = Operation::Arithmetic;
  return instructions;
}

}  // namespace simt
