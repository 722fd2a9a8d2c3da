#include "ptx/parser.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>
#include <unordered_map>
#include <utility>

#include "ptx/lexer.hpp"
#include "ptx/symbol_table.hpp"

namespace simt::ptx {

namespace {

constexpr uint64_t max_variable_bytes = uint64_t{1} << 48;
constexpr uint64_t max_initial_bytes = uint64_t{1} << 28;  ///< of all initialised variables together
constexpr uint64_t max_alignment = 1 << 16;
constexpr size_t max_scopes = 256;
constexpr uint32_t max_operand_depth = 8;

/// Special registers, without components and without the number of a group such as envreg.
constexpr std::string_view special_registers[] = {"tid",
                                                  "ntid",
                                                  "laneid",
                                                  "warpid",
                                                  "nwarpid",
                                                  "ctaid",
                                                  "nctaid",
                                                  "smid",
                                                  "nsmid",
                                                  "gridid",
                                                  "is_explicit_cluster",
                                                  "clusterid",
                                                  "nclusterid",
                                                  "cluster_ctaid",
                                                  "cluster_nctaid",
                                                  "cluster_ctarank",
                                                  "cluster_nctarank",
                                                  "lanemask_eq",
                                                  "lanemask_le",
                                                  "lanemask_lt",
                                                  "lanemask_ge",
                                                  "lanemask_gt",
                                                  "clock",
                                                  "clock_hi",
                                                  "clock64",
                                                  "globaltimer",
                                                  "globaltimer_lo",
                                                  "globaltimer_hi",
                                                  "reserved_smem_offset_begin",
                                                  "reserved_smem_offset_end",
                                                  "reserved_smem_offset_cap",
                                                  "total_smem_size",
                                                  "aggr_smem_size",
                                                  "dynamic_smem_size",
                                                  "current_graph_exec"};
constexpr std::string_view special_groups[] = {"envreg", "pm", "reserved_smem_offset_"};

bool is_special_register(std::string_view name) {
  if (std::find(std::begin(special_registers), std::end(special_registers), name) !=
      std::end(special_registers))
    return true;
  if (name.starts_with("pm") && name.ends_with("_64")) name.remove_suffix(3);
  for (const std::string_view group : special_groups) {
    if (!name.starts_with(group)) continue;
    const std::string_view number = name.substr(group.size());
    if (!number.empty() && number.size() <= 2 && number.find_first_not_of("0123456789") == number.npos)
      return true;
  }
  return false;
}

/// Operand::component for what follows a register's dot; 0 if it is no component.
uint8_t component_named(std::string_view text) {
  constexpr uint8_t several = 24;
  if (text.size() == 1) {
    const size_t k = std::string_view("xyzwrgba").find(text[0]);
    return k == std::string_view::npos ? 0 : static_cast<uint8_t>(k % 4 + 1);
  }
  const bool is_byte = text[0] == 'b';
  if (!is_byte && text[0] != 'h') return 0;
  const std::string_view digits = text.substr(1);
  if (digits.size() > (is_byte ? 4u : 2u)) return 0;
  if (digits.find_first_not_of(is_byte ? "01234567" : "0123") != digits.npos) return 0;
  if (digits.size() > 1) return several;
  if (digits[0] > (is_byte ? '3' : '1')) return 0;
  return static_cast<uint8_t>((is_byte ? 8 : 16) + digits[0] - '0');
}

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

/// Mnemonics by their text, each kept once.
class Mnemonics {
 public:
  explicit Mnemonics(std::vector<Mnemonic>& all) : all_(all), slots_(1024, none) {}

  uint32_t intern(const Word& word) {
    size_t slot = word.hash;
    for (;; ++slot) {
      const uint32_t index = slots_[slot & (slots_.size() - 1)];
      if (index == none) break;
      if (all_[index].text == word.text) return index;
    }
    slots_[slot & (slots_.size() - 1)] = static_cast<uint32_t>(all_.size());
    all_.push_back(split(word.text));
    if (all_.size() * 2 > slots_.size()) grow();
    return static_cast<uint32_t>(all_.size() - 1);
  }

 private:
  static constexpr uint32_t none = UINT32_MAX;

  static Mnemonic split(std::string_view text) {
    Mnemonic mnemonic{text, text.substr(0, text.find('.')), {}};
    for (size_t at = mnemonic.opcode.size(); at < text.size();) {
      const size_t stop = std::min(text.find('.', at + 1), text.size());
      mnemonic.modifiers.push_back(text.substr(at + 1, stop - at - 1));
      at = stop;
    }
    return mnemonic;
  }
  void grow() {
    slots_.assign(slots_.size() * 2, none);
    for (uint32_t i = 0; i < all_.size(); ++i) {
      size_t slot = Lexer::hash(all_[i].text);
      while (slots_[slot & (slots_.size() - 1)] != none) ++slot;
      slots_[slot & (slots_.size() - 1)] = i;
    }
  }

  std::vector<Mnemonic>& all_;
  std::vector<uint32_t> slots_;
};

/// What comes before a declared name.
struct DeclarationHead {
  Space space = Space::None;
  Linkage linkage = Linkage::Internal;
  Type type = Type::None;
  uint32_t vector = 1;
  uint32_t alignment = 0;  ///< 0 if not given
  bool managed = false;
};

class Parser {
 public:
  Parser(std::string text, std::string name) : text_(std::make_unique<std::string>(std::move(text))) {
    module_.name = std::move(name);
  }

  Module parse() {
    Lexer lexer(*text_, module_.name);
    lexer_ = &lexer;
    module_.locations.emplace_back();
    // The registers of a family are counted out, so their number is bounded by the text that declares them.
    register_budget_ = (uint64_t{1} << 20) + 4 * text_->size();
    expect_directive("version");
    parse_version();
    while (!lexer.at_end()) module_statement();
    if (module_.target == 0) lexer.fail(".target");
    resolve_module_names();
    module_.text = std::move(text_);
    return std::move(module_);
  }

 private:
  /// A name whose meaning is known when its scope closes: a label, or something declared later.
  struct Pending {
    std::string_view name;
    uint32_t operand = 0;
    uint32_t list =
        0;  ///< 1 + index into targets, where it stands in a .branchtargets; `operand` is the place
    bool branch = false;
  };
  struct Scope {
    size_t pending = 0;  ///< names waiting since here
    bool labels = false;
  };

  // --- the module ---------------------------------------------------------------------------------------

  void expect_directive(std::string_view wanted) {
    const char* const start = lexer_->position();
    const std::string expected = "." + std::string(wanted);
    if (lexer_->directive(expected.c_str()) != wanted) fail_found(start, expected);
  }

  [[noreturn]] void fail_found(const char* place, std::string_view expected) const {
    lexer_->fail_found(place, expected);
  }

  void parse_version() {
    const char* const start = lexer_->position();
    const Constant version = lexer_->constant_expression();
    const double number = version.number();
    if (!(number >= 1) || number > 100) lexer_->fail_at(start, "found no version, expected such as 8.3");
    module_.version = static_cast<uint32_t>(number * 10 + 0.5);
  }

  void parse_target() {
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

  void parse_file() {
    const auto number = static_cast<uint32_t>(lexer_->unsigned_number("a file's number"));
    const std::string_view path = lexer_->string("a file's name");
    while (lexer_->accept(',')) lexer_->unsigned_number("a time or a size");
    module_.files.emplace_back(number, path);
  }

  void parse_location() {
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
        lexer_->unsigned_number("a file's number");
        lexer_->unsigned_number("a line");
        lexer_->unsigned_number("a column");
      } else {
        fail_found(start, "function_name or inlined_at");
      }
    }
    location_ = static_cast<uint32_t>(module_.locations.size());
    module_.locations.push_back(location);
  }

  void parse_section() {
    lexer_->directive("a section's name");
    lexer_->skip_block();
  }

  void parse_pragma() {
    do lexer_->string("a string");
    while (lexer_->accept(','));
    lexer_->expect(';', ";");
  }

  void parse_alias() {
    const std::string_view name = lexer_->word("a function's name").text;
    lexer_->expect(',', ",");
    module_.aliases.emplace_back(name, lexer_->word("a function's name").text);
    lexer_->expect(';', ";");
  }

  /// Line marks of a preprocessor, and the lines of debug information that PTX 1 had.
  bool skip_foreign_line() {
    if (lexer_->peek() == '#' || (lexer_->peek() == '@' && lexer_->peek_second() == '@')) {
      lexer_->skip_line();
      lexer_->accept('\n');
      return true;
    }
    return false;
  }

  void module_statement() {
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

  // --- declarations -------------------------------------------------------------------------------------

  void skip_parentheses() {
    lexer_->expect('(', "(");
    while (!lexer_->accept(')')) {
      if (!lexer_->accept(',')) lexer_->unsigned_number("a number or )");
    }
  }

  void parse_attribute(DeclarationHead& head) {
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

  uint32_t parse_alignment() {
    const char* const start = lexer_->position();
    const uint64_t alignment = lexer_->unsigned_number("an alignment in bytes");
    if (!std::has_single_bit(alignment) || alignment > max_alignment)
      fail_found(start, "a power of two up to 65536");
    return static_cast<uint32_t>(alignment);
  }

  /// From behind the state space to in front of the name.
  void parse_head(DeclarationHead& head) {
    if (head.space == Space::Constant && lexer_->accept('[')) {  // a bank, as old PTX has it
      lexer_->unsigned_number("a bank");
      lexer_->expect(']', "]");
    }
    bool pointer = false;
    while (lexer_->peek() == '.') {
      const char* const start = lexer_->position();
      const std::string_view text = lexer_->directive("a type");
      if (text == "align") {
        const uint32_t alignment = parse_alignment();
        if (!pointer) head.alignment = alignment;  // else of what the parameter points to
      } else if (text == "v2" || text == "v4" || text == "v8") {
        head.vector = static_cast<uint32_t>(text[1] - '0');
      } else if (text == "attribute") {
        parse_attribute(head);
      } else if (text == "ptr") {
        pointer = true;
      } else if (pointer && space_named(text) != Space::None) {
        continue;
      } else if (const Type type = type_named(text); type != Type::None) {
        // .param .u64 .texref name: an opaque type wins
        if (head.type == Type::None || is_opaque(type)) head.type = type;
      } else {
        fail_found(start, "a type, .align or a name");
      }
    }
    if (head.type == Type::None) lexer_->fail("a type");
  }

  /// Name, dimensions and size; `element_size` is that of one element of the array.
  Variable parse_declarator(const DeclarationHead& head, bool named, std::vector<uint64_t>& dimensions,
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

  void parse_variables(Space space, Linkage linkage, bool texture) {
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

  void declare_variable(Variable variable, const Word& word, uint32_t element_size, const char* place) {
    Symbol symbol;
    symbol.name = word.text;
    symbol.hash = word.hash;
    symbol.element_size = element_size;
    const Symbol* const known = symbols_.value(word.text, word.hash);
    const bool again = known && known->depth == symbols_.depth();
    const bool everywhere = variable.space == Space::Global || variable.space == Space::Constant;
    if (function_ && again) fail_again(place);
    if (function_ && !everywhere) {  // else it lives as long as the module, only its name ends with the scope
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
      // Of several definitions the strong one counts, else the first; the largest where all are common.
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

  [[noreturn]] void fail_again(const char* place) const {
    fail_found(place, "a name that is not yet declared in this scope");
  }

  // --- initialisers -------------------------------------------------------------------------------------

  struct Initialiser {
    Variable& variable;
    std::vector<uint64_t> dimensions;  ///< the vector's components as the last; the first may be 0: by count
    std::vector<uint64_t> strides;     ///< bytes of one element of each dimension
  };

  void parse_initialiser(Variable& variable, const DeclarationHead& head, std::vector<uint64_t> dimensions) {
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

  /// The elements of dimension `level` on, `at` bytes into the variable.
  void initialise(const Initialiser& init, size_t level, uint64_t at) {
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

  static void store(Variable& variable, uint64_t at, uint64_t value, uint64_t size) {
    if (variable.initial.size() < at + size) variable.initial.resize(at + size);
    for (uint64_t k = 0; k < size; ++k)
      variable.initial[at + k] = k < 8 ? static_cast<uint8_t>(value >> 8 * k) : 0;
  }

  void initialise_element(Variable& variable, uint64_t at) {
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
    // A negative integer fills a 128-bit element to its end.
    if (size > 8 && value.kind == Constant::Kind::Signed && value.bits < 0)
      store(variable, at + 8, ~uint64_t{0}, size - 8);
  }

  /// name, name+8, generic(name), generic(name)+8, generic(name+8)
  void initialise_address(Variable& variable, uint64_t at, uint8_t size, uint8_t shift) {
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

  static int64_t add(int64_t a, int64_t b) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  }

  /// { filter_mode = linear, addr_mode_0 = wrap }
  void parse_properties(Variable& variable) {
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
        variable.properties.emplace_back(property,
                                         std::string_view(start, static_cast<size_t>(stop - start)));
      }
      if (!lexer_->accept(',')) break;
    }
    lexer_->expect('}', "} or ,");
  }

  // --- functions ----------------------------------------------------------------------------------------

  /// A list in parentheses. Parameters of functions are declared in its scope; those of prototypes are not.
  void parse_parameters(std::vector<Variable>& list, bool prototype) {
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

  /// .maxntid 128, 1, 1: what is left out is 1.
  std::array<uint32_t, 3> parse_extent() {
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

  uint32_t parse_count() {
    const char* const start = lexer_->position();
    const uint64_t count = lexer_->unsigned_number("a number");
    if (count > INT32_MAX) fail_found(start, "a number below 2^31");
    return static_cast<uint32_t>(count);
  }

  /// Directives between the signature and the body, or of a prototype.
  void parse_function_directives(Function& function) {
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

  void parse_function(bool entry, Linkage linkage) {
    Function function;
    function_ = &function;
    function.entry = entry;
    function.linkage = linkage;
    location_ = 0;
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

  /// Its place in the module; a function that is declared already has one.
  uint32_t function_index(std::string_view name) {
    const auto [place, is_new] =
        functions_by_name_.emplace(name, static_cast<uint32_t>(module_.functions.size()));
    if (is_new) module_.functions.emplace_back();
    return place->second;
  }

  void open_scope() {
    if (scopes_.size() >= max_scopes) lexer_->fail("at most 256 nested scopes");
    symbols_.open_scope();
    scopes_.push_back({pending_.size(), false});
  }

  void close_scope() {
    if (scopes_.back().labels) {
      const auto first = pending_.begin() + static_cast<ptrdiff_t>(scopes_.back().pending);
      pending_.erase(
          std::remove_if(first, pending_.end(), [&](const Pending& name) { return resolve(name); }),
          pending_.end());
    }
    scopes_.pop_back();
    symbols_.close_scope();
  }

  /// Whether `name` is a label, or the like, of the scope that closes.
  bool resolve(const Pending& name) {
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

  void leave_unresolved(const Pending& name, uint32_t function) {
    if (name.branch || name.list > 0) fail_found(name.name.data(), "a label of this function");
    unresolved_.emplace_back(function, name.operand);
  }

  /// Variables that are declared after the functions that name them.
  void resolve_module_names() {
    for (const auto& [function, place] : unresolved_) {
      Operand& operand = module_.functions[function].operands[place];
      const Symbol* const symbol = symbols_.value(operand.text, Lexer::hash(operand.text));
      if (!symbol) continue;
      operand.kind = OperandKind::Variable;
      operand.index = symbol->index;
    }
  }

  void parse_body() {
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

  uint32_t offset_of_position() const { return static_cast<uint32_t>(lexer_->position() - text_->data()); }

  void body_directive(std::string_view directive, const char* start) {
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

  void parse_registers() {
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

  void declare_register(const Word& word, uint64_t count, const DeclarationHead& head, bool family,
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

  // --- statements ---------------------------------------------------------------------------------------

  void statement() {
    Instruction instruction;
    instruction.line = lexer_->line();
    instruction.begin = offset_of_position();
    instruction.location = location_;
    const bool guarded = lexer_->accept('@');
    if (guarded) {
      instruction.guard_negated = lexer_->accept('!');
      const char* const start = lexer_->position();
      Operand guard;
      const Word word = lexer_->word("a predicate register");
      if (!find_register_or_variable(word, guard) || guard.kind != OperandKind::Register)
        fail_found(start, "a predicate register");
      instruction.guard = static_cast<int32_t>(guard.index);
    }
    bool label = false;
    const char* const start = lexer_->position();
    const Word word = lexer_->mnemonic_or_label(label);
    if (!label) return parse_instruction(instruction, word, start);
    if (guarded) fail_found(start, "an instruction");
    parse_label(word, start);
  }

  void parse_label(const Word& word, const char* place) {
    std::string_view directive;
    const char* const start = lexer_->position();
    if (lexer_->peek() == '.') directive = lexer_->directive("a directive");
    Symbol symbol;
    symbol.name = word.text;
    symbol.hash = word.hash;
    const Symbol* const known = symbols_.label(word.text, word.hash);
    if (known && known->depth == symbols_.depth()) fail_again(place);
    if (directive == "branchtargets" || directive == "calltargets") {
      symbol.kind = Symbol::Kind::TargetList;
      symbol.index = static_cast<uint32_t>(function_->targets.size());
      parse_targets(word.text, directive == "branchtargets");
    } else if (directive == "callprototype") {
      symbol.kind = Symbol::Kind::Prototype;
      symbol.index = static_cast<uint32_t>(function_->prototypes.size());
      parse_prototype(word.text);
    } else {
      symbol.kind = Symbol::Kind::Label;
      symbol.index = static_cast<uint32_t>(function_->labels.size());
      function_->labels.push_back({word.text, static_cast<uint32_t>(function_->instructions.size())});
      if (!directive.empty()) body_directive(directive, start);
    }
    scopes_.back().labels = true;
    symbols_.add(symbol);
  }

  void parse_targets(std::string_view name, bool branches) {
    TargetList list;
    list.name = name;
    do {
      const std::string_view target = lexer_->word("a name").text;
      if (branches) {
        Pending pending{target, static_cast<uint32_t>(list.labels.size()),
                        static_cast<uint32_t>(function_->targets.size() + 1), true};
        pending_.push_back(pending);
        list.labels.push_back(0);
      } else {
        list.functions.push_back(target);
      }
    } while (lexer_->accept(','));
    lexer_->expect(';', ";");
    function_->targets.push_back(std::move(list));
  }

  void parse_prototype(std::string_view name) {
    Prototype prototype;
    prototype.name = name;
    if (lexer_->peek() == '(') parse_parameters(prototype.results, true);
    if (lexer_->at_word()) lexer_->word("_");
    if (lexer_->peek() == '(') parse_parameters(prototype.parameters, true);
    Function unused;
    parse_function_directives(unused);
    lexer_->expect(';', ";");
    function_->prototypes.push_back(std::move(prototype));
  }

  /// What the parser must know of an opcode.
  struct OpcodeFacts {
    bool branch = false;      ///< names are labels
    bool call = false;        ///< parentheses are lists
    bool address_of = false;  ///< name[2] is the element's address, not its contents
  };

  const OpcodeFacts& facts_of(uint32_t mnemonic) {
    while (opcode_facts_.size() < module_.mnemonics.size()) {
      const std::string_view opcode = module_.mnemonics[opcode_facts_.size()].opcode;
      opcode_facts_.push_back({opcode == "bra" || opcode == "brx", opcode == "call",
                               opcode == "mov" || opcode == "cvta" || opcode == "mapa" ||
                                   opcode == "isspacep" || opcode == "call"});
    }
    return opcode_facts_[mnemonic];
  }

  void parse_instruction(Instruction& instruction, const Word& word, const char* start) {
    instruction.mnemonic = mnemonics_.intern(word);
    opcode_ = facts_of(instruction.mnemonic);
    stack_.clear();
    if (lexer_->peek() != ';') {
      do parse_operand(0);
      while (lexer_->accept(','));
    }
    instruction.end = offset_of_position() + 1;
    lexer_->expect(';', "; or ,");
    if (stack_.size() > UINT16_MAX) fail_found(start, "at most 65535 operands");
    instruction.operand_count = static_cast<uint16_t>(stack_.size());
    instruction.first_operand = take_operands(0);
    function_->instructions.push_back(instruction);
  }

  /// Moves the operands from `first` on the stack into the function, side by side.
  uint32_t take_operands(size_t first) {
    std::vector<Operand>& all = function_->operands;
    const auto start = static_cast<uint32_t>(all.size());
    for (size_t k = first; k < stack_.size(); ++k) {
      const Operand& operand = stack_[k];
      if (operand.kind == OperandKind::Symbol) {
        const auto place = static_cast<uint32_t>(all.size());
        pending_.push_back({operand.text, place, 0, opcode_.branch});
      }
      all.push_back(operand);
    }
    stack_.resize(first);
    return start;
  }

  void parse_operand(uint32_t depth) {
    if (depth > max_operand_depth) lexer_->fail("operands nested less deeply");
    bool can_pair = false;
    switch (lexer_->peek()) {
      case '[':
        return parse_address(depth);
      case '{':
        parse_group(OperandKind::Vector, '{', '}', depth);
        can_pair = true;
        break;
      default:
        if (opcode_.call && lexer_->peek() == '(') return parse_group(OperandKind::List, '(', ')', depth);
        stack_.push_back(parse_simple(true));
        can_pair = stack_.back().kind == OperandKind::Register || stack_.back().kind == OperandKind::Discard;
    }
    if (!can_pair || !lexer_->accept('|')) return;
    const Operand second = parse_simple(false);
    stack_.push_back(second);
    replace_by_group(OperandKind::Pair, stack_.size() - 2, 0);
  }

  void replace_by_group(OperandKind kind, size_t first, int64_t value) {
    Operand group;
    group.kind = kind;
    group.part_count = static_cast<uint32_t>(stack_.size() - first);
    group.first_part = take_operands(first);
    group.value = value;
    stack_.push_back(group);
  }

  void parse_group(OperandKind kind, char open, char close, uint32_t depth) {
    const size_t first = stack_.size();
    lexer_->accept(open);
    if (!lexer_->accept(close)) {
      do parse_operand(depth + 1);
      while (lexer_->accept(','));
      lexer_->expect(close, close == '}' ? "} or ," : ") or ,");
    }
    replace_by_group(kind, first, 0);
  }

  void parse_address(uint32_t depth) {
    const size_t first = stack_.size();
    lexer_->accept('[');
    stack_.push_back(parse_simple(false));
    const int64_t offset = lexer_->offset();
    while (lexer_->accept(',')) parse_operand(depth + 1);
    lexer_->expect(']', "] or ,");
    const char* const start = lexer_->position();
    if (lexer_->peek() == '.' && lexer_->directive(".unified or ,") != "unified")
      fail_found(start, ".unified or ,");
    replace_by_group(OperandKind::Address, first, offset);
  }

  /// A name or a constant; `with_offset`: what is added to a name belongs to it.
  Operand parse_simple(bool with_offset) {
    const char c = lexer_->peek();
    if ((lexer_->at_word() && !(c == 'W' && lexer_->word_ahead(0) == "WARP_SZ")))
      return parse_name(with_offset);
    if (c == '!' || c == '-') {
      const std::string_view word = lexer_->word_ahead(1);
      if (!word.empty() && word != "WARP_SZ") {
        lexer_->accept(c);
        Operand operand = parse_name(with_offset);
        operand.negated = true;
        return operand;
      }
    }
    const Constant constant = lexer_->constant_expression("an operand");
    Operand operand;
    operand.kind = constant.is_integer() ? OperandKind::Integer : OperandKind::Float;
    operand.single = constant.kind == Constant::Kind::Single;
    operand.value = constant.bits;
    return operand;
  }

  Operand parse_name(bool with_offset) {
    const char* const start = lexer_->position();
    const Word word = lexer_->word("an operand");
    Operand operand;
    if (word.text == "_") {
      operand.kind = OperandKind::Discard;
      return operand;
    }
    uint32_t element_size = 0;
    if (!find_register_or_variable(word, operand, &element_size)) {
      if (word.text[0] == '%') return parse_special(word, start);
      operand.kind = OperandKind::Symbol;
      operand.text = word.text;
    } else if (operand.kind == OperandKind::Register) {
      const bool dot = lexer_->peek() == '.';
      if (element_size > 1 && !dot) return whole_vector(operand, element_size);
      const char* const place = lexer_->position();
      if (dot) operand.component = parse_component(operand.text);
      if (element_size == 1) return operand;
      if (operand.component == 0 || operand.component > element_size)
        fail_found(place, "a component that the vector has, such as .x");
      operand.index += operand.component - 1u;
      operand.component = 0;
      operand.text = {};
      return operand;
    } else if (opcode_.branch) {
      operand = {};
      operand.kind = OperandKind::Symbol;
      operand.text = word.text;
    } else if (lexer_->accept('[')) {
      const char* const index = lexer_->position();
      const Constant element = lexer_->constant_expression("a constant index");
      if (!element.is_integer()) fail_found(index, "an integer index");
      lexer_->expect(']', "]");
      const auto offset = static_cast<int64_t>(static_cast<uint64_t>(element.bits) * element_size);
      if (!opcode_.address_of) {
        stack_.push_back(operand);
        replace_by_group(OperandKind::Address, stack_.size() - 1, offset);
        operand = stack_.back();
        stack_.pop_back();
        return operand;
      }
      operand.value = offset;
    }
    if (with_offset) operand.value = add(operand.value, lexer_->offset());
    return operand;
  }

  /// {x.x, x.y, ...} for a vector register x.
  Operand whole_vector(Operand component, uint32_t count) {
    const size_t first = stack_.size();
    for (uint32_t k = 0; k < count; ++k, ++component.index) stack_.push_back(component);
    replace_by_group(OperandKind::Vector, first, 0);
    const Operand vector = stack_.back();
    stack_.pop_back();
    return vector;
  }

  uint8_t parse_component(std::string_view& text) {
    const char* const start = lexer_->position();
    text = lexer_->directive("a component such as .x");
    const uint8_t component = component_named(text);
    if (component == 0) fail_found(start, "a component such as .x or .b0");
    return component;
  }

  Operand parse_special(const Word& word, const char* start) {
    if (!is_special_register(word.text.substr(1))) fail_found(start, "a declared or a special register");
    Operand operand;
    operand.kind = OperandKind::Special;
    operand.text = word.text.substr(1);
    if (lexer_->peek() != '.') return operand;
    const char* const dot = lexer_->position();
    const std::string_view component = lexer_->directive("a component such as .x");
    if (component.size() != 1 || component_named(component) == 0) fail_found(dot, "a component such as .x");
    const char* const name = operand.text.data();
    operand.text = {name, static_cast<size_t>(component.data() + 1 - name)};
    return operand;
  }

  /// The innermost declaration of `word`; false if there is none.
  bool find_register_or_variable(const Word& word, Operand& operand, uint32_t* element_size = nullptr) const {
    const Symbol* const named = symbols_.value(word.text, word.hash);
    uint64_t number = 0;
    const Symbol* const family = word.prefix_length < word.text.size() ? find_family(word, number) : nullptr;
    if (family && (!named || family->depth > named->depth)) {
      operand.kind = OperandKind::Register;
      operand.index = family->index + static_cast<uint32_t>(number) * family->element_size;
      if (element_size) *element_size = family->element_size;
      return true;
    }
    if (!named) return false;
    operand.index = named->index;
    if (element_size) *element_size = named->element_size;
    if (named->kind == Symbol::Kind::Register) {
      operand.kind = OperandKind::Register;
      return true;
    }
    operand.kind = OperandKind::Variable;
    operand.local = named->kind == Symbol::Kind::LocalVariable;
    operand.text = word.text;
    return true;
  }

  /// The innermost family with a member of this name, and which member it is.
  const Symbol* find_family(const Word& word, uint64_t& number) const {
    const Symbol* innermost = nullptr;
    uint32_t hash = word.prefix_hash;
    // A prefix may itself end in digits: of t1<4> the third is t12.
    const size_t last = digit_prefixes_ ? word.text.size() - 1 : word.prefix_length;
    for (size_t length = word.prefix_length; length <= last; ++length) {
      const std::string_view digits = word.text.substr(length);
      if (digits.size() <= 9 && (digits[0] != '0' || digits.size() == 1)) {
        uint64_t member = 0;
        for (const char c : digits) member = member * 10 + static_cast<uint64_t>(c - '0');
        const Symbol* const family = symbols_.family(word.text.substr(0, length), hash, member);
        if (family && (!innermost || family->depth > innermost->depth)) {
          innermost = family;
          number = member;
        }
      }
      hash = Lexer::add_to_hash(hash, word.text[length]);
    }
    return innermost;
  }

  std::unique_ptr<std::string> text_;
  Module module_;
  Lexer* lexer_ = nullptr;
  SymbolTable symbols_;
  Mnemonics mnemonics_{module_.mnemonics};
  std::vector<OpcodeFacts> opcode_facts_;  ///< for each of Module::mnemonics
  std::unordered_map<std::string_view, uint32_t> functions_by_name_;
  std::vector<std::pair<uint32_t, uint32_t>> unresolved_;  ///< function, operand
  uint64_t register_budget_ = 0;
  uint64_t initial_bytes_ = 0;
  bool digit_prefixes_ = false;  ///< some family's prefix ends in a digit

  Function* function_ = nullptr;  ///< the one being parsed
  std::vector<Scope> scopes_;
  std::vector<Pending> pending_;
  std::vector<Operand> stack_;  ///< operands of the present instruction that are not yet in the function
  OpcodeFacts opcode_;
  uint32_t location_ = 0;
};

}  // namespace

Module parse(std::string text, std::string name) {
  return Parser(std::move(text), std::move(name)).parse();
}

}  // namespace simt::ptx
