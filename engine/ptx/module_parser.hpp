#pragma once
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ptx/lexer.hpp"
#include "ptx/module.hpp"
#include "ptx/symbol_table.hpp"

namespace simt::ptx {

using instructions::Names;
using instructions::Writes;

/// The meaning of a directive such as .shared; None or false if it is another directive.
Space space_named(std::string_view directive);
bool linkage_named(std::string_view directive, Linkage& linkage);

/// Mnemonics by text, each stored once.
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
    all_.emplace_back(word.text);
    if (all_.size() * 2 > slots_.size()) grow();
    return static_cast<uint32_t>(all_.size() - 1);
  }

 private:
  static constexpr uint32_t none = UINT32_MAX;

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

/// The part of a declaration before the name.
struct DeclarationHead {
  Space space = Space::None;
  Linkage linkage = Linkage::Internal;
  Type type = Type::None;
  uint32_t vector = 1;
  uint32_t alignment = 0;  ///< 0 if not given
  bool managed = false;
};

/// A file, a line and a column.
using SourcePlace = std::array<uint32_t, 3>;
struct SourcePlaceHash {
  size_t operator()(const SourcePlace& place) const {
    return place[1] + (uint64_t{place[2]} << 32) + place[0] * 0x9e3779b97f4a7c15u;
  }
};

/// Parses one module; see parser.hpp. Its methods are in parser.cpp (module), parser_declarations.cpp
/// (declarations, initialisers), parser_functions.cpp and parser_statements.cpp.
class Parser {
 public:
  Parser(std::string text, std::string name) : text_(std::make_unique<std::string>(std::move(text))) {
    module_.name = std::move(name);
  }

  Module parse();

 private:
  /// A name resolved when its scope closes: a label, or something declared later.
  struct Pending {
    std::string_view name;
    uint32_t operand = 0;
    uint32_t list = 0;  ///< 1 + index into targets, if it is in a .branchtargets; `operand` is the position
    bool branch = false;
  };
  struct Scope {
    size_t pending = 0;  ///< number of pending names when the scope was opened
    bool labels = false;
  };

  // --- the module -----------------------------------------------------------------------------------------

  void expect_directive(std::string_view wanted);

  [[noreturn]] void fail_found(const char* place, std::string_view expected) const;

  void parse_version();

  void parse_target();

  void parse_file();

  void parse_location();
  uint32_t location_of(const SourcePlace& place);

  void parse_section();

  void parse_pragma();

  void parse_alias();

  /// Skips line markers of a preprocessor, and the debug-information lines of PTX 1.
  bool skip_foreign_line();

  void module_statement();

  // --- declarations ---------------------------------------------------------------------------------------

  void skip_parentheses();

  void parse_attribute(DeclarationHead& head);

  uint32_t parse_alignment();

  /// From after the state space up to the name.
  void parse_head(DeclarationHead& head);

  /// Name, dimensions and size; `element_size` is that of one element of the array.
  Variable parse_declarator(const DeclarationHead& head, bool named, std::vector<uint64_t>& dimensions,
                            Word& word);

  void parse_variables(Space space, Linkage linkage, bool texture);

  void declare_variable(Variable variable, const Word& word, uint32_t element_size, const char* place);

  [[noreturn]] void fail_again(const char* place) const;

  // --- initialisers ---------------------------------------------------------------------------------------

  struct Initialiser {
    Variable& variable;
    std::vector<uint64_t> dimensions;  ///< the vector's components last; the first may be 0: given by the
                                       ///< initialiser
    std::vector<uint64_t> strides;     ///< bytes between elements of each dimension
  };

  void parse_initialiser(Variable& variable, const DeclarationHead& head, std::vector<uint64_t> dimensions);

  /// The elements of dimension `level` and below, `at` bytes into the variable.
  void initialise(const Initialiser& init, size_t level, uint64_t at);

  static void store(Variable& variable, uint64_t at, uint64_t value, uint64_t size);

  void initialise_element(Variable& variable, uint64_t at);

  /// name, name+8, generic(name), generic(name)+8, generic(name+8)
  void initialise_address(Variable& variable, uint64_t at, uint8_t size, uint8_t shift);

  static int64_t add(int64_t a, int64_t b);

  /// { filter_mode = linear, addr_mode_0 = wrap }
  void parse_properties(Variable& variable);

  // --- functions ------------------------------------------------------------------------------------------

  /// A list in parentheses. Parameters of functions are declared in the current scope; those of prototypes
  /// are not.
  void parse_parameters(std::vector<Variable>& list, bool prototype);

  /// .maxntid 128, 1, 1: omitted values are 1.
  std::array<uint32_t, 3> parse_extent();

  uint32_t parse_count();

  /// Directives between a signature and the body, or in a prototype.
  void parse_function_directives(Function& function);

  void parse_function(bool entry, Linkage linkage);

  /// Its index in the module; a new one unless the function has been declared before.
  uint32_t function_index(std::string_view name);

  void open_scope();

  void close_scope();

  /// Resolves `name` if it is a label or similar in the scope being closed.
  bool resolve(const Pending& name);

  void leave_unresolved(const Pending& name, uint32_t function);

  /// Resolves variables declared after the functions that name them.
  void resolve_module_names();

  void parse_body();

  uint32_t offset_of_position() const { return static_cast<uint32_t>(lexer_->position() - text_->data()); }

  void body_directive(std::string_view directive, const char* start);

  void parse_registers();

  void declare_register(const Word& word, uint64_t count, const DeclarationHead& head, bool family,
                        const char* place);

  // --- statements -----------------------------------------------------------------------------------------

  void statement();

  void parse_label(const Word& word, const char* place);

  void parse_targets(std::string_view name, bool branches);

  void parse_prototype(std::string_view name);

  void parse_instruction(Instruction& instruction, const Word& word, const char* start);

  /// Moves the operands from `first` on the stack into the function, as consecutive operands.
  uint32_t take_operands(size_t first);

  void parse_operand(uint32_t depth);

  void replace_by_group(OperandKind kind, size_t first, int64_t value);

  void parse_group(OperandKind kind, char open, char close, uint32_t depth);

  void parse_address(uint32_t depth);

  /// A name or a constant; `with_offset`: an offset added to a name belongs to it.
  Operand parse_simple(bool with_offset);

  Operand parse_name(bool with_offset);

  /// Whether an offset may follow the operand, which was parsed last: a register that is read.
  bool is_summand(const Operand& operand) const;

  /// A register plus an integer, for which an addition to a register of its own precedes the instruction.
  Operand plus_offset(const Operand& base, const char* start);

  /// {x.x, x.y, ...} for a vector register x.
  Operand whole_vector(Operand component, uint32_t count);

  uint8_t parse_component(std::string_view& text);

  Operand parse_special(const Word& word, const char* start);

  /// Finds the innermost declaration of `word`; false if there is none.
  bool find_register_or_variable(const Word& word, Operand& operand, uint32_t* element_size = nullptr) const;

  /// The innermost family with a member of this name, and the member's number.
  const Symbol* find_family(const Word& word, uint64_t& number) const;

  std::unique_ptr<std::string> text_;
  Module module_;
  Lexer* lexer_ = nullptr;
  SymbolTable symbols_;
  Mnemonics mnemonics_{module_.mnemonics};
  std::unordered_map<std::string_view, uint32_t> functions_by_name_;
  std::vector<std::pair<uint32_t, uint32_t>> unresolved_;  ///< function, operand
  uint64_t register_budget_ = 0;
  uint64_t initial_bytes_ = 0;
  bool digit_prefixes_ = false;  ///< the prefix of some family ends in a digit

  Function* function_ = nullptr;  ///< the one being parsed
  std::vector<Scope> scopes_;
  std::vector<Pending> pending_;
  std::vector<Operand> stack_;   ///< operands of the current instruction, not yet in the function
  uint32_t mnemonic_ = 0;        ///< of the current instruction
  Names names_ = Names::Values;  ///< likewise
  uint32_t location_ = 0;
  std::unordered_map<SourcePlace, uint32_t, SourcePlaceHash> places_;  ///< locations of the function
};

}  // namespace simt::ptx
