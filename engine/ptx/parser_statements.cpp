#include <algorithm>
#include <iterator>

#include "ptx/module_parser.hpp"

namespace simt::ptx {

namespace {

constexpr uint32_t max_operand_depth = 8;

/// Special registers, without components and without the index of a group such as envreg.
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

/// Operand::component for the suffix after a register's dot; 0 if it is not a component.
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

}  // namespace

void Parser::statement() {
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

void Parser::parse_label(const Word& word, const char* place) {
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

void Parser::parse_targets(std::string_view name, bool branches) {
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

void Parser::parse_prototype(std::string_view name) {
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

void Parser::parse_instruction(Instruction& instruction, const Word& word, const char* start) {
  instruction.mnemonic = mnemonics_.intern(word);
  mnemonic_ = instruction.mnemonic;
  names_ = module_.mnemonics[mnemonic_].facts().names;
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

uint32_t Parser::take_operands(size_t first) {
  std::vector<Operand>& all = function_->operands;
  const auto start = static_cast<uint32_t>(all.size());
  for (size_t k = first; k < stack_.size(); ++k) {
    const Operand& operand = stack_[k];
    if (operand.kind == OperandKind::Symbol) {
      const auto place = static_cast<uint32_t>(all.size());
      pending_.push_back({operand.text, place, 0, names_ == Names::Labels});
    }
    all.push_back(operand);
  }
  stack_.resize(first);
  return start;
}

void Parser::parse_operand(uint32_t depth) {
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
      if (names_ == Names::Callee && lexer_->peek() == '(')
        return parse_group(OperandKind::List, '(', ')', depth);
      const char* const start = lexer_->position();
      stack_.push_back(parse_simple(true));
      if (depth == 0 && lexer_->peek() == '+' && is_summand(stack_.back()))
        stack_.back() = plus_offset(stack_.back(), start);
      can_pair = stack_.back().kind == OperandKind::Register || stack_.back().kind == OperandKind::Discard;
  }
  if (!can_pair || !lexer_->accept('|')) return;
  const Operand second = parse_simple(false);
  stack_.push_back(second);
  replace_by_group(OperandKind::Pair, stack_.size() - 2, 0);
}

void Parser::replace_by_group(OperandKind kind, size_t first, int64_t value) {
  Operand group;
  group.kind = kind;
  group.part_count = static_cast<uint32_t>(stack_.size() - first);
  group.first_part = take_operands(first);
  group.value = value;
  stack_.push_back(group);
}

void Parser::parse_group(OperandKind kind, char open, char close, uint32_t depth) {
  const size_t first = stack_.size();
  lexer_->accept(open);
  if (!lexer_->accept(close)) {
    do parse_operand(depth + 1);
    while (lexer_->accept(','));
    lexer_->expect(close, close == '}' ? "} or ," : ") or ,");
  }
  replace_by_group(kind, first, 0);
}

void Parser::parse_address(uint32_t depth) {
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

Operand Parser::parse_simple(bool with_offset) {
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

Operand Parser::parse_name(bool with_offset) {
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
  } else if (names_ == Names::Labels) {
    operand = {};
    operand.kind = OperandKind::Symbol;
    operand.text = word.text;
  } else if (lexer_->accept('[')) {
    const char* const index = lexer_->position();
    const Constant element = lexer_->constant_expression("a constant index");
    if (!element.is_integer()) fail_found(index, "an integer index");
    lexer_->expect(']', "]");
    const auto offset = static_cast<int64_t>(static_cast<uint64_t>(element.bits) * element_size);
    if (names_ != Names::Addresses && names_ != Names::Callee) {
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

bool Parser::is_summand(const Operand& operand) const {
  const Writes writes = module_.mnemonics[mnemonic_].facts().writes;
  const bool written =
      writes == Writes::BeforeAddress
          ? std::none_of(stack_.begin(), stack_.end(),
                         [](const Operand& o) { return o.kind == OperandKind::Address; })
          : stack_.size() == 1 && (writes == Writes::First || writes == Writes::FirstUpdated);
  return operand.kind == OperandKind::Register && !operand.negated && operand.component == 0 && !written &&
         names_ != Names::Callee && function_->registers[operand.index].type != Type::Pred;
}

Operand Parser::plus_offset(const Operand& base, const char* start) {
  const RegisterDeclaration declared = function_->registers[base.index];
  const uint32_t size = bytes(declared.type);
  const std::string_view name = size == 8 ? "add.u64" : size == 4 ? "add.u32" : size == 2 ? "add.u16" : "";
  if (name.empty()) fail_found(lexer_->position(), "no offset after a register of this type");
  Operand offset;
  offset.kind = OperandKind::Integer;
  offset.value = lexer_->offset();
  Instruction sum;
  sum.mnemonic = mnemonics_.intern({name, Lexer::hash(name)});
  sum.line = lexer_->line();
  sum.begin = static_cast<uint32_t>(start - text_->data());
  sum.end = offset_of_position();
  sum.location = location_;
  Operand result = base;
  result.index = static_cast<uint32_t>(function_->registers.size());
  function_->registers.push_back({declared.name, declared.number, declared.type, 1});
  sum.first_operand = static_cast<uint32_t>(function_->operands.size());
  sum.operand_count = 3;
  function_->operands.insert(function_->operands.end(), {result, base, offset});
  function_->instructions.push_back(sum);
  return result;
}

Operand Parser::whole_vector(Operand component, uint32_t count) {
  const size_t first = stack_.size();
  for (uint32_t k = 0; k < count; ++k, ++component.index) stack_.push_back(component);
  replace_by_group(OperandKind::Vector, first, 0);
  const Operand vector = stack_.back();
  stack_.pop_back();
  return vector;
}

uint8_t Parser::parse_component(std::string_view& text) {
  const char* const start = lexer_->position();
  text = lexer_->directive("a component such as .x");
  const uint8_t component = component_named(text);
  if (component == 0) fail_found(start, "a component such as .x or .b0");
  return component;
}

Operand Parser::parse_special(const Word& word, const char* start) {
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

bool Parser::find_register_or_variable(const Word& word, Operand& operand, uint32_t* element_size) const {
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

const Symbol* Parser::find_family(const Word& word, uint64_t& number) const {
  const Symbol* innermost = nullptr;
  uint32_t hash = word.prefix_hash;
  // A prefix may itself end in digits: the third register of t1<4> is t12.
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

}  // namespace simt::ptx
