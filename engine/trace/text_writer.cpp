#include "trace/text_writer.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <utility>

#include "trace/store_format.hpp"

namespace simt {
namespace {

constexpr size_t piece_bytes = 4 << 20;
constexpr std::string_view format_comment =
    "#traces format = [line_num] PC mask dest_num [reg_dests] opcode src_num [reg_srcs] mem_width "
    "[adrrescompress?] [mem_addresses] immediate\n";

template <typename Integer>
void put(std::string& out, Integer value, int base = 10) {
  char digits[24];
  const auto end = std::to_chars(std::begin(digits), std::end(digits), value, base).ptr;
  out.append(digits, static_cast<size_t>(end - digits));
}

void put_hex(std::string& out, uint64_t value, size_t digits) {
  const size_t start = out.size();
  put(out, value, 16);
  const size_t length = out.size() - start;
  if (length < digits) out.insert(start, digits - length, '0');
}

void put_registers(std::string& out, const auto& registers, uint8_t count) {
  const auto general = [](const Register& r) { return r.file == RegisterFile::General; };
  put(out, std::count_if(registers.begin(), registers.begin() + count, general));
  out += ' ';
  for (int i = 0; i < count; ++i)
    if (general(registers[i])) {
      out += 'R';
      put(out, registers[i].index);
      out += ' ';
    }
}

bool one_run(uint64_t mask) {
  const uint64_t run = mask >> std::countr_zero(mask);
  return (run & (run + 1)) == 0;
}

}  // namespace

TextWriter::TextWriter(std::shared_ptr<TraceSource> source)
    : source_(std::move(source)), lanes_(store::max_bulk_addresses) {
  const auto& raw = source_->raw_instructions();
  line_info_ = std::any_of(raw.begin(), raw.end(), [](const auto& r) { return r.source_line != 0; });
  for (const RawInstruction& r : raw) {
    std::string head;
    put_registers(head, r.destinations, r.destination_count);
    head += source_->opcodes()[r.opcode] + " ";
    put_registers(head, r.sources, r.source_count);
    put(head, r.addresses == AddressKind::None ? 0 : std::max(r.memory_bytes, 1u));
    head += ' ';
    heads_.push_back(std::move(head));
  }
}

std::string TextWriter::next_piece() {
  std::string out;
  if (!std::exchange(header_written_, true)) header(out);
  DynamicRecord record;
  while (out.size() < piece_bytes) {
    if (!stream_) {
      if (ordinal_ == source_->cta_count()) break;
      begin_cta(out);
    }
    if (!in_warp_) {
      while (warp_ < counts_.size() && counts_[warp_] == 0) ++warp_;
      if (warp_ == counts_.size()) {
        out += "\n#END_TB\n";
        stream_.reset();
        ++ordinal_;
        continue;
      }
      begin_warp(out);
    }
    if (stream_->next(warp_, record, 0) == CtaStream::Next::Record) {
      instruction(record, out);
    } else {
      in_warp_ = false;
      ++warp_;
    }
  }
  return out;
}

void TextWriter::header(std::string& out) const {
  const LaunchInfo& l = source_->launch();
  const auto size = [](const Dim3& d) {
    std::string text = "(";
    text.append(std::to_string(d.x)).append(",").append(std::to_string(d.y)).append(",");
    return text.append(std::to_string(d.z)).append(")");
  };
  const auto address = [](uint64_t value) {
    std::string text;
    put_hex(text, value, 16);
    return text.insert(0, "0x");
  };
  const std::pair<const char*, std::string> lines[] = {
      {"kernel name", l.name},
      {"kernel id", std::to_string(l.id)},
      {"grid dim", size(l.grid)},
      {"block dim", size(l.block)},
      {"shmem", std::to_string(l.shared_bytes)},
      {"nregs", std::to_string(l.registers_per_thread)},
      {"binary version", std::to_string(l.sm_version)},
      {"cuda stream id", std::to_string(static_cast<int64_t>(l.stream))},
      {"shmem base_addr", address(l.shared_base)},
      {"local mem base_addr", address(l.local_base)},
      {"accelsim tracer version", "5"},
      {"enable lineinfo", line_info_ ? "1" : "0"},
  };
  for (const auto& [key, value] : lines) out.append("-").append(key).append(" = ").append(value).append("\n");
  out += '\n';
  out += format_comment;
}

void TextWriter::begin_cta(std::string& out) {
  // The number of instructions precedes them, so the CTA is traversed twice.
  stream_ = source_->open_cta(ordinal_);
  counts_.assign(stream_->warps(), 0);
  DynamicRecord record;
  for (uint32_t w = 0; w < counts_.size(); ++w)
    while (stream_->next(w, record, 0) == CtaStream::Next::Record) ++counts_[w];
  stream_ = source_->open_cta(ordinal_);
  warp_ = 0;
  in_warp_ = false;
  const auto& [x, y, z] = source_->position(ordinal_).cta;
  out += "\n#BEGIN_TB\n\nthread block = " + std::to_string(x) + "," + std::to_string(y) + "," +
         std::to_string(z) + "\n";
}

void TextWriter::begin_warp(std::string& out) {
  in_warp_ = true;
  out += "\nwarp = " + std::to_string(warp_) + "\ninsts = " + std::to_string(counts_[warp_]) + "\n";
}

void TextWriter::instruction(const DynamicRecord& record, std::string& out) {
  constexpr size_t pc_digits = 4, mask_digits = 8;
  const RawInstruction& raw = source_->raw_instructions()[record.static_index];
  if (line_info_) {
    put(out, raw.source_line);
    out += ' ';
  }
  put_hex(out, raw.pc, pc_digits);
  out += ' ';
  put_hex(out, record.mask, mask_digits);
  out += ' ';
  out += heads_[record.static_index];
  if (raw.addresses != AddressKind::None) addresses(raw, record, out);
  put(out, raw.immediate);
  out += " \n";
}

void TextWriter::addresses(const RawInstruction& raw, const DynamicRecord& record, std::string& out) {
  const uint32_t count = source_->lane_addresses(record, lanes_.data());
  const bool bulk = raw.addresses == AddressKind::Bulk;
  const bool strided = !bulk && count > 1 && !record.deltas && one_run(record.mask);
  out += bulk ? "4 0x" : strided ? "1 0x" : "2 0x";
  put(out, count ? lanes_[0] : 0, 16);
  out += ' ';
  if (bulk) {
    put(out, count);
    out += ' ';
  }
  if (strided) {
    put(out, record.stride);
    out += ' ';
    return;
  }
  for (uint32_t i = 1; i < count; ++i) {
    put(out, static_cast<int64_t>(lanes_[i] - lanes_[i - 1]));
    out += ' ';
  }
}

}  // namespace simt
