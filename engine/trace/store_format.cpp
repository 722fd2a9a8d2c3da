#include "trace/store_format.hpp"

#include <algorithm>

#include "trace/byte_coding.hpp"

namespace simt::store {
namespace {

constexpr uint64_t max_constant_bank = 64 * 1024;  // bytes

}  // namespace

// Columns rather than rows: neighbouring instructions are similar field by field, which the block compressor
// exploits.
std::string encode_instructions(const std::vector<RawInstruction>& instructions) {
  std::string out;
  put_varint(out, instructions.size());
  uint64_t pc = 0;
  for (const auto& r : instructions) {
    put_varint(out, fold_sign(static_cast<int64_t>(r.pc - pc)));
    pc = r.pc;
  }
  for (const auto& r : instructions) put_varint(out, r.opcode);
  int64_t line = 0;
  for (const auto& r : instructions) {
    put_varint(out, fold_sign(r.source_line - line));
    line = r.source_line;
  }
  for (const auto& r : instructions) put_varint(out, fold_sign(r.immediate));
  for (const auto& r : instructions) put_varint(out, fold_sign(r.immediate2));
  for (const auto& r : instructions) put_varint(out, r.memory_bytes);
  for (const auto& r : instructions)
    put_varint(out, static_cast<uint64_t>(r.addresses) | uint64_t{r.commits_group} << 2 |
                        uint64_t{r.destination_count} << 3 | uint64_t{r.source_count} << 7);
  for (const auto& r : instructions) {
    for (int i = 0; i < r.destination_count; ++i)
      put_varint(out, uint64_t{r.destinations[i].index} << 2 | static_cast<uint64_t>(r.destinations[i].file));
    for (int i = 0; i < r.source_count; ++i)
      put_varint(out, uint64_t{r.sources[i].index} << 2 | static_cast<uint64_t>(r.sources[i].file));
  }
  constexpr auto none = StaticInstruction::no_constant;
  const bool machine_code = std::any_of(instructions.begin(), instructions.end(),
                                        [](const RawInstruction& r) { return r.control.present(); });
  if (machine_code || std::any_of(instructions.begin(), instructions.end(),
                                  [](const RawInstruction& r) { return r.constant_operand != none; }))
    for (const auto& r : instructions)
      put_varint(out, r.constant_operand == none ? 0 : uint64_t{r.constant_operand} + 1);
  if (!machine_code) return out;
  for (const auto& r : instructions) put_varint(out, r.control.present() ? r.control.to_bits() + 1 : 0);
  for (const auto& r : instructions) {
    if (!r.control.present()) continue;
    for (int i = 0; i < r.destination_count; ++i) put_varint(out, r.destinations[i].width);
    for (int i = 0; i < r.source_count; ++i) {
      put_varint(out, r.sources[i].width);
      put_varint(out, r.source_slots[i]);
    }
  }
  return out;
}

namespace {

uint8_t read_small(ByteReader& in) {
  const uint64_t value = in.varint();
  if (value > 0xff) ByteReader::corrupted();
  return static_cast<uint8_t>(value);
}

void read_machine_code(ByteReader& in, std::vector<RawInstruction>& instructions) {
  bool any = false;
  for (auto& r : instructions) {
    const uint64_t after = in.varint();
    if (after > uint64_t{1} << ControlBits::bits) ByteReader::corrupted();
    any |= after > 0;
    if (after > 0) r.control = ControlBits::from_bits(static_cast<uint32_t>(after - 1));
  }
  for (auto& r : instructions) {
    if (!r.control.present()) continue;
    for (int i = 0; i < r.destination_count; ++i) r.destinations[i].width = read_small(in);
    for (int i = 0; i < r.source_count; ++i) {
      r.sources[i].width = read_small(in);
      r.source_slots[i] = read_small(in);
    }
  }
  if (!any) ByteReader::corrupted();
}

}  // namespace

std::vector<RawInstruction> decode_instructions(const uint8_t* data, size_t size, size_t opcodes) {
  constexpr uint64_t least_bytes = 7;  // one per column
  ByteReader in(data, data + size);
  std::vector<RawInstruction> instructions(in.count(least_bytes));
  uint64_t pc = 0;
  for (auto& r : instructions) r.pc = pc += static_cast<uint64_t>(in.signed_varint());
  for (auto& r : instructions) {
    const uint64_t opcode = in.varint();
    if (opcode >= opcodes) ByteReader::corrupted();
    r.opcode = static_cast<uint32_t>(opcode);
  }
  uint64_t line = 0;
  for (auto& r : instructions) {
    line += static_cast<uint64_t>(in.signed_varint());
    r.source_line = static_cast<uint32_t>(line);
  }
  for (auto& r : instructions) r.immediate = in.signed_varint();
  for (auto& r : instructions) r.immediate2 = in.signed_varint();
  for (auto& r : instructions) r.memory_bytes = static_cast<uint32_t>(in.varint());
  for (auto& r : instructions) {
    const uint64_t bits = in.varint();
    const uint64_t kind = bits & 3;
    const uint64_t destinations = bits >> 3 & 15;
    const uint64_t sources = bits >> 7;
    if (kind > static_cast<uint64_t>(AddressKind::Bulk) || destinations > StaticInstruction::max_registers ||
        sources > StaticInstruction::max_registers)
      ByteReader::corrupted();
    r.addresses = static_cast<AddressKind>(kind);
    r.commits_group = (bits & 4) != 0;
    r.destination_count = static_cast<uint8_t>(destinations);
    r.source_count = static_cast<uint8_t>(sources);
  }
  const auto read_register = [&in](Register& r) {
    const uint64_t bits = in.varint();
    r.file = static_cast<RegisterFile>(bits & 3);
    r.index = static_cast<uint16_t>(bits >> 2);
  };
  for (auto& r : instructions) {
    for (int i = 0; i < r.destination_count; ++i) read_register(r.destinations[i]);
    for (int i = 0; i < r.source_count; ++i) read_register(r.sources[i]);
  }
  // Tracers record neither constant operands nor control bits; these columns are then omitted.
  if (in.left() != 0)
    for (auto& r : instructions) {
      const uint64_t after = in.varint();
      if (after > max_constant_bank) ByteReader::corrupted();
      if (after > 0) r.constant_operand = static_cast<uint32_t>(after - 1);
    }
  if (in.left() != 0) read_machine_code(in, instructions);
  if (in.left() != 0) ByteReader::corrupted();
  return instructions;
}

}  // namespace simt::store
