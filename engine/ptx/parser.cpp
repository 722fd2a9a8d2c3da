#include "ptx/parser.hpp"

#include <cmath>

#include "ptx/module_parser.hpp"

namespace simt::ptx {

Module Parser::parse() {
  Lexer lexer(*text_, module_.name);
  lexer_ = &lexer;
  module_.locations.emplace_back();
  // Every register of a family is stored, so their number is limited in proportion to the text.
  register_budget_ = (uint64_t{1} << 20) + 4 * text_->size();
  expect_directive("version");
  parse_version();
  while (!lexer.at_end()) module_statement();
  if (module_.target == 0) lexer.fail(".target");
  resolve_module_names();
  module_.text = std::move(text_);
  return std::move(module_);
}

void Parser::expect_directive(std::string_view wanted) {
  const char* const start = lexer_->position();
  const std::string expected = "." + std::string(wanted);
  if (lexer_->directive(expected.c_str()) != wanted) fail_found(start, expected);
}

[[noreturn]] void Parser::fail_found(const char* place, std::string_view expected) const {
  lexer_->fail_found(place, expected);
}

void Parser::parse_version() {
  const char* const start = lexer_->position();
  const Constant version = lexer_->constant_expression();
  const double number = version.number();
  if (!(number >= 1) || number > 100) lexer_->fail_at(start, "found no version, expected such as 8.3");
  module_.version = static_cast<uint32_t>(std::lround(number * 10));
}

void Parser::parse_target() {
  do {
    const char* const start = lexer_->position();
    const std::string_view name = lexer_->word("a target such as sm_90").text;
    const size_t digits = name.starts_with("sm_") ? 3 : name.starts_with("compute_") ? 8 : 0;
    if (digits == 0) continue;  // texmode_independent, debug, map_f64_to_f32
    uint32_t number = 0;
    size_t at = digits;
    for (; at < name.size() && at < digits + 4 && name[at] >= '0' && name[at] <= '9'; ++at)
      number = number * 10 + static_cast<uint32_t>(name[at] - '0');
    if (number == 0) fail_found(start, "a target such as sm_90");
    module_.target = number;
    module_.target_suffix = name.substr(at);
  } while (lexer_->accept(','));
}

void Parser::parse_file() {
  const auto number = static_cast<uint32_t>(lexer_->unsigned_number("a file's number"));
  const std::string_view path = lexer_->string("a file's name");
  while (lexer_->accept(',')) lexer_->unsigned_number("a time or a size");
  module_.files.emplace_back(number, path);
}

void Parser::parse_location() {
  Location location;
  location.file = static_cast<uint32_t>(lexer_->unsigned_number("a file's number"));
  location.line = static_cast<uint32_t>(lexer_->unsigned_number("a line"));
  location.column = static_cast<uint32_t>(lexer_->unsigned_number("a column"));
  while (lexer_->accept(',')) {
    const char* const start = lexer_->position();
    const std::string_view attribute = lexer_->word("function_name or inlined_at").text;
    if (attribute == "function_name") {
      if (lexer_->peek() == '.')
        lexer_->directive("a label");
      else
        lexer_->word("a label");
      lexer_->offset();
    } else if (attribute == "inlined_at") {
      SourcePlace call{};
      call[0] = static_cast<uint32_t>(lexer_->unsigned_number("a file's number"));
      call[1] = static_cast<uint32_t>(lexer_->unsigned_number("a line"));
      call[2] = static_cast<uint32_t>(lexer_->unsigned_number("a column"));
      location.call = location_of(call);
    } else {
      fail_found(start, "function_name or inlined_at");
    }
  }
  location_ = static_cast<uint32_t>(module_.locations.size());
  module_.locations.push_back(location);
  places_[{location.file, location.line, location.column}] = location_;
}

/// The last location of the function with this file, line and column.
uint32_t Parser::location_of(const SourcePlace& place) {
  const auto [at, is_new] = places_.try_emplace(place, static_cast<uint32_t>(module_.locations.size()));
  if (is_new) module_.locations.push_back({place[0], place[1], place[2]});
  return at->second;
}

void Parser::parse_section() {
  lexer_->directive("a section's name");
  lexer_->skip_block();
}

void Parser::parse_pragma() {
  do lexer_->string("a string");
  while (lexer_->accept(','));
  lexer_->expect(';', ";");
}

void Parser::parse_alias() {
  const std::string_view name = lexer_->word("a function's name").text;
  lexer_->expect(',', ",");
  module_.aliases.emplace_back(name, lexer_->word("a function's name").text);
  lexer_->expect(';', ";");
}

bool Parser::skip_foreign_line() {
  if (lexer_->peek() == '#' || (lexer_->peek() == '@' && lexer_->peek_second() == '@')) {
    lexer_->skip_line();
    lexer_->accept('\n');
    return true;
  }
  return false;
}

void Parser::module_statement() {
  if (skip_foreign_line() || lexer_->accept(';')) return;
  const char* const start = lexer_->position();
  Linkage linkage = Linkage::Internal;
  std::string_view directive = lexer_->directive("a directive");
  while (linkage_named(directive, linkage)) directive = lexer_->directive("a directive");
  if (directive == "func" || directive == "entry") return parse_function(directive == "entry", linkage);
  if (directive == "file") return parse_file();
  if (directive == "loc") return parse_location();
  if (directive == "section") return parse_section();
  if (directive == "pragma") return parse_pragma();
  if (directive == "alias") return parse_alias();
  if (directive == "version") return parse_version();
  if (directive == "target") return parse_target();
  if (directive == "address_size") {
    module_.address_size = static_cast<uint32_t>(lexer_->unsigned_number("32 or 64"));
    if (module_.address_size != 32 && module_.address_size != 64)
      fail_found(start, "an address size of 32 or 64");
    return;
  }
  const Space space = space_named(directive);
  if (space == Space::None || space == Space::Register || space == Space::Param)
    fail_found(start, "a directive of a module, such as .func or .global");
  parse_variables(space, linkage, directive == "tex");
}

void Parser::resolve_module_names() {
  for (const auto& [function, place] : unresolved_) {
    Operand& operand = module_.functions[function].operands[place];
    const Symbol* const symbol = symbols_.value(operand.text, Lexer::hash(operand.text));
    if (!symbol) continue;
    operand.kind = OperandKind::Variable;
    operand.index = symbol->index;
  }
}

Module parse(std::string text, std::string name) {
  return Parser(std::move(text), std::move(name)).parse();
}

}  // namespace simt::ptx
