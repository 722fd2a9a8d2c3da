/// Lines of a trace that are instructions.
#include <algorithm>
#include <bit>
#include <cstring>

#include "isa/opcode.hpp"
#include "trace/text_format.hpp"
#include "trace/text_scanner.hpp"

namespace simt {
namespace {

// Limits far above those of real traces; they keep absurd input from exhausting memory.
constexpr size_t max_instructions = 1 << 22;
constexpr size_t max_opcode_bytes = 96;
constexpr uint32_t max_registers = StaticInstruction::max_registers;
constexpr uint32_t max_bulk_addresses = 1 << 16;
constexpr uint32_t max_memory_bytes = 1 << 20;

constexpr uint32_t first_with_types = 6;

size_t hash_of(const RawInstruction& r) {
  const auto mix = [](uint64_t h, uint64_t v) {
    h = (h ^ v) * 0x9e3779b97f4a7c15ull;
    return h ^ (h >> 29);
  };
  uint64_t h = mix(r.pc, r.opcode);
  h = mix(h, static_cast<uint64_t>(r.immediate));
  h = mix(h, r.memory_bytes | uint64_t{r.destination_count} << 32 | uint64_t{r.source_count} << 40);
  for (int i = 0; i < r.destination_count; ++i) h = mix(h, r.destinations[i].index);
  for (int i = 0; i < r.source_count; ++i) h = mix(h, r.sources[i].index);
  return h;
}

}  // namespace

void TextParser::instruction_line(std::string_view text) {
  Scanner in(*this, text);
  if (in.done() || *in.position() == '#')
    fail("warp " + std::to_string(warp_) + " ends " + std::to_string(left_) +
         " instructions before the announced number");
  if (version_ < first_without_prefix)
    for (int i = 0; i < 4; ++i) in.decimal("the thread block and warp before the instruction", 0xffffffffu);
  const auto source_line = line_info_ ? static_cast<uint32_t>(in.decimal("a source line", 0xffffffffu)) : 0;
  const uint64_t pc = in.hex("a PC in hexadecimal");
  record_.mask = in.hex("an active mask in hexadecimal");
  record_.address_count = 0;

  KnownLine& known = known_[KnownLine::slot(pc)];
  if (!repeats(known, in, pc, source_line)) other_instruction(known, in, pc, source_line);
  if (record_.address_count && record_.addresses.base < first_data_address)
    ++null_accesses_[record_.static_index];
  --left_;
  ++counts_.instructions;
  sink_.record(record_);
}

bool TextParser::repeats(const KnownLine& known, Scanner& in, uint64_t pc, uint32_t source_line) {
  const char* const head = in.raw_position();
  if (known.pc != pc || known.source_line != source_line || in.end() - head < known.head ||
      std::memcmp(head, known.text, known.head) != 0)
    return false;
  const char* const rest = head + known.head;
  const auto tail_matches = [&](const char* at) {
    return in.end() - at == known.tail && std::memcmp(at, known.text + known.head, known.tail) == 0;
  };
  record_.static_index = known.static_index;
  if (known.addresses == AddressKind::None) return tail_matches(rest);
  if (rest == in.end() || !is_space(*rest)) return false;
  in.jump(rest);
  addresses(in, AddressKind::Lanes, static_cast<uint32_t>(in.decimal("an address mode", 2)));
  if (tail_matches(in.raw_position())) return true;
  in.jump(head);
  return false;
}

void TextParser::other_instruction(KnownLine& known, Scanner& in, uint64_t pc, uint32_t source_line) {
  const char* const head = in.raw_position();
  RawInstruction raw;
  raw.pc = pc;
  raw.source_line = source_line;
  const auto registers = [&](const char* expected, uint8_t& count, auto& list) {
    count = static_cast<uint8_t>(in.decimal(expected, max_registers));
    for (int i = 0; i < count; ++i) list[i] = in.reg();
  };
  registers("the number of destination registers (at most 8)", raw.destination_count, raw.destinations);
  const std::string_view opcode = in.token("an opcode");
  const bool letter = (opcode[0] >= 'A' && opcode[0] <= 'Z') || (opcode[0] >= 'a' && opcode[0] <= 'z');
  if (!letter || opcode.size() > max_opcode_bytes)
    fail("found " + quoted(opcode) + " where an opcode was expected");
  for (const char c : opcode)
    if (c <= ' ' || c > '~') fail("the opcode " + quoted(opcode) + " has characters that no opcode has");
  raw.opcode = intern_opcode(opcode);
  registers("the number of source registers (at most 8)", raw.source_count, raw.sources);
  const OpcodeRow& row = opcode_row(opcode);
  const bool bulk = row.classes.newest().unit == Unit::Tma;
  if (version_ >= first_with_types && row.also.warp_group)
    raw.commits_group = in.decimal("a commit flag, 0 or 1", 1) == 1;
  raw.memory_bytes = static_cast<uint32_t>(in.decimal("the access width in bytes", max_memory_bytes));

  const char* addresses_start = in.raw_position();
  const char* addresses_end = addresses_start;
  record_.bulk = {};
  if (version_ >= first_with_types && bulk) {
    raw.addresses = AddressKind::Bulk;
    bulk_access(in);
  } else if (raw.memory_bytes > 0) {
    const auto mode = static_cast<uint32_t>(in.decimal("an address mode, 0 to 4", 4));
    raw.addresses = mode >= 3 ? AddressKind::Bulk : AddressKind::Lanes;
    addresses(in, raw.addresses, mode);
    addresses_end = in.raw_position();
  }
  // Missing trailing immediates count as 0, as in the tracer's own reader; older versions have none.
  if (!in.done()) raw.immediate = in.integer("an immediate");
  if (version_ >= first_with_types) {
    if (!in.done()) raw.immediate2 = in.integer("a second immediate");
    if (!in.done()) {
      const std::string_view values = in.token("Val or NoVal");
      if (values == "Val")
        register_values(in, uint32_t{raw.destination_count} + raw.source_count);
      else if (values != "NoVal")
        fail("found " + quoted(values) + " where Val or NoVal was expected");
    }
  }
  if (!in.done()) fail("found " + quoted(in.token("")) + " after the end of the instruction");

  record_.static_index = intern(raw);
  const auto head_size = static_cast<size_t>(addresses_start - head);
  const auto tail_size = static_cast<size_t>(in.end() - addresses_end);
  if (raw.addresses != AddressKind::Bulk && head_size + tail_size <= KnownLine::capacity) {
    known.pc = pc;
    known.source_line = source_line;
    known.static_index = record_.static_index;
    known.addresses = raw.addresses;
    known.head = static_cast<uint8_t>(head_size);
    known.tail = static_cast<uint8_t>(tail_size);
    std::memcpy(known.text, head, head_size);
    std::memcpy(known.text + head_size, addresses_end, tail_size);
  }
}

void TextParser::addresses(Scanner& in, AddressKind kind, uint32_t mode) {
  AddressList& list = record_.addresses;
  const auto lanes = static_cast<uint32_t>(std::popcount(record_.mask));
  const auto read_differences = [&](uint32_t count) {
    list.differences.clear();
    for (uint32_t i = 1; i < count; ++i) list.differences.push_back(in.integer("an address difference"));
    list.find_stride();
  };
  const auto read_all = [&](uint32_t count) {
    list.differences.clear();
    uint64_t previous = 0;
    for (uint32_t i = 0; i < count; ++i) {
      const uint64_t address = in.hex("an address");
      if (i == 0)
        list.base = address;
      else
        list.differences.push_back(static_cast<int64_t>(address - previous));
      previous = address;
    }
    list.find_stride();
  };
  if (kind == AddressKind::Lanes) {
    record_.address_count = lanes;
    if (mode == 0) {
      read_all(lanes);
    } else {
      list.base = in.hex("a base address");
      if (mode == 1) {
        list.strided = true;
        list.stride = in.integer("a stride");
        if (lanes < 2) list.stride = 0;
      } else {
        read_differences(lanes);
      }
    }
    return;
  }
  list.base = mode == 4 ? in.hex("a base address") : 0;
  const auto count =
      static_cast<uint32_t>(in.decimal("a number of addresses (at most 65536)", max_bulk_addresses));
  record_.address_count = count;
  if (mode == 4)
    read_differences(count);
  else
    read_all(count);
}

void TextParser::bulk_access(Scanner& in) {
  record_.bulk.mbarrier = in.hex("the mbarrier's address");
  if (in.decimal("a multicast flag, 0 or 1", 1) == 1) record_.bulk.multicast_mask = in.hex("a mask of CTAs");
  record_.bulk.bytes = in.decimal("a number of bytes");
  record_.bulk.out_of_bounds_bytes = in.decimal("a number of bytes out of bounds");
  const auto mode = static_cast<uint32_t>(in.decimal("an address mode, 3 or 4", 4));
  if (mode < 3) fail("address mode " + std::to_string(mode) + " where 3 or 4 was expected");
  addresses(in, AddressKind::Bulk, mode);
}

// Register values are checked and discarded: no model uses them.
void TextParser::register_values(Scanner& in, uint32_t registers) {
  for (uint32_t r = 0; r < registers; ++r) {
    const uint64_t count = in.decimal("a number of register values", 32);
    for (uint64_t i = 0; i < count; ++i) in.hex("a register value");
  }
}

uint32_t TextParser::intern_opcode(std::string_view opcode) {
  const auto [it, added] =
      opcode_index_.try_emplace(std::string(opcode), static_cast<uint32_t>(opcodes_.size()));
  if (added) opcodes_.emplace_back(opcode);
  return it->second;
}

uint32_t TextParser::intern(const RawInstruction& instruction) {
  const uint64_t hash = hash_of(instruction);
  const auto [begin, end] = instruction_index_.equal_range(hash);
  for (auto it = begin; it != end; ++it)
    if (instructions_[it->second] == instruction) return it->second;
  if (instructions_.size() >= max_instructions)
    fail("more than " + std::to_string(max_instructions) +
         " distinct instructions; this is not a kernel trace");
  const auto index = static_cast<uint32_t>(instructions_.size());
  instructions_.push_back(instruction);
  instruction_index_.emplace(hash, index);
  return index;
}

}  // namespace simt
