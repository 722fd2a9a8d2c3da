#include "isa/classify.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

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

// The opcode determines the access width. The width that the tracer writes can be wrong and is used only for
// unknown opcodes.
uint8_t access_bytes(const RawInstruction& raw, const Tokens& tokens, bool known) {
  if (tokens[0] == "LDSM" || tokens[0] == "STSM")
    return 16;  // each address names a row of eight 16-bit elements
  if (tokens[0] == "SYNCS") return 8;
  for (size_t i = 1; i < tokens.size(); ++i)
    if (const auto bits = type_bits(tokens[i])) return static_cast<uint8_t>(*bits / 8);
  if (!known && raw.memory_bytes <= 32) return static_cast<uint8_t>(raw.memory_bytes);
  return 4;
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

// Vector widths of one matrix multiply-accumulate, in registers per lane: A, B and C/D.
struct MatrixWidths {
  uint8_t a, b, c;
};

std::optional<MatrixWidths> matrix_widths(const Tokens& tokens) {
  std::string_view shape;
  for (const auto token : tokens)
    if (const auto n = number(token); n && *n > 256) shape = token;
  const bool f32 = has(tokens, "F32");
  const bool narrow = has(tokens, "S4") || has(tokens, "U4");
  const bool tf32 = has(tokens, "TF32");
  const std::string_view op = tokens[0];
  const uint8_t c = f32 ? 4 : 2;
  if (has(tokens, "SP")) {
    // A has half of k, so as many registers as B.
    const bool wide = shape == (op == "HMMA" ? tf32 ? "16816" : "16832" : narrow ? "168128" : "16864");
    const uint8_t ab = wide ? 4 : 2;
    return MatrixWidths{ab, ab, op == "IMMA" ? uint8_t{4} : c};
  }
  if (op == "HMMA") {
    if (shape == "884") return MatrixWidths{2, 2, 2};
    if (shape == "1684") return MatrixWidths{2, 1, 4};
    if (shape == "1688") return tf32 ? MatrixWidths{4, 2, 4} : MatrixWidths{2, 1, c};
    if (shape == "16816") return MatrixWidths{4, 2, c};
  } else if (op == "QMMA") {
    if (shape == "16816") return MatrixWidths{2, 1, c};
    if (shape == "16832") return MatrixWidths{4, 2, c};
  } else if (op == "IMMA") {
    if (shape == "8816" || shape == "8832") return MatrixWidths{1, 1, 2};
    if (shape == "16816") return MatrixWidths{2, 1, 4};
    if (shape == "16832") return narrow ? MatrixWidths{2, 1, 4} : MatrixWidths{4, 2, 4};
    if (shape == "16864") return MatrixWidths{4, 2, 4};
  } else if (op == "BMMA") {
    if (shape == "88128") return MatrixWidths{1, 1, 2};
    if (shape == "168128") return MatrixWidths{2, 1, 4};
    if (shape == "168256") return MatrixWidths{4, 2, 4};
  } else if (op == "DMMA") {
    return MatrixWidths{2, 2, 4};
  }
  return std::nullopt;
}

// Accumulator registers of a warp-group multiply such as HGMMA.64x128x16.F32: 64 x N values over 128 lanes.
std::optional<uint8_t> warp_group_accumulators(const Tokens& tokens) {
  for (const auto token : tokens) {
    const size_t first = token.find('x');
    if (first == std::string_view::npos) continue;
    const size_t second = token.find('x', first + 1);
    if (second == std::string_view::npos) continue;
    const auto n = number(token.substr(first + 1, second - first - 1));
    if (n && *n >= 8 && *n <= 256) return static_cast<uint8_t>(has(tokens, "F16") ? *n / 4 : *n / 2);
  }
  return std::nullopt;
}

void set_memory_widths(StaticInstruction& s, const Tokens& tokens) {
  uint8_t data = registers_for(s.access_bytes);
  if (tokens[0] == "LDSM" || tokens[0] == "STSM") {
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
void set_arithmetic_widths(StaticInstruction& s, const Tokens& tokens) {
  const std::string_view op = tokens[0];
  if (s.unit == Unit::Tensor) {
    if (const auto m = matrix_widths(tokens)) {
      set_widths(s, m->c, {m->a, m->b, m->c});
    } else if (const auto accumulators = warp_group_accumulators(tokens)) {
      if (s.source_count == 1)
        set_widths(s, *accumulators, {*accumulators});
      else
        set_widths(s, *accumulators, {4, *accumulators});
    }
  } else if (s.unit == Unit::Fp64) {
    set_widths(s, 2, {2, 2, 2});
  } else if ((op == "IMAD" || op == "UIMAD") && has(tokens, "WIDE")) {
    set_widths(s, 2, {1, 1, 2});
  } else if (op == "CS2R") {
    set_widths(s, has(tokens, "32") ? 1 : 2, {});
  } else if (op == "F2F" || op == "F2I" || op == "I2F" || op == "I2I" || op == "FRND") {
    // F2F.F64.F32 writes the first type and reads the second; F2I.F64 and I2F.F64 name the
    // wide side.
    std::vector<uint32_t> bits;
    for (size_t i = 1; i < tokens.size(); ++i)
      if (const auto b = type_bits(tokens[i])) bits.push_back(*b);
    const auto registers = [](uint32_t b) { return static_cast<uint8_t>(b == 64 ? 2 : 1); };
    if (bits.size() >= 2)
      set_widths(s, registers(bits[0]), {registers(bits[1])});
    else if (bits.size() == 1 && op == "F2I" && tokens[1][0] == 'F')
      set_widths(s, 1, {registers(bits[0])});
    else if (bits.size() == 1 && op == "FRND")
      set_widths(s, registers(bits[0]), {registers(bits[0])});
    else if (bits.size() == 1)
      set_widths(s, registers(bits[0]), {1});
  }
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

void refine_by_modifiers(StaticInstruction& s, const Tokens& tokens) {
  const std::string_view op = tokens[0];
  if (op == "BAR") {
    if (has(tokens, "ARV")) s.operation = Operation::BarrierArrive;
    // Tracers before version 6 keep only the last immediate. If it was the only one, it is the barrier's
    // number; otherwise it is the number of threads, and the barrier is only known not to be number 0.
    if (s.immediate >= barriers_per_cta || s.immediate < 0) {
      s.immediate2 = std::max<int64_t>(s.immediate, 0);
      s.immediate = 1;
    }
  } else if (op == "DEPBAR") {
    if (!has(tokens, "LE")) s.operation = Operation::Arithmetic;
  } else if (op == "SYNCS") {
    if (has(tokens, "PHASECHK"))
      s.operation = Operation::MbarrierWait;
    else if (has(tokens, "ARRIVE"))
      s.operation = Operation::MbarrierArrive;
    else
      s.operation = Operation::Arithmetic;
  } else if (op == "UBLKCP") {
    const auto g = std::find(tokens.begin() + 1, tokens.end(), "G");
    const auto shared = std::find(tokens.begin() + 1, tokens.end(), "S");
    s.operation = g < shared ? Operation::BulkStore : Operation::BulkLoad;
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
      s.bypass_l1 = op == "MEMBAR" && !has(tokens, "CTA") && !has(tokens, "SM");
      break;
    default:
      break;
  }
}

}  // namespace

std::vector<StaticInstruction> classify(const std::vector<RawInstruction>& raw,
                                        const std::vector<std::string>& opcodes, const OpcodeTable& table,
                                        std::map<std::string, std::string>& unknown) {
  std::vector<StaticInstruction> instructions;
  instructions.reserve(raw.size());
  bool has_async_groups = false;
  for (const RawInstruction& r : raw) {
    const Tokens tokens = split(opcodes.at(r.opcode));
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
    refine_by_modifiers(s, tokens);
    if (has_addresses && is_memory(s.operation)) s.access_bytes = access_bytes(r, tokens, match.exact);
    const bool load_store = s.unit == Unit::Memory || s.space == MemorySpace::Constant;
    if (s.control.present()) {
      // The widths are those of the machine code.
    } else if (load_store && is_memory(s.operation) && s.access_bytes != 0)
      set_memory_widths(s, tokens);
    else
      set_arithmetic_widths(s, tokens);
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
