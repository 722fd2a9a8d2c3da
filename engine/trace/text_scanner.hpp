#pragma once
#include <string>
#include <string_view>

#include "trace/text_parser.hpp"

/// What TextParser makes of the characters of a line.
namespace simt {

inline bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

inline std::string_view trim(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

/// Text from the file inside an error message: short, and without control characters.
inline std::string quoted(std::string_view text) {
  constexpr size_t longest = 40;
  std::string shown = "'";
  for (const char c : text.substr(0, longest)) shown += c >= ' ' && c < 127 ? c : '?';
  return shown + (text.size() > longest ? "...'" : "'");
}

inline int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// The text of the latest instruction line at this PC, between the mask and the addresses, and after the
/// addresses. Nearly every line of a trace repeats one of these, and then needs no further parsing.
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

/// Takes tokens off one line.
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
    if (rest.starts_with("UR")) {
      r.file = RegisterFile::Uniform;
      rest.remove_prefix(2);
    } else if (rest.starts_with("UP")) {
      r.file = RegisterFile::UniformPredicate;
      rest.remove_prefix(2);
    } else if (rest.starts_with("R")) {
      rest.remove_prefix(1);
    } else if (rest.starts_with("P")) {
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

}  // namespace simt
