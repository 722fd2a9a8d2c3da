#include <algorithm>
#include <bit>

#include "ptx/module_parser.hpp"

namespace simt::ptx {

namespace {

constexpr uint64_t max_variable_bytes = uint64_t{1} << 48;
constexpr uint64_t max_initial_bytes = uint64_t{1} << 28;  ///< of all initialised variables together
constexpr uint64_t max_alignment = 1 << 16;

}  // namespace

Space space_named(std::string_view directive) {
  if (directive == "param") return Space::Param;
  if (directive == "reg") return Space::Register;
  if (directive == "shared") return Space::Shared;
  if (directive == "local") return Space::Local;
  if (directive == "global" || directive == "tex") return Space::Global;
  if (directive == "const") return Space::Constant;
  return Space::None;
}

bool linkage_named(std::string_view directive, Linkage& linkage) {
  if (directive == "visible")
    linkage = Linkage::Visible;
  else if (directive == "extern")
    linkage = Linkage::Extern;
  else if (directive == "weak")
    linkage = Linkage::Weak;
  else if (directive == "common")
    linkage = Linkage::Common;
  else
    return false;
  return true;
}

// --- declarations ------------------------------------------------------------------------------------------

void Parser::skip_parentheses() {
  lexer_->expect('(', "(");
  while (!lexer_->accept(')')) {
    if (!lexer_->accept(',')) lexer_->unsigned_number("a number or )");
  }
}

void Parser::parse_attribute(DeclarationHead& head) {
  lexer_->expect('(', "(");
  do {
    const char* const start = lexer_->position();
    const std::string_view attribute = lexer_->directive("an attribute");
    if (attribute == "managed")
      head.managed = true;
    else if (attribute == "unified")
      skip_parentheses();
    else
      fail_found(start, ".managed or .unified");
  } while (lexer_->accept(','));
  lexer_->expect(')', ")");
}

uint32_t Parser::parse_alignment() {
  const char* const start = lexer_->position();
  const uint64_t alignment = lexer_->unsigned_number("an alignment in bytes");
  if (!std::has_single_bit(alignment) || alignment > max_alignment)
    fail_found(start, "a power of two up to 65536");
  return static_cast<uint32_t>(alignment);
}

void Parser::parse_head(DeclarationHead& head) {
  if (head.space == Space::Constant && lexer_->accept('[')) {  // a bank, as in old PTX
    lexer_->unsigned_number("a bank");
    lexer_->expect(']', "]");
  }
  bool pointer = false;
  while (lexer_->peek() == '.') {
    const char* const start = lexer_->position();
    const std::string_view text = lexer_->directive("a type");
    if (text == "align") {
      const uint32_t alignment = parse_alignment();
      if (!pointer) head.alignment = alignment;  // otherwise the alignment of what the parameter points to
    } else if (text == "v2" || text == "v4" || text == "v8") {
      head.vector = static_cast<uint32_t>(text[1] - '0');
    } else if (text == "attribute") {
      parse_attribute(head);
    } else if (text == "ptr") {
      pointer = true;
    } else if (pointer && space_named(text) != Space::None) {
      continue;
    } else if (const Type type = type_named(text); type != Type::None) {
      // .param .u64 .texref name: an opaque type takes precedence
      if (head.type == Type::None || is_opaque(type)) head.type = type;
    } else {
      fail_found(start, "a type, .align or a name");
    }
  }
  if (head.type == Type::None) lexer_->fail("a type");
}

Variable Parser::parse_declarator(const DeclarationHead& head, bool named, std::vector<uint64_t>& dimensions,
                                  Word& word) {
  Variable variable;
  variable.line = lexer_->line();
  variable.space = head.space;
  variable.linkage = head.linkage;
  variable.type = head.type;
  variable.managed = head.managed;
  if (named || lexer_->at_word()) word = lexer_->word("a name");
  variable.name = word.text;
  const uint64_t element = uint64_t{bytes(head.type)} * head.vector;
  variable.alignment =
      head.alignment ? head.alignment : std::max<uint32_t>(1, static_cast<uint32_t>(element));
  variable.size = element;
  dimensions.clear();
  const char* const start = lexer_->position();
  while (lexer_->accept('[')) {
    uint64_t count = 0;
    if (lexer_->peek() == ']') {
      if (!dimensions.empty()) lexer_->fail("a size");
    } else {
      const Constant constant = lexer_->constant_expression();
      if (!constant.is_integer()) fail_found(start, "an integer size");
      count = static_cast<uint64_t>(constant.bits);
      if (count > max_variable_bytes) fail_found(start, "a size below 2^48 bytes");
    }
    lexer_->expect(']', "]");
    variable.size *= count;
    if (variable.size > max_variable_bytes) fail_found(start, "a size below 2^48 bytes");
    dimensions.push_back(count);
  }
  if (bytes(head.type) == 0 && head.space != Space::Register)
    lexer_->fail_at(start, "found a variable of type ." + std::string(ptx::name(head.type)) +
                               ", expected a type of at least 8 bits");
  return variable;
}

void Parser::parse_variables(Space space, Linkage linkage, bool texture) {
  DeclarationHead head;
  head.space = space;
  head.linkage = linkage;
  parse_head(head);
  if (texture) head.type = Type::Texref;
  do {
    const char* const start = lexer_->position();
    std::vector<uint64_t> dimensions;
    Word word;
    Variable variable = parse_declarator(head, true, dimensions, word);
    if (lexer_->accept('=')) parse_initialiser(variable, head, dimensions);
    declare_variable(std::move(variable), word, bytes(head.type) * head.vector, start);
  } while (lexer_->accept(','));
  lexer_->expect(';', ";");
}

void Parser::declare_variable(Variable variable, const Word& word, uint32_t element_size, const char* place) {
  Symbol symbol;
  symbol.name = word.text;
  symbol.hash = word.hash;
  symbol.element_size = element_size;
  const Symbol* const known = symbols_.value(word.text, word.hash);
  const bool again = known && known->depth == symbols_.depth();
  const bool everywhere = variable.space == Space::Global || variable.space == Space::Constant;
  if (function_ && again) fail_again(place);
  if (function_ && !everywhere) {  // otherwise it lives as long as the module; only its name ends with the
                                   // scope
    symbol.kind = Symbol::Kind::LocalVariable;
    symbol.index = static_cast<uint32_t>(function_->variables.size());
    function_->variables.push_back(std::move(variable));
    symbols_.add(symbol);
    return;
  }
  if (again) {
    if (known->kind != Symbol::Kind::ModuleVariable) fail_again(place);
    Variable& earlier = module_.variables[known->index];
    const uint32_t alignment = std::max(earlier.alignment, variable.alignment);
    // Of several definitions, a strong one takes precedence, else the first; if all are common, the largest.
    const auto yields = [](const Variable& a, const Variable& b) {
      return a.linkage == Linkage::Extern || (a.linkage == Linkage::Weak && b.linkage != Linkage::Extern) ||
             (a.linkage == Linkage::Common && b.linkage != Linkage::Extern &&
              (b.linkage != Linkage::Common || b.size > a.size));
    };
    if (yields(earlier, variable) && variable.linkage != Linkage::Weak)
      earlier = std::move(variable);
    else if (earlier.linkage == Linkage::Extern)
      earlier = std::move(variable);
    else if (!yields(variable, earlier) && earlier.linkage != Linkage::Common)
      fail_again(place);
    earlier.alignment = alignment;
    return;
  }
  symbol.kind = Symbol::Kind::ModuleVariable;
  symbol.index = static_cast<uint32_t>(module_.variables.size());
  module_.variables.push_back(std::move(variable));
  symbols_.add(symbol);
}

[[noreturn]] void Parser::fail_again(const char* place) const {
  fail_found(place, "a name that is not yet declared in this scope");
}

// --- registers ---------------------------------------------------------------------------------------------

void Parser::parse_registers() {
  DeclarationHead head;
  head.space = Space::Register;
  parse_head(head);
  do {
    const char* const start = lexer_->position();
    const Word word = lexer_->word("a register's name");
    const bool family = lexer_->accept('<');
    uint64_t count = 1;
    if (family) {
      count = lexer_->unsigned_number("a number of registers");
      lexer_->expect('>', ">");
    }
    declare_register(word, count, head, family, start);
  } while (lexer_->accept(','));
  lexer_->expect(';', ";");
}

void Parser::declare_register(const Word& word, uint64_t count, const DeclarationHead& head, bool family,
                              const char* place) {
  if (bytes(head.type) == 0 && head.type != Type::Pred) fail_found(place, "a register of at least 8 bits");
  const Symbol* const known =
      family ? symbols_.family(word.text, word.hash, 0) : symbols_.value(word.text, word.hash);
  if (known && known->depth == symbols_.depth()) fail_again(place);
  if (count > register_budget_ / head.vector) fail_found(place, "fewer registers in so short a text");
  register_budget_ -= count * head.vector;
  Symbol symbol;
  symbol.name = word.text;
  symbol.hash = word.hash;
  symbol.kind = family ? Symbol::Kind::Family : Symbol::Kind::Register;
  symbol.index = static_cast<uint32_t>(function_->registers.size());
  symbol.count = static_cast<uint32_t>(count);
  symbol.element_size = head.vector;
  symbols_.add(symbol);
  digit_prefixes_ |= family && word.prefix_length < word.text.size();
  RegisterDeclaration declaration{word.text, -1, head.type, static_cast<uint8_t>(head.vector)};
  for (uint64_t k = 0; k < count; ++k) {
    if (family) declaration.number = static_cast<int32_t>(k);
    for (uint32_t component = 0; component < head.vector; ++component)
      function_->registers.push_back(declaration);
  }
}

// --- initialisers ------------------------------------------------------------------------------------------

void Parser::parse_initialiser(Variable& variable, const DeclarationHead& head,
                               std::vector<uint64_t> dimensions) {
  if (is_opaque(head.type)) return parse_properties(variable);
  if (head.vector > 1) dimensions.push_back(head.vector);
  Initialiser init{variable, dimensions, std::vector<uint64_t>(dimensions.size())};
  uint64_t stride = bytes(head.type);
  for (size_t d = dimensions.size(); d-- > 0; stride *= dimensions[d]) init.strides[d] = stride;
  const bool unsized = !dimensions.empty() && dimensions[0] == 0;
  const char* const start = lexer_->position();
  if (!unsized) {
    if (variable.size > max_initial_bytes - initial_bytes_)
      fail_found(start, "less than 256 MiB of initialised data");
    variable.initial.resize(variable.size);
  }
  initialise(init, 0, 0);
  if (unsized) {
    const uint64_t row = std::max<uint64_t>(1, init.strides[0]);
    variable.initial.resize((variable.initial.size() + row - 1) / row * row);
    variable.size = variable.initial.size();
  }
  initial_bytes_ += variable.initial.size();
  if (std::all_of(variable.initial.begin(), variable.initial.end(), [](uint8_t b) { return b == 0; }))
    variable.initial = {};
}

void Parser::initialise(const Initialiser& init, size_t level, uint64_t at) {
  if (level == init.dimensions.size()) {
    const bool braces = lexer_->accept('{');
    initialise_element(init.variable, at);
    if (braces) lexer_->expect('}', "}");
    return;
  }
  lexer_->expect('{', "{");
  const bool unsized = init.dimensions[level] == 0 && level == 0;
  const uint64_t row = init.strides[level];
  const uint64_t element = bytes(init.variable.type);
  const uint64_t begin = at;
  const uint64_t end = unsized ? max_initial_bytes - initial_bytes_ : begin + row * init.dimensions[level];
  while (lexer_->peek() != '}') {
    const bool list = lexer_->peek() == '{' && row > 0;
    if (list) at = begin + (at - begin + row - 1) / row * row;
    const uint64_t step = list ? row : element;
    if (at + step > end) lexer_->fail("} after as many values as the variable holds");
    initialise(init, list ? level + 1 : init.dimensions.size(), at);
    at += step;
    if (!lexer_->accept(',')) break;
  }
  lexer_->expect('}', "} or ,");
}

void Parser::store(Variable& variable, uint64_t at, uint64_t value, uint64_t size) {
  if (variable.initial.size() < at + size) variable.initial.resize(at + size);
  for (uint64_t k = 0; k < size; ++k)
    variable.initial[at + k] = k < 8 ? static_cast<uint8_t>(value >> 8 * k) : 0;
}

void Parser::initialise_element(Variable& variable, uint64_t at) {
  const char* const start = lexer_->position();
  const uint32_t size = bytes(variable.type);
  if (lexer_->at_word() && lexer_->word_ahead(0) != "WARP_SZ") {
    initialise_address(variable, at, static_cast<uint8_t>(std::min(size, 8u)), 0);
    return;
  }
  const Constant value = lexer_->constant_expression();
  if (value.is_integer() && lexer_->peek() == '(') {  // 0xFF00(symbol): some bits of an address
    const auto mask = static_cast<uint64_t>(value.bits);
    const int shift = mask ? std::countr_zero(mask) : 0;
    const int width = std::popcount(mask);
    if (mask == 0 || shift % 8 || width % 8 || mask >> shift != ~uint64_t{0} >> (64 - width) ||
        static_cast<uint32_t>(width) > size * 8)
      fail_found(start, "a mask of adjoining bytes such as 0xFF00, no wider than the variable's type");
    lexer_->expect('(', "(");
    initialise_address(variable, at, static_cast<uint8_t>(width / 8), static_cast<uint8_t>(shift));
    lexer_->expect(')', ")");
    return;
  }
  uint64_t bits = static_cast<uint64_t>(value.bits);
  switch (variable.type) {
    case Type::F64:
      if (value.kind != Constant::Kind::Double) bits = std::bit_cast<uint64_t>(value.number());
      break;
    case Type::F32:
      if (value.kind != Constant::Kind::Single)
        bits = std::bit_cast<uint32_t>(static_cast<float>(value.number()));
      break;
    default:
      if (!value.is_integer())
        fail_found(start, "an integer, for a variable of type ." + std::string(ptx::name(variable.type)));
  }
  store(variable, at, bits, size);
  // A negative integer is sign-extended to a 128-bit element.
  if (size > 8 && value.kind == Constant::Kind::Signed && value.bits < 0)
    store(variable, at + 8, ~uint64_t{0}, size - 8);
}

void Parser::initialise_address(Variable& variable, uint64_t at, uint8_t size, uint8_t shift) {
  Relocation relocation;
  relocation.offset = at;
  relocation.bytes = size;
  relocation.mask_shift = shift;
  relocation.symbol = lexer_->word("a name").text;
  if (relocation.symbol == "generic" && lexer_->accept('(')) {
    relocation.generic = true;
    relocation.symbol = lexer_->word("a name").text;
    relocation.addend = lexer_->offset();
    lexer_->expect(')', ")");
  }
  relocation.addend = add(relocation.addend, lexer_->offset());
  store(variable, at, 0, bytes(variable.type));
  variable.relocations.push_back(relocation);
}

int64_t Parser::add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

void Parser::parse_properties(Variable& variable) {
  lexer_->expect('{', "{");
  while (lexer_->peek() != '}') {
    const std::string_view property = lexer_->word("a property such as filter_mode").text;
    lexer_->expect('=', "=");
    const char* const start = lexer_->position();
    if (lexer_->at_word()) {
      variable.properties.emplace_back(property, lexer_->word("a value").text);
    } else {
      lexer_->unsigned_number("a value");
      const char* stop = lexer_->position();
      while (stop[-1] == ' ' || stop[-1] == '\t') --stop;
      variable.properties.emplace_back(property, std::string_view(start, static_cast<size_t>(stop - start)));
    }
    if (!lexer_->accept(',')) break;
  }
  lexer_->expect('}', "} or ,");
}

}  // namespace simt::ptx
