#include "ptx/lexer.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>

#include "ptx/parser.hpp"

namespace simt::ptx {

namespace {

enum : uint8_t { word_start = 1, word_part = 2, digit = 4, dotted_part = 8 };

constexpr std::array<uint8_t, 256> make_classes() {
  std::array<uint8_t, 256> classes{};
  for (int c = 'a'; c <= 'z'; ++c) classes[c] = word_start | word_part | dotted_part;
  for (int c = 'A'; c <= 'Z'; ++c) classes[c] = word_start | word_part | dotted_part;
  for (int c = '0'; c <= '9'; ++c) classes[c] = word_part | digit | dotted_part;
  classes['_'] = word_start | word_part | dotted_part;
  classes['$'] = word_start | word_part | dotted_part;
  classes['%'] = word_start;
  classes['.'] = dotted_part;
  return classes;
}
constexpr std::array<uint8_t, 256> classes = make_classes();

uint8_t class_of(char c) {
  return classes[static_cast<uint8_t>(c)];
}

constexpr uint32_t max_depth = 64;  ///< of parentheses and signs in a constant expression

/// Binary operators by C's precedence, lowest first.
enum Operator : uint32_t {
  no_operator,
  logical_or,
  logical_and,
  bit_or,
  bit_xor,
  bit_and,
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  shift_left,
  shift_right,
  plus,
  minus,
  times,
  divide,
  remainder
};
constexpr uint32_t precedences[] = {0, 1, 2, 3, 4, 5, 6, 6, 7, 7, 7, 7, 8, 8, 9, 9, 10, 10, 10};

Constant integer(int64_t value, bool is_unsigned = false) {
  return {is_unsigned ? Constant::Kind::Unsigned : Constant::Kind::Signed, value};
}
Constant floating(double value) {
  return {Constant::Kind::Double, std::bit_cast<int64_t>(value)};
}

Constant apply_to_doubles(uint32_t op, double a, double b, bool& defined) {
  switch (op) {
    case plus:
      return floating(a + b);
    case minus:
      return floating(a - b);
    case times:
      return floating(a * b);
    case divide:
      defined = b != 0;
      return floating(defined ? a / b : 0);
    case equal:
      return integer(a == b);
    case not_equal:
      return integer(a != b);
    case less:
      return integer(a < b);
    case less_equal:
      return integer(a <= b);
    case greater:
      return integer(a > b);
    case greater_equal:
      return integer(a >= b);
    default:
      defined = false;
      return {};
  }
}

Constant apply_to_integers(uint32_t op, Constant left, Constant right, bool& defined) {
  const bool is_unsigned = left.kind == Constant::Kind::Unsigned || right.kind == Constant::Kind::Unsigned;
  const int64_t a = left.bits, b = right.bits;
  const auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  const auto wrap = [&](uint64_t value) { return integer(static_cast<int64_t>(value), is_unsigned); };
  switch (op) {
    case logical_or:
      return integer(a != 0 || b != 0);
    case logical_and:
      return integer(a != 0 && b != 0);
    case bit_or:
      return wrap(ua | ub);
    case bit_xor:
      return wrap(ua ^ ub);
    case bit_and:
      return wrap(ua & ub);
    case equal:
      return integer(a == b);
    case not_equal:
      return integer(a != b);
    case less:
      return integer(is_unsigned ? ua < ub : a < b);
    case less_equal:
      return integer(is_unsigned ? ua <= ub : a <= b);
    case greater:
      return integer(is_unsigned ? ua > ub : a > b);
    case greater_equal:
      return integer(is_unsigned ? ua >= ub : a >= b);
    case shift_left:
      return integer(static_cast<int64_t>(ub < 64 ? ua << ub : 0), left.kind == Constant::Kind::Unsigned);
    case shift_right: {
      const bool logical = left.kind == Constant::Kind::Unsigned;
      if (logical) return integer(static_cast<int64_t>(ub < 64 ? ua >> ub : 0), true);
      return integer(a >> std::min<uint64_t>(ub, 63));
    }
    case plus:
      return wrap(ua + ub);
    case minus:
      return wrap(ua - ub);
    case times:
      return wrap(ua * ub);
    default:  // divide and remainder
      defined = b != 0;
      if (!defined) return {};
      if (is_unsigned) return wrap(op == divide ? ua / ub : ua % ub);
      if (b == -1) return op == divide ? wrap(0 - ua) : integer(0);  // the smallest integer / -1 overflows
      return integer(op == divide ? a / b : a % b);
  }
}

}  // namespace

double Constant::number() const {
  switch (kind) {
    case Kind::Signed:
      return static_cast<double>(bits);
    case Kind::Unsigned:
      return static_cast<double>(static_cast<uint64_t>(bits));
    case Kind::Double:
      return std::bit_cast<double>(bits);
    default:
      return std::bit_cast<float>(static_cast<uint32_t>(bits));
  }
}

uint32_t Lexer::hash(std::string_view text) {
  uint32_t hash = hash_start;
  for (const char c : text) hash = add_to_hash(hash, c);
  return hash;
}

Lexer::Lexer(std::string& text, const std::string& name)
    : text_(text), name_(name), at_(text.data()), end_(text.data() + text.size()) {
  skip_space();
}

bool Lexer::at_word() const {
  return class_of(*at_) & word_start;
}

std::string_view Lexer::word_ahead(size_t skipped) const {
  const char* start = at_ + skipped;
  while (*start == ' ' || *start == '\t') ++start;
  const char* stop = start;
  if (class_of(*stop) & word_start) {
    do ++stop;
    while (class_of(*stop) & word_part);
  }
  return {start, static_cast<size_t>(stop - start)};
}

void Lexer::skip_space() {
  for (;; ++at_) {
    const char c = *at_;
    if (c == '\n') {
      ++line_;
    } else if (c == '/') {
      if (at_[1] != '/' && at_[1] != '*') return;
      skip_comment();
      --at_;
    } else if (c != ' ' && c != '\t' && c != '\r' && c != '\f' && c != '\v') {
      return;
    }
  }
}

/// Moves past the comment, or to the end of its line.
void Lexer::skip_comment() {
  if (at_[1] == '/') {
    skip_line();
    return;
  }
  const size_t start = static_cast<size_t>(at_ - text_.data());
  const size_t close = text_.find("*/", start + 2);
  if (close == std::string::npos) fail_at(at_, "found a comment without end, expected */");
  char* const after = text_.data() + close + 2;
  line_ += static_cast<uint32_t>(std::count(at_, after, '\n'));
  at_ = after;
}

void Lexer::skip_line() {
  const void* newline = std::memchr(at_, '\n', static_cast<size_t>(end_ - at_));
  at_ = newline ? at_ + (static_cast<const char*>(newline) - at_) : end_;
}

void Lexer::skip_block() {
  const char* const start = at_;
  expect('{', "{");
  for (uint32_t depth = 1; depth > 0;) {
    if (at_end()) fail_at(start, "found a block without end, expected }");
    if (*at_ == '"') {
      string("a string");
      continue;
    }
    depth += *at_ == '{';
    depth -= *at_ == '}';
    advance(1);
  }
}

Word Lexer::word(const char* expected) {
  if (!at_word()) fail(expected);
  Word word;
  const char* const start = at_;
  uint32_t hash = add_to_hash(hash_start, *at_++);
  word.prefix_hash = hash;
  word.prefix_length = 1;
  for (uint8_t kind; (kind = class_of(*at_)) & word_part; ++at_) {
    hash = add_to_hash(hash, *at_);
    if (!(kind & digit)) {
      word.prefix_hash = hash;
      word.prefix_length = static_cast<uint32_t>(at_ - start) + 1;
    }
  }
  word.hash = hash;
  word.text = {start, static_cast<size_t>(at_ - start)};
  skip_space();
  return word;
}

std::string_view Lexer::directive(const char* expected) {
  const char* const start = at_ + 1;
  if (*at_ != '.' || at_end() || !(class_of(*start) & word_part)) fail(expected);
  do ++at_;
  while (class_of(*at_) & word_part);
  const std::string_view text(start, static_cast<size_t>(at_ - start));
  skip_space();
  return text;
}

Word Lexer::mnemonic_or_label(bool& label) {
  char* const start = at_;
  uint32_t hash = hash_start;
  char* written = at_;
  const auto take = [&] {
    hash = add_to_hash(hash, *at_);
    *written++ = *at_++;
  };
  if (*at_ == '%') take();
  for (uint32_t lost_lines = 0;;) {
    while (class_of(*at_) & dotted_part || (*at_ == ':' && at_[1] == ':')) {
      if (*at_ == ':') take();
      take();
    }
    char* const end = at_;
    const uint32_t line = line_;
    skip_space();
    if (*at_ != '.' || at_end()) {
      // ld .global .u32 has been joined: fill the gap with spaces, and as many newlines as before.
      std::fill(written, end, ' ');
      std::fill_n(written, lost_lines, '\n');
      break;
    }
    lost_lines += line_ - line;
  }
  if (written == start) fail("an instruction, a directive or a label");
  label = accept(':');
  Word word;
  word.text = {start, static_cast<size_t>(written - start)};
  word.hash = hash;
  return word;
}

std::string_view Lexer::string(const char* expected) {
  if (*at_ != '"') fail(expected);
  const char* const open = at_++;
  while (*at_ != '"') {
    if (*at_ == '\\' && at_ + 1 < end_) ++at_;
    if (at_ == end_ || *at_ == '\n') fail_at(open, "found a string without end, expected \"");
    ++at_;
  }
  const std::string_view text(open + 1, static_cast<size_t>(at_ - open - 1));
  advance(1);
  return text;
}

uint64_t Lexer::unsigned_number(const char* expected) {
  if (!(class_of(*at_) & digit)) fail(expected);
  const char* const start = at_;
  const Constant value = number();
  if (!value.is_integer()) fail_at(start, "found " + found_text(start) + ", expected " + expected);
  return static_cast<uint64_t>(value.bits);
}

Constant Lexer::number() {
  const char* const start = at_;
  const auto finish = [&](const char* stop, Constant value) {
    at_ += stop - at_;
    if (class_of(*at_) & word_part || *at_ == '.')
      fail_at(start, "found " + found_text(start) + ", expected a number");
    skip_space();
    return value;
  };
  const char letter = *start == '0' && start != end_ ? start[1] : '\0';
  if (letter == 'f' || letter == 'F' || letter == 'd' || letter == 'D') {
    const bool single = letter == 'f' || letter == 'F';
    const ptrdiff_t digits = single ? 8 : 16;
    uint64_t bits = 0;
    const char* const last = std::min<const char*>(start + 2 + digits, end_);
    const auto [stop, status] = std::from_chars(start + 2, last, bits, 16);
    if (stop != start + 2 + digits)
      fail_at(start, "found " + found_text(start) +
                         (single ? ", expected 8 hexadecimal digits after 0f"
                                 : ", expected 16 hexadecimal digits after 0d"));
    return finish(stop,
                  {single ? Constant::Kind::Single : Constant::Kind::Double, static_cast<int64_t>(bits)});
  }
  int base = 10;
  const char* first = start;
  if (letter == 'x' || letter == 'X') {
    base = 16;
    first += 2;
  } else if (letter == 'b' || letter == 'B') {
    base = 2;
    first += 2;
  } else {
    const char* stop = start;
    while (class_of(*stop) & digit) ++stop;
    const bool fraction = *stop == '.';
    if (fraction || *stop == 'e' || *stop == 'E') {
      double value = 0;
      const auto [after, status] = std::from_chars(start, static_cast<const char*>(end_), value);
      if (status == std::errc{}) return finish(after, floating(value));
      fail_at(start, "found " + found_text(start) + ", expected a number within the range of a double");
    }
    if (letter >= '0' && letter <= '9') base = 8;
  }
  uint64_t value = 0;
  const auto [stop, status] = std::from_chars(first, static_cast<const char*>(end_), value, base);
  if (status != std::errc{})
    fail_at(start, "found " + found_text(start) + ", expected a number of at most 64 bits");
  const bool suffix = *stop == 'U' || *stop == 'u';
  return finish(stop + suffix, integer(static_cast<int64_t>(value), suffix || value >> 63));
}

uint32_t Lexer::operator_here(uint32_t& length) const {
  const char c = *at_;
  const char next = at_ == end_ ? '\0' : at_[1];
  length = 1;
  const auto two = [&](uint32_t op) {
    length = 2;
    return op;
  };
  switch (c) {
    case '|':
      return next == '|' ? two(logical_or) : bit_or;
    case '&':
      return next == '&' ? two(logical_and) : bit_and;
    case '^':
      return bit_xor;
    case '=':
      return next == '=' ? two(equal) : no_operator;
    case '!':
      return next == '=' ? two(not_equal) : no_operator;
    case '<':
      return next == '<' ? two(shift_left) : next == '=' ? two(less_equal) : less;
    case '>':
      return next == '>' ? two(shift_right) : next == '=' ? two(greater_equal) : greater;
    case '+':
      return plus;
    case '-':
      return minus;
    case '*':
      return times;
    case '/':
      return divide;
    case '%':
      return remainder;
    default:
      return no_operator;
  }
}

Constant Lexer::unary(uint32_t depth) {
  if (depth > max_depth) fail_at(at_, "found an expression nested too deeply, expected at most 64 levels");
  const char* const start = at_;
  if (accept('-')) {
    Constant value = unary(depth + 1);
    if (value.is_integer()) {
      value.bits = static_cast<int64_t>(0 - static_cast<uint64_t>(value.bits));
    } else {
      const int sign = value.kind == Constant::Kind::Single ? 31 : 63;
      value.bits = static_cast<int64_t>(static_cast<uint64_t>(value.bits) ^ uint64_t{1} << sign);
    }
    return value;
  }
  if (accept('+')) return unary(depth + 1);
  const bool complement = *at_ == '~';
  if (complement || *at_ == '!') {
    advance(1);
    Constant value = unary(depth + 1);
    if (!value.is_integer()) fail_at(start, "found a floating-point operand, expected an integer");
    if (complement) value.bits = ~value.bits;
    return complement ? value : integer(value.bits == 0);
  }
  if (accept('(')) {
    if (*at_ == '.') {
      const std::string_view type = directive("a cast to .s64 or .u64");
      if (type != "s64" && type != "u64")
        fail_at(start, "found a cast to ." + std::string(type) + ", expected a cast to .s64 or .u64");
      expect(')', ")");
      Constant value = unary(depth + 1);
      if (!value.is_integer()) fail_at(start, "found a floating-point operand, expected an integer");
      return integer(value.bits, type == "u64");
    }
    const Constant value = conditional(depth + 1);
    expect(')', ")");
    return value;
  }
  if (at_word()) {
    if (word("a constant").text == "WARP_SZ") return integer(32);
    fail_at(start, "found " + found_text(start) + ", expected a constant");
  }
  if (!(class_of(*at_) & digit)) fail("a constant");
  return number();
}

Constant Lexer::binary(uint32_t precedence, uint32_t depth) {
  Constant left = unary(depth);
  for (;;) {
    uint32_t length = 0;
    const uint32_t op = operator_here(length);
    if (op == no_operator || precedences[op] < precedence) return left;
    const char* const start = at_;
    advance(length);
    const Constant right = binary(precedences[op] + 1, depth + 1);
    bool defined = true;
    left = left.is_integer() && right.is_integer()
               ? apply_to_integers(op, left, right, defined)
               : apply_to_doubles(op, left.number(), right.number(), defined);
    if (!defined) fail_at(start, "found an operation without a value, expected a constant expression");
  }
}

Constant Lexer::conditional(uint32_t depth) {
  const Constant condition = binary(1, depth);
  if (!accept('?')) return condition;
  const Constant yes = conditional(depth + 1);
  expect(':', ":");
  const Constant no = conditional(depth + 1);
  return condition.number() != 0 ? yes : no;
}

Constant Lexer::constant_expression(const char* expected) {
  constexpr std::string_view starts = "-+~!(W";
  if (!(class_of(*at_) & digit) && (at_end() || starts.find(*at_) == starts.npos)) fail(expected);
  return conditional(0);
}

int64_t Lexer::offset() {
  uint64_t sum = 0;
  while (*at_ == '+' || *at_ == '-') {
    const bool subtract = *at_ == '-';
    advance(1);
    const char* const start = at_;
    const Constant term = binary(precedences[times], 0);
    if (!term.is_integer()) fail_at(start, "found a floating-point number, expected an integer offset");
    const auto value = static_cast<uint64_t>(term.bits);
    sum += subtract ? 0 - value : value;
  }
  return static_cast<int64_t>(sum);
}

std::string Lexer::found_text(const char* place) const {
  if (place >= end_) return "the end of the text";
  const char* stop = place;
  if (class_of(*stop) & (dotted_part | word_start)) {
    do ++stop;
    while (stop < end_ && class_of(*stop) & dotted_part);
  } else {
    ++stop;
  }
  return quoted({place, static_cast<size_t>(stop - place)});
}

std::string Lexer::quoted(std::string_view found) {
  constexpr size_t most = 40;
  std::string text = "\"";
  for (const char c : found.substr(0, most)) {
    if (static_cast<uint8_t>(c) >= 0x20 && static_cast<uint8_t>(c) < 0x7f) {
      text += c;
    } else {
      constexpr char digits[] = "0123456789abcdef";
      text += "\\x";
      text += digits[static_cast<uint8_t>(c) >> 4];
      text += digits[static_cast<uint8_t>(c) & 15];
    }
  }
  return text + (found.size() > most ? "...\"" : "\"");
}

void Lexer::fail_found(const char* place, std::string_view expected) const {
  const char* stop = std::min<const char*>(place + 1, end_);
  while (stop < end_ && !std::strchr(" \t\r\n,;()[]{}", *stop)) ++stop;
  fail_at(place, "found " + quoted({place, static_cast<size_t>(stop - place)}) + ", expected " +
                     std::string(expected));
}

void Lexer::fail(std::string_view expected) const {
  fail_at(at_, "found " + found_text(at_) + ", expected " + std::string(expected));
}

void Lexer::fail_at(const char* place, std::string_view message) const {
  const char* const begin = text_.data();
  const auto line = 1 + std::count(begin, place, '\n');
  const char* start = place;
  while (start > begin && start[-1] != '\n') --start;
  throw ParseError(name_ + ":" + std::to_string(line) + ":" + std::to_string(place - start + 1) + ": " +
                   std::string(message));
}

}  // namespace simt::ptx
