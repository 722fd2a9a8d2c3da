#include <algorithm>

#include "ptx/module_parser.hpp"

namespace simt::ptx {

namespace {

constexpr size_t max_scopes = 256;

}  // namespace

void Parser::parse_parameters(std::vector<Variable>& list, bool prototype) {
  lexer_->expect('(', "(");
  if (lexer_->accept(')')) return;
  do {
    const char* start = lexer_->position();
    DeclarationHead head;
    head.space = space_named(lexer_->directive(".param or .reg"));
    if (head.space != Space::Param && head.space != Space::Register) fail_found(start, ".param or .reg");
    parse_head(head);
    start = lexer_->position();
    std::vector<uint64_t> dimensions;
    Word word;
    Variable variable = parse_declarator(head, !prototype, dimensions, word);
    list.push_back(variable);
    if (prototype) continue;
    if (head.space == Space::Register) {
      declare_register(word, 1, head, false, start);
      function_->variables.push_back(std::move(variable));
    } else {
      declare_variable(std::move(variable), word, bytes(head.type) * head.vector, start);
    }
  } while (lexer_->accept(','));
  lexer_->expect(')', ") or ,");
}

std::array<uint32_t, 3> Parser::parse_extent() {
  std::array<uint32_t, 3> extent{1, 1, 1};
  size_t k = 0;
  do {
    const char* const start = lexer_->position();
    const uint64_t size = lexer_->unsigned_number("a number");
    if (k == 3 || size == 0 || size > INT32_MAX) fail_found(start, "up to three numbers above 0");
    extent[k++] = static_cast<uint32_t>(size);
  } while (lexer_->accept(','));
  return extent;
}

uint32_t Parser::parse_count() {
  const char* const start = lexer_->position();
  const uint64_t count = lexer_->unsigned_number("a number");
  if (count > INT32_MAX) fail_found(start, "a number below 2^31");
  return static_cast<uint32_t>(count);
}

void Parser::parse_function_directives(Function& function) {
  while (lexer_->peek() == '.') {
    const char* const start = lexer_->position();
    const std::string_view directive = lexer_->directive("a directive");
    if (directive == "noreturn")
      function.noreturn = true;
    else if (directive == "maxntid")
      function.max_threads = parse_extent();
    else if (directive == "reqntid")
      function.required_threads = parse_extent();
    else if (directive == "reqnctapercluster")
      function.cluster = parse_extent();
    else if (directive == "minnctapersm")
      function.min_ctas = parse_count();
    else if (directive == "maxnreg")
      function.max_registers = parse_count();
    else if (directive == "explicitcluster")
      function.explicit_cluster = true;
    else if (directive == "blocksareclusters")
      function.blocks_are_clusters = true;
    else if (directive == "maxnctapersm" || directive == "maxclusterrank" || directive == "abi_preserve" ||
             directive == "abi_preserve_control")
      parse_count();
    else if (directive == "pragma")
      parse_pragma();
    else
      fail_found(start, "a directive of a function, such as .maxntid, or its body");
  }
}

void Parser::parse_function(bool entry, Linkage linkage) {
  Function function;
  function_ = &function;
  function.entry = entry;
  function.linkage = linkage;
  location_ = 0;
  places_.clear();
  pending_.clear();
  while (lexer_->peek() == '.') {
    const char* const start = lexer_->position();
    if (lexer_->directive("a name") != "attribute") fail_found(start, ".attribute or a name");
    DeclarationHead unused;
    parse_attribute(unused);
  }
  open_scope();
  if (!entry && lexer_->peek() == '(') parse_parameters(function.results, false);
  const char* const start = lexer_->position();
  function.line = lexer_->line();
  const Word word = lexer_->word("a function's name");
  function.name = word.text;
  if (lexer_->peek() == '(') parse_parameters(function.parameters, false);
  parse_function_directives(function);
  const uint32_t index = function_index(word.text);
  if (!lexer_->accept(';')) {
    const Function& earlier = module_.functions[index];
    if (earlier.defined && earlier.linkage != Linkage::Weak && linkage != Linkage::Weak) fail_again(start);
    lexer_->expect('{', "{ or ;");
    function.defined = true;
    function.body_begin = offset_of_position();
    parse_body();
  }
  close_scope();
  function_ = nullptr;
  Function& known = module_.functions[index];
  function.noreturn |= known.noreturn;
  if (known.defined && function.defined) {
    if (linkage == Linkage::Weak) return;
    std::erase_if(unresolved_, [&](const auto& name) { return name.first == index; });
  }
  for (const Pending& name : pending_) leave_unresolved(name, index);
  if (function.defined || known.name.empty())
    known = std::move(function);
  else
    known.noreturn = function.noreturn;
}

uint32_t Parser::function_index(std::string_view name) {
  const auto [place, is_new] =
      functions_by_name_.emplace(name, static_cast<uint32_t>(module_.functions.size()));
  if (is_new) module_.functions.emplace_back();
  return place->second;
}

void Parser::open_scope() {
  if (scopes_.size() >= max_scopes) lexer_->fail("at most 256 nested scopes");
  symbols_.open_scope();
  scopes_.push_back({pending_.size(), false});
}

void Parser::close_scope() {
  if (scopes_.back().labels) {
    const auto first = pending_.begin() + static_cast<ptrdiff_t>(scopes_.back().pending);
    pending_.erase(std::remove_if(first, pending_.end(), [&](const Pending& name) { return resolve(name); }),
                   pending_.end());
  }
  scopes_.pop_back();
  symbols_.close_scope();
}

bool Parser::resolve(const Pending& name) {
  const Symbol* const symbol = symbols_.label(name.name, Lexer::hash(name.name));
  if (!symbol || symbol->depth != symbols_.depth()) return false;
  const bool label = symbol->kind == Symbol::Kind::Label;
  if (name.list > 0) {
    if (label) function_->targets[name.list - 1].labels[name.operand] = symbol->index;
    return label;
  }
  if (label && !name.branch) return false;
  Operand& operand = function_->operands[name.operand];
  operand.index = symbol->index;
  operand.local = !label;
  if (label)
    operand.kind = OperandKind::Label;
  else
    operand.component = symbol->kind == Symbol::Kind::TargetList ? 1 : 2;
  return true;
}

void Parser::leave_unresolved(const Pending& name, uint32_t function) {
  // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): a place in the source
  if (name.branch || name.list > 0) fail_found(name.name.data(), "a label of this function");
  unresolved_.emplace_back(function, name.operand);
}

void Parser::parse_body() {
  for (const size_t outer = scopes_.size();;) {
    switch (lexer_->peek()) {
      case '}':
        if (scopes_.size() == outer) function_->body_end = offset_of_position();
        lexer_->accept('}');
        if (scopes_.size() == outer) return;
        close_scope();
        break;
      case '{':
        open_scope();
        lexer_->accept('{');
        break;
      case ';':
        lexer_->accept(';');
        break;
      case '.': {
        const char* const start = lexer_->position();
        body_directive(lexer_->directive("a directive"), start);
        break;
      }
      case '#':
        skip_foreign_line();
        break;
      default:
        if (lexer_->at_end()) lexer_->fail("}");
        statement();
    }
  }
}

void Parser::body_directive(std::string_view directive, const char* start) {
  if (directive == "loc") return parse_location();
  if (directive == "reg") return parse_registers();
  if (directive == "pragma") return parse_pragma();
  if (directive == "file") return parse_file();
  if (directive == "section") return parse_section();
  Linkage linkage = Linkage::Internal;
  while (linkage_named(directive, linkage)) directive = lexer_->directive("a state space");
  const Space space = space_named(directive);
  if (space == Space::None || space == Space::Register)
    fail_found(start, "a directive of a function's body, such as .reg or .shared");
  parse_variables(space, linkage, directive == "tex");
}

}  // namespace simt::ptx
