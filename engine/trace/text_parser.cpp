#include "trace/text_parser.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

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
constexpr size_t max_line_bytes = 1 << 20;
constexpr size_t max_instructions = 1 << 22;
constexpr size_t max_opcode_bytes = 96;
constexpr uint32_t max_registers = StaticInstruction::max_registers;
constexpr uint32_t max_warps = 1024;
constexpr uint32_t max_bulk_addresses = 1 << 16;
constexpr uint32_t max_memory_bytes = 1 << 20;
constexpr uint64_t max_idle_lines = 1 << 20;  // blank lines and comments in a row
constexpr uint64_t max_grid = uint64_t{1} << 40;

constexpr uint32_t newest_version = 6;
constexpr uint32_t first_without_prefix = 3;
constexpr uint32_t first_with_types = 6;

constexpr std::string_view bulk_opcodes[] = {"UTMALDG", "UTMASTG", "UTMAPF", "UTMAREDG",
                                             "UBLKCP",  "UBLKPF",  "UBLKRED"};

bool is_bulk(std::string_view opcode) {
  return std::any_of(std::begin(bulk_opcodes), std::end(bulk_opcodes),
                     [&](std::string_view name) { return opcode.find(name) != std::string_view::npos; });
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

bool starts_with(std::string_view text, std::string_view beginning) {
  return text.substr(0, beginning.size()) == beginning;
}

// Text from the file inside an error message: short, and without control characters.
std::string quoted(std::string_view text) {
  constexpr size_t longest = 40;
  std::string shown = "'";
  for (const char c : text.substr(0, longest)) shown += c >= ' ' && c < 127 ? c : '?';
  return shown + (text.size() > longest ? "...'" : "'");
}

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

// The text of the latest instruction line at this PC, between the mask and the addresses, and after the
// addresses. Nearly every line of a trace repeats one of these, and then needs no further parsing.
struct TextParser::KnownLine {
  static constexpr size_t count = 1 << 13;
  static constexpr size_t capacity = 100;

  uint64_t pc = ~uint64_t{0};
  uint32_t source_line = 0;
  uint32_t static_index = 0;
  AddressKind addresses = AddressKind::None;
  uint8_t head = 0;  ///< bytes before the addresses
  uint8_t tail = 0;  ///< bytes after them
  char text[capacity];

  static size_t slot(uint64_t pc) { return (pc >> 3) & (count - 1); }
};

// Takes tokens off one line.
class TextParser::Scanner {
 public:
  Scanner(const TextParser& parser, std::string_view text)
      : parser_(parser), at_(text.data()), end_(text.data() + text.size()) {}

  const char* position() {
    skip_spaces();
    return at_;
  }
  const char* raw_position() const { return at_; }
  const char* end() const { return end_; }
  void jump(const char* to) { at_ = to; }
  bool done() {
    skip_spaces();
    return at_ == end_;
  }

  std::string_view token(const char* expected) {
    skip_spaces();
    const char* start = at_;
    while (at_ != end_ && !is_space(*at_)) ++at_;
    if (start == at_) parser_.fail(std::string("the line ends where ") + expected + " was expected");
    return {start, static_cast<size_t>(at_ - start)};
  }

  uint64_t hex(const char* expected) {
    skip_spaces();
    const char* start = at_;
    if (end_ - at_ > 2 && at_[0] == '0' && (at_[1] == 'x' || at_[1] == 'X')) at_ += 2;
    uint64_t value = 0;
    const char* digits = at_;
    for (int d; at_ != end_ && (d = hex_digit(*at_)) >= 0; ++at_) {
      if (value >> 60) wrong(start, expected);
      value = value << 4 | static_cast<uint64_t>(d);
    }
    if (at_ == digits || (at_ != end_ && !is_space(*at_))) wrong(start, expected);
    return value;
  }

  uint64_t decimal(const char* expected, uint64_t limit = ~uint64_t{0}) {
    skip_spaces();
    const char* start = at_;
    uint64_t value = 0;
    for (; at_ != end_ && *at_ >= '0' && *at_ <= '9'; ++at_) {
      const auto digit = static_cast<uint64_t>(*at_ - '0');
      if (digit > limit || value > (limit - digit) / 10) wrong(start, expected);
      value = value * 10 + digit;
    }
    if (at_ == start || (at_ != end_ && !is_space(*at_))) wrong(start, expected);
    return value;
  }

  int64_t integer(const char* expected) {
    skip_spaces();
    const char* start = at_;
    const bool negative = at_ != end_ && *at_ == '-';
    if (negative) ++at_;
    // Immediates up to 2^64 - 1 occur; they keep their bits.
    uint64_t value = 0;
    const char* digits = at_;
    for (; at_ != end_ && *at_ >= '0' && *at_ <= '9'; ++at_) {
      const auto digit = static_cast<uint64_t>(*at_ - '0');
      if (value > (~uint64_t{0} - digit) / 10) wrong(start, expected);
      value = value * 10 + digit;
    }
    if (at_ == digits || (at_ != end_ && !is_space(*at_))) wrong(start, expected);
    return static_cast<int64_t>(negative ? 0 - value : value);
  }

  Register reg() {
    const std::string_view text = token("a register");
    Register r;
    std::string_view rest = text;
    if (starts_with(rest, "UR")) {
      r.file = RegisterFile::Uniform;
      rest.remove_prefix(2);
    } else if (starts_with(rest, "UP")) {
      r.file = RegisterFile::UniformPredicate;
      rest.remove_prefix(2);
    } else if (starts_with(rest, "R")) {
      rest.remove_prefix(1);
    } else if (starts_with(rest, "P")) {
      r.file = RegisterFile::Predicate;
      rest.remove_prefix(1);
    } else {
      wrong(text.data(), "a register such as R12");
    }
    // RZ, URZ, PT and UPT are the last register of their file.
    if (rest == "Z" || rest == "T") {
      const bool predicate = r.file == RegisterFile::Predicate || r.file == RegisterFile::UniformPredicate;
      r.index = predicate ? 7 : r.file == RegisterFile::Uniform ? 63 : 255;
      return r;
    }
    uint32_t index = 0;
    for (const char c : rest) {
      if (c < '0' || c > '9' || index > 999) wrong(text.data(), "a register such as R12");
      index = index * 10 + static_cast<uint32_t>(c - '0');
    }
    if (rest.empty()) wrong(text.data(), "a register such as R12");
    r.index = static_cast<uint16_t>(index);
    return r;
  }

 private:
  void skip_spaces() {
    while (at_ != end_ && is_space(*at_)) ++at_;
  }
  [[noreturn]] void wrong(const char* start, const char* expected) const {
    const char* stop = start;
    while (stop != end_ && !is_space(*stop)) ++stop;
    if (start == end_) parser_.fail(std::string("the line ends where ") + expected + " was expected");
    parser_.fail("found " + quoted({start, static_cast<size_t>(stop - start)}) + " where " + expected +
                 " was expected");
  }

  const TextParser& parser_;
  const char* at_;
  const char* end_;
};

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
    launch_.stream = in.decimal("a stream number");
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
  const char* const head = in.raw_position();
  if (known.pc == pc && known.source_line == source_line && in.end() - head >= known.head &&
      std::memcmp(head, known.text, known.head) == 0) {
    const char* const rest = head + known.head;
    const auto tail_matches = [&](const char* at) {
      return in.end() - at == known.tail && std::memcmp(at, known.text + known.head, known.tail) == 0;
    };
    record_.static_index = known.static_index;
    if (known.addresses == AddressKind::None) {
      if (tail_matches(rest)) {
        --left_;
        ++counts_.instructions;
        sink_.record(record_);
        return;
      }
    } else if (rest != in.end() && is_space(*rest)) {
      in.jump(rest);
      const auto mode = static_cast<uint32_t>(in.decimal("an address mode", 2));
      addresses(in, AddressKind::Lanes, mode);
      if (tail_matches(in.raw_position())) {
        --left_;
        ++counts_.instructions;
        sink_.record(record_);
        return;
      }
    }
    in.jump(head);
  }

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
  const bool bulk = is_bulk(opcode);
  if (version_ >= first_with_types && opcode.find("GMMA") != std::string_view::npos)
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
  --left_;
  ++counts_.instructions;
  sink_.record(record_);
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
