#include "sass/operand.hpp"

#include <algorithm>
#include <charconv>
#include <stdexcept>

namespace simt::sass {
namespace {

bool is_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Operand operand() {
    Operand result = value();
    suffixes(result);
    if (at_ != text_.size()) fail("its end");
    return result;
  }

 private:
  [[noreturn]] void fail(const std::string& expected) const {
    throw std::invalid_argument("operand `" + std::string(text_) + "`: expected " + expected +
                                " at character " + std::to_string(at_ + 1));
  }
  char next() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(std::string_view token) {
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!take(token)) fail("`" + std::string(token) + "`");
  }

  Operand value() {
    if (next() == '-' && at_ + 1 < text_.size() && (is_digit(text_[at_ + 1]) || names_number(at_ + 1)))
      return number();
    const bool negated = take("-") || take("!");
    const bool inverted = !negated && take("~");
    const bool absolute = take("|");
    Operand result = plain();
    if (absolute) {
      suffixes(result);
      expect("|");
    }
    result.negated = negated;
    result.inverted = inverted;
    result.absolute = absolute;
    return result;
  }

  bool names_number(size_t at) const {
    const std::string_view rest = text_.substr(at);
    return rest.starts_with("INF") || rest.starts_with("QNAN") || rest.starts_with("SNAN");
  }

  Operand plain() {
    if (next() == '[') return memory();
    if (next() == '{') return set();
    if (take("32@")) return symbol();
    if (next() == '+' || is_digit(next()) || names_number(at_)) return number();
    if (take("c[")) return constant(false);
    if (take("cx[")) return constant(true);
    for (const std::string_view kind : {"desc", "gdesc", "tmem", "idesc"}) {
      if (!text_.substr(at_).starts_with(kind) || text_.substr(at_ + kind.size(), 1) != "[") continue;
      at_ += kind.size() + 1;
      Operand result = descriptor();
      result.text = kind;
      return result;
    }
    return name();
  }

  /// After `32@`: half of an address, `lo(...)` or `hi(...)`, which the relocated instruction holds.
  Operand symbol() {
    Operand result;
    result.kind = OperandKind::Address;
    result.text = text_;
    at_ = text_.size();
    return result;
  }

  Operand number() {
    Operand result;
    const size_t begin = at_;
    const bool negative = take("-");
    if (!negative) take("+");
    if (take("0x")) {
      result.kind = OperandKind::Integer;
      const uint64_t magnitude = hexadecimal();
      result.value = static_cast<int64_t>(negative ? 0 - magnitude : magnitude);
      return result;
    }
    while (is_word(next()) || next() == '.' || ((next() == '-' || next() == '+') && exponent_before(begin)))
      ++at_;
    if (at_ == begin) fail("a number");
    const std::string_view digits = text_.substr(begin, at_ - begin);
    result.text = digits;
    result.kind = OperandKind::Number;
    return result;
  }
  bool exponent_before(size_t begin) const {
    return at_ > begin && (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E');
  }

  uint64_t hexadecimal() {
    uint64_t result = 0;
    const char* const begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), result, 16);
    if (error != std::errc()) fail("a hexadecimal number of 64 bits");
    at_ += static_cast<size_t>(end - begin);
    return result;
  }

  /// A register: its kind and index.
  bool register_named(std::string_view prefix, std::string_view zero, uint32_t zero_index, uint32_t most,
                      uint32_t& index) {
    const size_t before = at_;
    if (!zero.empty() && take(zero) && !is_word(next())) {
      index = zero_index;
      return true;
    }
    at_ = before;
    if (!take(prefix) || !is_digit(next())) {
      at_ = before;
      return false;
    }
    uint32_t number = 0;
    while (is_digit(next()) && number <= most)
      number = 10 * number + static_cast<uint32_t>(text_[at_++] - '0');
    if (is_word(next())) {
      at_ = before;
      return false;
    }
    if (number >= most) fail("a register below " + std::to_string(most));
    index = number;
    return true;
  }
  bool general(uint32_t& index) { return register_named("R", "RZ", Operand::zero, 255, index); }
  bool uniform(uint32_t& index) { return register_named("UR", "URZ", Operand::zero, 255, index); }

  Operand name() {
    Operand result;
    uint32_t& index = result.index;
    const auto is = [&](OperandKind kind) {
      result.kind = kind;
      return true;
    };
    const bool known =
        (general(index) && is(OperandKind::Register)) || (uniform(index) && is(OperandKind::Uniform)) ||
        (register_named("P", "PT", Operand::true_predicate, 7, index) && is(OperandKind::Predicate)) ||
        (register_named("UP", "UPT", Operand::true_predicate, 7, index) &&
         is(OperandKind::UniformPredicate)) ||
        (register_named("B", "", 0, 16, index) && is(OperandKind::Convergence)) ||
        (register_named("SB", "", 0, 6, index) && is(OperandKind::Dependence));
    if (known) return result;
    const size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != '|') ++at_;
    if (at_ == begin) fail("a name");
    result.text = text_.substr(begin, at_ - begin);
    return result;
  }

  Operand set() {
    Operand result;
    result.kind = OperandKind::Set;
    expect("{");
    while (!take("}")) {
      if (!is_digit(next())) fail("a digit");
      uint32_t number = 0;
      while (is_digit(next()) && number < 64)
        number = 10 * number + static_cast<uint32_t>(text_[at_++] - '0');
      if (number > 62) fail("a number up to 62");
      result.value |= int64_t{1} << number;
      take(",");
      take(" ");
    }
    return result;
  }

  /// After `c[` or `cx[`.
  Operand constant(bool indirect) {
    Operand result;
    result.kind = OperandKind::Constant;
    if (indirect) {
      if (!uniform(result.uniform)) fail("a uniform register");
      result.bank = Operand::none;
    } else {
      expect("0x");
      result.bank = static_cast<uint32_t>(hexadecimal());
      if (result.bank > 31) fail("a bank up to 31");
    }
    expect("][");
    offset(result);
    expect("]");
    return result;
  }

  Operand memory() {
    Operand result;
    result.kind = OperandKind::Memory;
    expect("[");
    if (!take("]")) {
      offset(result);
      expect("]");
    }
    return result;
  }

  /// After `desc[` and the like: a descriptor, and the address it applies to, if there is one.
  Operand descriptor() {
    Operand result;
    if (!uniform(result.descriptor)) fail("a uniform register");
    while (take(".")) result.suffixes.push_back(suffix());
    if (take("+0x")) result.value = static_cast<int64_t>(hexadecimal());
    if (take("+-0x")) result.value = -static_cast<int64_t>(hexadecimal());
    expect("]");
    if (next() == '[') {
      const uint32_t of = result.descriptor;
      auto kept = result.suffixes;
      result = memory();
      result.descriptor = of;
      result.suffixes = kept;
    } else {
      result.kind = OperandKind::Memory;
    }
    return result;
  }

  /// The sum in brackets.
  void offset(Operand& result) {
    do {
      const bool negative = take("-");
      uint32_t index = 0;
      if (take("0x")) {
        const uint64_t magnitude = hexadecimal();
        result.value += static_cast<int64_t>(negative ? 0 - magnitude : magnitude);
      } else if (general(index)) {
        if (result.base != Operand::none) fail("one register");
        result.base = index;
        while (take(".")) base_suffix(result, suffix());
      } else if (uniform(index)) {
        if (result.uniform != Operand::none) fail("one uniform register");
        result.uniform = index;
        while (take(".")) {
          if (suffix() != "64") fail("`64`");
          result.wide_uniform = true;
        }
      } else {
        fail("a register or a number");
      }
    } while (take("+"));
  }
  void base_suffix(Operand& result, std::string_view name) {
    if (name == "64")
      result.wide_base = true;
    else if (name == "U32")
      result.unsigned_base = true;
    else if (name == "X4" || name == "X8" || name == "X16")
      result.scale = name == "X4" ? 4 : name == "X8" ? 8 : 16;
    else if (name == "reuse")
      result.reused = true;
    else
      result.base_suffixes.push_back(name);
  }

  std::string_view suffix() {
    const size_t begin = at_;
    while (is_word(next())) ++at_;
    if (at_ == begin) fail("a suffix");
    return text_.substr(begin, at_ - begin);
  }
  void suffixes(Operand& result) {
    while (take(".")) {
      const std::string_view name = suffix();
      if (name == "reuse")
        result.reused = true;
      else
        result.suffixes.push_back(name);
    }
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

bool Operand::has(std::string_view suffix) const {
  return std::find(suffixes.begin(), suffixes.end(), suffix) != suffixes.end();
}

bool Operand::is_zero() const {
  return (kind == OperandKind::Register || kind == OperandKind::Uniform) && index == zero;
}

Operand parse_operand(std::string_view text) {
  return Parser(text).operand();
}

}  // namespace simt::sass
