#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace simt::ptx {

/// An identifier, with the hashes used to look it up: of the whole word, and of the part before its trailing
/// digits, which may be the prefix of a register family.
struct Word {
  std::string_view text;
  uint32_t hash = 0;
  uint32_t prefix_hash = 0;
  uint32_t prefix_length = 0;
};

/// A constant: an integer (.s64 or .u64), a double, or a float written as 0f...
struct Constant {
  enum class Kind : uint8_t { Signed, Unsigned, Double, Single };
  Kind kind = Kind::Signed;
  int64_t bits = 0;  ///< the integer, or the bits of the double or float

  bool is_integer() const { return kind <= Kind::Unsigned; }
  double number() const;  ///< the value as a double
};

/// Splits PTX into words, numbers and constant expressions. Between calls its position is the first character
/// of the next token, after white space and comments.
class Lexer {
 public:
  static constexpr uint32_t hash_start = 2166136261u;
  static uint32_t add_to_hash(uint32_t hash, char c) { return (hash ^ static_cast<uint8_t>(c)) * 16777619u; }
  static uint32_t hash(std::string_view text);

  /// `text` must outlive the lexer, which modifies it only where a mnemonic is written with spaces.
  Lexer(std::string& text, const std::string& name);

  uint32_t line() const { return line_; }
  const char* position() const { return at_; }
  bool at_end() const { return at_ == end_; }
  char peek() const { return *at_; }
  char peek_second() const { return at_ == end_ ? '\0' : at_[1]; }
  bool at_word() const;
  /// The word that begins `skipped` characters ahead, or after the blanks there; empty if there is none.
  std::string_view word_ahead(size_t skipped) const;

  bool accept(char c) {
    if (*at_ != c || at_ == end_) return false;
    advance(1);
    return true;
  }
  void expect(char c, const char* expected) {
    if (!accept(c)) fail(expected);
  }
  Word word(const char* expected);
  /// The directive, type or component after a dot, without the dot, which must be the next character.
  std::string_view directive(const char* expected);
  /// A dotted word such as ld.global.v4.f32 or cp.async.bulk.shared::cluster.global; or, if a single colon
  /// follows, a label: then sets `label` and consumes the colon.
  Word mnemonic_or_label(bool& label);
  /// A string in double quotes, unprocessed.
  std::string_view string(const char* expected);
  uint64_t unsigned_number(const char* expected);
  Constant constant_expression(const char* expected = "a constant");
  /// Terms added to a name: +4-(2*8); 0 if there are none.
  int64_t offset();
  /// Skips a block in braces without interpreting it, or the rest of the line.
  void skip_block();
  void skip_line();

  /// Throws ParseError for the next token.
  [[noreturn]] void fail(std::string_view expected) const;
  /// For something already consumed when found to be wrong; quotes up to the next blank or bracket.
  [[noreturn]] void fail_found(const char* place, std::string_view expected) const;
  [[noreturn]] void fail_at(const char* place, std::string_view message) const;

 private:
  void advance(size_t count) {
    at_ += count;
    skip_space();
  }
  void skip_space();
  void skip_comment();
  std::string found_text(const char* place) const;
  static std::string quoted(std::string_view found);
  Constant number();
  Constant unary(uint32_t depth);
  Constant binary(uint32_t precedence, uint32_t depth);
  Constant conditional(uint32_t depth);
  uint32_t operator_here(uint32_t& length) const;

  std::string& text_;
  const std::string& name_;
  char* at_;
  char* end_;
  uint32_t line_ = 1;
};

}  // namespace simt::ptx
