#include "trace/text_parser.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "trace/text_format.hpp"
#include "trace/text_scanner.hpp"
#include "trace/trace_error.hpp"

namespace simt {
namespace {

/// Whether text is what Python takes for UTF-8: no stray or overlong bytes, no surrogates, nothing beyond
/// U+10FFFF.
bool is_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i++]);
    if (lead < 0x80) continue;
    const int more = lead >= 0xc2 && lead < 0xe0   ? 1
                     : (lead & 0xf0) == 0xe0       ? 2
                     : lead >= 0xf0 && lead < 0xf5 ? 3
                                                   : 0;
    if (more == 0 || text.size() - i < static_cast<size_t>(more)) return false;
    uint32_t code = lead & (0x3fu >> more);
    for (int k = 0; k < more; ++k) {
      const auto next = static_cast<unsigned char>(text[i++]);
      if ((next & 0xc0) != 0x80) return false;
      code = code << 6 | (next & 0x3fu);
    }
    const uint32_t least = more == 1 ? 0x80 : more == 2 ? 0x800 : 0x10000;
    if (code < least || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return false;
  }
  return true;
}

// Limits far above those of real traces; they keep absurd input from exhausting memory.
constexpr uint32_t max_warps = 1024;
constexpr uint64_t max_idle_lines = 1 << 20;  // blank lines and comments in a row
constexpr uint64_t max_grid = uint64_t{1} << 40;

constexpr uint32_t newest_version = 6;

}  // namespace

TextParser::TextParser(TraceSink& sink) : sink_(sink), known_(KnownLine::count) {}
TextParser::~TextParser() = default;

void TextParser::fail(const std::string& reason) const {
  throw TraceError(counts_.lines, reason);
}

void TextParser::feed(std::string_view text) {
  while (!text.empty()) {
    const auto* newline = static_cast<const char*>(std::memchr(text.data(), '\n', text.size()));
    const size_t length = newline ? static_cast<size_t>(newline - text.data()) : text.size();
    if (partial_.size() + length > max_line_bytes) {
      ++counts_.lines;
      fail("the line is longer than " + std::to_string(max_line_bytes) +
           " bytes; this is not a kernel trace");
    }
    if (!newline) {
      partial_.append(text);
      return;
    }
    ++counts_.lines;
    if (partial_.empty()) {
      line(text.substr(0, length));
    } else {
      partial_.append(text.substr(0, length));
      line(partial_);
      partial_.clear();
    }
    text.remove_prefix(length + 1);
  }
}

void TextParser::finish() {
  if (!partial_.empty()) {
    ++counts_.lines;
    try {
      line(partial_);
    } catch (const TraceError& error) {
      throw TraceError(std::string(error.what()) +
                       " (the file ends in the middle of this line: is it truncated?)");
    }
    partial_.clear();
  }
  switch (state_) {
    case State::Header:
      if (!header_seen_)
        fail("the file is empty or not a kernel trace: no header line such as '-kernel name = ...'");
      begin_kernel();
      break;
    case State::BetweenCtas:
      break;
    case State::InCta:
    case State::InWarp:
      if (left_ > 0)
        fail("the file ends inside warp " + std::to_string(warp_) + ": " + std::to_string(left_) +
             " of its announced instructions are missing; the trace is truncated");
      fail("the file ends inside a thread block: '#END_TB' is missing; the trace is truncated");
  }
}

void TextParser::line(std::string_view text) {
  if (state_ == State::InWarp && left_ > 0) {
    instruction_line(text);
    return;
  }
  text = trim(text);
  if (text.empty() ||
      (state_ != State::Header && text[0] == '#' && text != "#BEGIN_TB" && text != "#END_TB")) {
    if (++idle_lines_ > max_idle_lines) fail("too many blank lines; this is not a kernel trace");
    return;
  }
  idle_lines_ = 0;
  switch (state_) {
    case State::Header:
      if (text[0] == '#') {
        if (!header_seen_) fail("no header line such as '-kernel name = ...' before " + quoted(text));
        begin_kernel();
        state_ = State::BetweenCtas;
        if (text == "#BEGIN_TB") open_cta();
      } else {
        header_line(text);
      }
      break;
    case State::BetweenCtas:
      if (text != "#BEGIN_TB")
        fail("found " + quoted(text) + " outside a thread block, where '#BEGIN_TB' was expected");
      open_cta();
      break;
    case State::InCta:
    case State::InWarp:
      cta_line(text);
      break;
  }
}

void TextParser::header_line(std::string_view text) {
  const size_t equals = text.find('=');
  if (text[0] != '-' || equals == std::string_view::npos)
    fail("found " + quoted(text) + " where a header line such as '-grid dim = (8,1,1)' was expected");
  const std::string_view key = trim(text.substr(1, equals - 1));
  const std::string_view value = trim(text.substr(equals + 1));
  header_seen_ = true;
  Scanner in(*this, value);
  const auto small = [&](const char* expected) {
    return static_cast<uint32_t>(in.decimal(expected, 0xffffffffu));
  };
  const auto dimensions = [&] {
    Dim3 d;
    std::string numbers(value);
    for (char& c : numbers)
      if (c == '(' || c == ')' || c == ',') c = ' ';
    Scanner three(*this, numbers);
    for (uint32_t* n : {&d.x, &d.y, &d.z}) {
      *n = static_cast<uint32_t>(three.decimal("a size such as (8,1,1)", 0xffffffffu));
      if (*n == 0) fail("the size " + quoted(value) + " has a zero");
    }
    if (!three.done()) fail("found " + quoted(value) + " where a size such as (8,1,1) was expected");
    if (uint64_t{d.x} * d.y > max_grid / d.z) fail("the size " + quoted(value) + " is too large");
    return d;
  };
  if (key == "kernel name") {
    if (!is_utf8(value)) fail("the kernel's name is not text in UTF-8: " + quoted(value));
    launch_.name.assign(value);
  } else if (key == "kernel id") {
    launch_.id = in.decimal("the kernel's number");
  } else if (key == "grid dim") {
    launch_.grid = dimensions();
  } else if (key == "block dim") {
    launch_.block = dimensions();
    if (launch_.block.count() > uint64_t{max_warps} * 32)
      fail("the block size " + quoted(value) + " is too large");
  } else if (key == "shmem") {
    launch_.shared_bytes = small("bytes of shared memory");
  } else if (key == "nregs") {
    launch_.registers_per_thread = small("registers per thread");
  } else if (key == "binary version") {
    launch_.sm_version = small("an SM version such as 80");
  } else if (key == "cuda stream id") {
    // Old tracers write negative numbers, for the default stream's handle.
    launch_.stream = static_cast<uint64_t>(in.integer("a stream number"));
  } else if (key == "shmem base_addr") {
    launch_.shared_base = in.hex("an address");
  } else if (key == "local mem base_addr") {
    launch_.local_base = in.hex("an address");
  } else if (key == "accelsim tracer version") {
    version_ = small("a tracer version");
    if (version_ > newest_version)
      fail("tracer version " + std::to_string(version_) + " is newer than any known (" +
           std::to_string(newest_version) + ")");
  } else if (key == "enable lineinfo") {
    line_info_ = in.decimal("0 or 1", 1) == 1;
  }
}

void TextParser::begin_kernel() {
  sink_.begin_kernel(launch_, instructions_, opcodes_);
}

void TextParser::open_cta() {
  state_ = State::InCta;
  position_ = {};
  position_seen_ = false;
  cta_open_ = false;
  warp_ = -1;
  warp_announced_ = false;
  left_ = 0;
}

void TextParser::close_cta() {
  if (!position_seen_) fail("the thread block has no 'thread block = x,y,z' line");
  if (warp_announced_) fail("warp " + std::to_string(warp_) + " has no 'insts = N' line");
  if (cta_open_) {
    sink_.end_cta();
    ++counts_.ctas;
  } else {
    ++counts_.empty_ctas;
  }
  state_ = State::BetweenCtas;
}

void TextParser::cta_line(std::string_view text) {
  if (text == "#END_TB") {
    close_cta();
    return;
  }
  if (text == "#BEGIN_TB") fail("a thread block begins inside another: '#END_TB' is missing");
  const size_t equals = text.find('=');
  const std::string_view key = equals == std::string_view::npos ? text : trim(text.substr(0, equals));
  const std::string_view value = equals == std::string_view::npos ? "" : trim(text.substr(equals + 1));
  Scanner in(*this, value);
  const auto position = [&] {
    std::array<uint32_t, 3> xyz{};
    std::string numbers(value);
    std::replace(numbers.begin(), numbers.end(), ',', ' ');
    Scanner three(*this, numbers);
    for (uint32_t& n : xyz) n = static_cast<uint32_t>(three.decimal("a position such as 0,0,0", 0xffffffffu));
    if (!three.done()) fail("found " + quoted(value) + " where a position such as 0,0,0 was expected");
    return xyz;
  };
  const auto before_warps = [&] {
    if (warp_ >= 0) fail("found " + quoted(text) + " after a warp of this thread block");
  };
  if (key == "thread block") {
    before_warps();
    position_.cta = position();
    position_seen_ = true;
    if (position_.cta[0] >= launch_.grid.x || position_.cta[1] >= launch_.grid.y ||
        position_.cta[2] >= launch_.grid.z)
      fail("thread block " + std::string(value) + " lies outside the grid");
  } else if (key == "cluster id") {
    before_warps();
    position_.cluster = position();
  } else if (key == "cluster cta") {
    before_warps();
    position_.cta_in_cluster = position();
  } else if (key == "cluster rank") {
    before_warps();
    position_.rank_in_cluster = static_cast<uint32_t>(in.decimal("a rank", 0xffffffffu));
  } else if (key == "warp") {
    if (!position_seen_) fail("a warp comes before the 'thread block = x,y,z' line");
    if (warp_announced_) fail("warp " + std::to_string(warp_) + " has no 'insts = N' line");
    const auto warp = static_cast<int64_t>(in.decimal("a warp number", max_warps - 1));
    if (warp <= warp_)
      fail("warp " + std::to_string(warp) + " follows warp " + std::to_string(warp_) +
           "; a thread block lists each warp once, in rising order");
    warp_ = warp;
    warp_announced_ = true;
  } else if (key == "insts") {
    if (!warp_announced_) fail("'insts' comes without a 'warp = N' line before it");
    warp_announced_ = false;
    left_ = in.decimal("a number of instructions");
    if (left_ == 0) {
      ++counts_.empty_warps;
      state_ = State::InCta;
      return;
    }
    if (!cta_open_) {
      sink_.begin_cta(position_);
      cta_open_ = true;
    }
    sink_.begin_warp(static_cast<uint32_t>(warp_), left_);
    ++counts_.warps;
    state_ = State::InWarp;
  } else if (state_ == State::InWarp) {
    fail("found " + quoted(text) + " after the announced number of instructions of warp " +
         std::to_string(warp_) + ", where the next warp or '#END_TB' was expected");
  } else {
    fail("found " + quoted(text) + " where 'warp = N' or '#END_TB' was expected");
  }
}

}  // namespace simt
