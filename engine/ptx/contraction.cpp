#include "ptx/contraction.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ptx/control_flow.hpp"
#include "ptx/interface_registers.hpp"
#include "ptx/register_allocation.hpp"

namespace simt::ptx {
namespace {

using std::string_view;

constexpr uint32_t none = UINT32_MAX;

using instructions::Algebra;

/// How contraction treats an instruction, determined by its mnemonic.
struct Form {
  Algebra kind = Algebra::Other;  ///< Iterative: becomes code with branches, which ends a block
  Type type = Type::None;
  bool ftz = false, sat = false;
};

/// Whether an instruction of kind Iterative becomes code with branches.
bool has_slow_path(const Mnemonic& mnemonic) {
  const Type type = type_named(mnemonic.modifiers.empty() ? string_view{} : mnemonic.modifiers.back());
  if (!is_float(type)) return bytes(type) == 8;
  return type == Type::F64 ? !mnemonic.has("ftz") : !mnemonic.has("approx") && !mnemonic.has("full");
}

Form form_of(const Mnemonic& mnemonic) {
  Form form;
  form.kind = mnemonic.facts().algebra;
  if (form.kind == Algebra::Iterative && !has_slow_path(mnemonic)) form.kind = Algebra::Other;
  if (form.kind == Algebra::Other || form.kind == Algebra::Iterative) return form;
  for (const string_view m : mnemonic.modifiers) {
    if (m == "ftz" && !form.ftz)
      form.ftz = true;
    else if (m == "sat" && (form.kind == Algebra::Sum || form.kind == Algebra::Difference))
      form.sat = true;
    else if (form.type == Type::None && type_named(m) != Type::None)
      form.type = type_named(m);
    else
      return {};  // it specifies rounding, or more
  }
  const Type t = form.type;
  if (form.kind == Algebra::Copy) return t == Type::None || t == Type::Pred ? Form{} : form;
  const bool half = t == Type::F16 || t == Type::F16x2 || t == Type::BF16 || t == Type::BF16x2;
  if (!half && t != Type::F32 && t != Type::F64 && t != Type::F32x2) return {};
  if (form.kind == Algebra::Negation && t == Type::BF16x2) return {};  // ptxas does not combine these
  return form;
}

/// fma.rn{.ftz}{.sat}.type
Mnemonic fused_mnemonic(const Form& sum) {
  static constexpr std::array<std::pair<Type, std::array<string_view, 4>>, 7> texts{{
      {Type::F32, {"fma.rn.f32", "fma.rn.ftz.f32", "fma.rn.sat.f32", "fma.rn.ftz.sat.f32"}},
      {Type::F32x2, {"fma.rn.f32x2", "fma.rn.ftz.f32x2", "", ""}},
      {Type::F64, {"fma.rn.f64", "", "", ""}},
      {Type::F16, {"fma.rn.f16", "fma.rn.ftz.f16", "fma.rn.sat.f16", "fma.rn.ftz.sat.f16"}},
      {Type::F16x2, {"fma.rn.f16x2", "fma.rn.ftz.f16x2", "fma.rn.sat.f16x2", "fma.rn.ftz.sat.f16x2"}},
      {Type::BF16, {"fma.rn.bf16", "", "", ""}},
      {Type::BF16x2, {"fma.rn.bf16x2", "", "", ""}},
  }};
  const auto row =
      std::find_if(texts.begin(), texts.end(), [&](const auto& t) { return t.first == sum.type; });
  return Mnemonic(row->second[(sum.ftz ? 1 : 0) + (sum.sat ? 2 : 0)]);
}

class Contraction {
 public:
  Contraction(Function& function, Module& module) : function_(function), module_(module) {
    for (const Mnemonic& mnemonic : module.mnemonics) forms_.push_back(form_of(mnemonic));
  }

  void run() {
    const auto& instructions = function_.instructions;
    const auto is_product = [&](const Instruction& i) { return forms_[i.mnemonic].kind == Algebra::Product; };
    if (std::none_of(instructions.begin(), instructions.end(), is_product)) return;
    flow_ = control_flow(function_, module_);
    for (uint32_t i = 0; i < instructions.size(); ++i) accesses_.push_back(access(function_, module_, i));
    removed_.assign(instructions.size(), false);
    copies_before_.resize(instructions.size());
    find_exposed();
    std::vector<uint32_t> predecessors(flow_.blocks.size());
    for (const ControlFlow::Block& block : flow_.blocks)
      for (const uint32_t s : block.successors) ++predecessors[s];
    // Blocks in a straight line are treated as one.
    for (uint32_t b = 0; b < flow_.blocks.size(); ++b) {
      uint32_t last = b;
      while (flow_.blocks[last].successors == std::vector{last + 1} && predecessors[last + 1] == 1) ++last;
      contract_blocks(b, last);
      b = last;
    }
    rebuild();
  }

 private:
  struct Product {
    uint32_t instruction = 0;
    Form form;
    uint32_t sums = 0;       ///< number of uses by sums
    bool escapes = false;    ///< used by anything else
    bool is_addend = false;  ///< addend of an fma that absorbed another product
    uint32_t fused = 0;
    std::vector<uint32_t> carriers;                   ///< its copies and negations
    uint32_t last = 0;                                ///< instruction of the last fma
    std::array<uint32_t, 2> overwritten{none, none};  ///< first instruction after it that writes a factor's
                                                      ///< register
    std::array<uint32_t, 2> copied{none, none};       ///< register with a copy of the factor
  };
  /// The contents of a register: a product, or its negation.
  struct Value {
    uint32_t product = none;
    bool negated = false;
  };
  struct Sum {
    uint32_t instruction = 0;
    Form form;
    std::array<Value, 2> operands;
    uint32_t fused = none;  ///< which summand
  };

  const Form& form(uint32_t i) const { return forms_[function_.instructions[i].mnemonic]; }
  Operand& operand(uint32_t i, uint32_t k) {
    return function_.operands[function_.instructions[i].first_operand + k];
  }
  static bool is_plain(const Operand& o) {
    return o.kind == OperandKind::Register && o.component == 0 && !o.negated;
  }
  static bool is_factor(const Operand& o) {
    return is_plain(o) || (o.kind == OperandKind::Float && !o.negated);
  }

  void contract_blocks(uint32_t first, uint32_t last) {
    products_.clear();
    sums_.clear();
    held_.clear();
    factors_.clear();
    block_begin_ = flow_.blocks[first].first;
    for (uint32_t i = flow_.blocks[first].first; i < flow_.blocks[last].last; ++i) read_and_write(i);
    for (const auto& [r, value] : held_)
      if (!products_[value.product].escapes && is_live_behind(last, r))
        products_[value.product].escapes = true;
    // First the products used by only one sum, then those used by several.
    for (const bool single : {true, false})
      for (Sum& sum : sums_) choose(sum, single);
    for (Product& product : products_) finish(product);
    for (const Sum& sum : sums_)
      if (sum.fused != none) fuse(sum);
  }

  void read_and_write(uint32_t i) {
    const Instruction& instruction = function_.instructions[i];
    const Form& f = form(i);
    const bool guarded = instruction.guard >= 0;
    const bool sum = (f.kind == Algebra::Sum || f.kind == Algebra::Difference) &&
                     instruction.operand_count == 3 && is_plain(operand(i, 0));
    Value carried;
    if (sum) {
      Sum s{i, f, {}, none};
      for (uint32_t k = 0; k < 2; ++k) s.operands[k] = summand(operand(i, k + 1), f);
      const bool twice = s.operands[0].product != none && s.operands[0].product == s.operands[1].product;
      for (Value& v : s.operands) {
        if (v.product == none) continue;
        if (twice) products_[v.product].escapes = true;
        ++products_[v.product].sums;
      }
      sums_.push_back(s);
    } else if (carries(i, carried)) {
      products_[carried.product].carriers.push_back(i);
    } else {
      for (const uint32_t r : accesses_[i].reads) escape(r);
    }
    for (const uint32_t r : accesses_[i].writes) {
      if (guarded) escape(r);  // the other lanes keep its old value
      held_.erase(r);
      if (const auto at = factors_.find(r); at != factors_.end()) {
        for (const auto& [product, k] : at->second) products_[product].overwritten[k] = i;
        factors_.erase(at);
      }
    }
    if (f.kind == Algebra::Iterative) block_begin_ = i;
    if (carried.product != none) held_[operand(i, 0).index] = carried;
    if (f.kind != Algebra::Product || guarded || instruction.operand_count != 3) return;
    const Operand &d = operand(i, 0), &x = operand(i, 1), &y = operand(i, 2);
    if (!is_plain(d) || !is_factor(x) || !is_factor(y) || !(is_plain(x) || is_plain(y))) return;
    Product product;
    product.instruction = i;
    product.form = f;
    const auto index = static_cast<uint32_t>(products_.size());
    if (is_plain(x)) factors_[x.index].emplace_back(index, 0);
    if (is_plain(y)) factors_[y.index].emplace_back(index, 1);
    held_[d.index] = {index, false};
    products_.push_back(product);
  }

  void escape(uint32_t r) {
    if (const auto at = held_.find(r); at != held_.end()) products_[at->second.product].escapes = true;
  }

  /// The product in a sum's operand, if it could be fused.
  Value summand(const Operand& o, const Form& sum) {
    if (o.kind != OperandKind::Register) return {};
    const auto at = held_.find(o.index);
    if (at == held_.end()) return {};
    Product& product = products_[at->second.product];
    const bool here = product.instruction >= block_begin_;
    if (here && is_plain(o) && product.form.type == sum.type && product.form.ftz == sum.ftz)
      return at->second;
    product.escapes = true;
    return {};
  }

  /// Whether an instruction only passes a product on, unchanged or negated.
  bool carries(uint32_t i, Value& carried) {
    const Instruction& instruction = function_.instructions[i];
    const Form& f = form(i);
    if (f.kind != Algebra::Negation && f.kind != Algebra::Copy) return false;
    if (instruction.guard >= 0 || instruction.operand_count != 2) return false;
    if (!is_plain(operand(i, 0)) || !is_plain(operand(i, 1))) return false;
    const auto at = held_.find(operand(i, 1).index);
    if (at == held_.end()) return false;
    const Form& product = products_[at->second.product].form;
    const bool negates = f.kind == Algebra::Negation;
    if (negates ? f.type != product.type || f.ftz != product.ftz : bytes(f.type) != bytes(product.type))
      return false;
    carried = {at->second.product, at->second.negated != negates};
    return true;
  }

  /// Finds, for each register, the blocks that read it before writing it.
  void find_exposed() {
    for (uint32_t b = 0; b < flow_.blocks.size(); ++b) {
      std::unordered_set<uint32_t> written;
      for (uint32_t i = flow_.blocks[b].first; i < flow_.blocks[b].last; ++i) {
        for (const uint32_t r : accesses_[i].reads)
          if (!written.contains(r)) exposed_[r].insert(b);
        const bool guarded = function_.instructions[i].guard >= 0;
        for (const uint32_t r : accesses_[i].writes) {
          if (guarded && !written.contains(r)) exposed_[r].insert(b);  // inactive lanes keep the old value
          written.insert(r);
        }
      }
    }
  }

  /// Whether a register's value at the end of a block may still be read.
  bool is_live_behind(uint32_t block, uint32_t r) const {
    if (is_result(r)) return true;
    const auto readers = exposed_.find(r);
    if (readers == exposed_.end()) return false;
    std::vector<bool> seen(flow_.blocks.size(), false);
    std::vector<uint32_t> open = flow_.blocks[block].successors;
    while (!open.empty()) {
      const uint32_t b = open.back();
      open.pop_back();
      if (seen[b]) continue;
      seen[b] = true;
      if (readers->second.contains(b)) return true;
      open.insert(open.end(), flow_.blocks[b].successors.begin(), flow_.blocks[b].successors.end());
    }
    return false;
  }
  /// Results in registers are read when the function returns.
  bool is_result(uint32_t r) const { return !function_.entry && r < interface_registers(function_); }

  void choose(Sum& sum, bool single) {
    if (sum.fused != none) return;
    for (uint32_t k = 0; k < 2; ++k) {
      const uint32_t p = sum.operands[k].product;
      if (p == none) continue;
      Product& product = products_[p];
      if (product.escapes || product.is_addend || (single && product.sums != 1)) continue;
      sum.fused = k;
      ++product.fused;
      product.last = std::max(product.last, sum.instruction);
      if (const uint32_t other = sum.operands[1 - k].product; other != none)
        products_[other].is_addend = true;
      return;
    }
  }

  /// Removes a product with no remaining uses. If a factor's register is written before the last fma, the
  /// factor is copied.
  void finish(Product& product) {
    if (product.fused == 0) return;
    const uint32_t i = product.instruction;
    if (product.fused == product.sums) {
      removed_[i] = true;
      for (const uint32_t carrier : product.carriers) removed_[carrier] = true;
    }
    for (uint32_t k = 0; k < 2; ++k) {
      const Operand& factor = operand(i, k + 1);
      const bool own = factor.kind == OperandKind::Register && factor.index == operand(i, 0).index;
      if (product.overwritten[k] < product.last || (own && !removed_[i])) {
        function_.registers.push_back(RegisterDeclaration(function_.registers[factor.index]));
        product.copied[k] = static_cast<uint32_t>(function_.registers.size() - 1);
        copies_before_[i].emplace_back(product.copied[k], factor.index);
      }
    }
  }

  void fuse(const Sum& sum) {
    const Product& product = products_[sum.operands[sum.fused].product];
    const uint32_t i = sum.instruction;
    std::array<Operand, 4> fused{operand(i, 0), operand(product.instruction, 1),
                                 operand(product.instruction, 2), operand(i, 2 - sum.fused)};
    for (uint32_t k = 0; k < 2; ++k)
      if (product.copied[k] != none) fused[k + 1].index = product.copied[k];
    const bool difference = sum.form.kind == Algebra::Difference;
    fused[1].negated = sum.operands[sum.fused].negated != (difference && sum.fused == 1);
    fused[3].negated = fused[3].negated != (difference && sum.fused == 0);
    Instruction& instruction = function_.instructions[i];
    instruction.mnemonic = intern(fused_mnemonic(sum.form));
    instruction.first_operand = static_cast<uint32_t>(function_.operands.size());
    instruction.operand_count = 4;
    function_.operands.insert(function_.operands.end(), fused.begin(), fused.end());
  }

  uint32_t intern(Mnemonic mnemonic) {
    const auto at = std::find_if(module_.mnemonics.begin(), module_.mnemonics.end(),
                                 [&](const Mnemonic& m) { return m.text == mnemonic.text; });
    const auto index = static_cast<uint32_t>(at - module_.mnemonics.begin());
    if (at == module_.mnemonics.end()) {
      module_.mnemonics.push_back(std::move(mnemonic));
      forms_.emplace_back();
    }
    return index;
  }

  /// Removes fused instructions and inserts the copies; labels move along with the instruction they precede.
  void rebuild() {
    std::vector<Instruction> result;
    std::vector<uint32_t> moved;
    for (uint32_t i = 0; i < function_.instructions.size(); ++i) {
      moved.push_back(static_cast<uint32_t>(result.size()));
      for (const auto& [copy, original] : copies_before_[i]) {
        const uint32_t size = bytes(function_.registers[original].type);
        const string_view text = size == 8 ? "mov.b64" : size == 4 ? "mov.b32" : "mov.b16";
        Instruction instruction = function_.instructions[i];
        instruction.guard = -1;
        instruction.mnemonic = intern(Mnemonic(text));
        instruction.first_operand = static_cast<uint32_t>(function_.operands.size());
        instruction.operand_count = 2;
        for (const uint32_t r : {copy, original}) {
          Operand o;
          o.kind = OperandKind::Register;
          o.index = r;
          function_.operands.push_back(o);
        }
        result.push_back(instruction);
      }
      if (!removed_[i]) result.push_back(function_.instructions[i]);
    }
    moved.push_back(static_cast<uint32_t>(result.size()));
    function_.instructions = std::move(result);
    for (Label& label : function_.labels) label.target = moved[label.target];
  }

  Function& function_;
  Module& module_;
  std::vector<Form> forms_;  ///< of Module::mnemonics
  ControlFlow flow_;
  std::vector<Access> accesses_;
  std::unordered_map<uint32_t, std::unordered_set<uint32_t>> exposed_;
  std::vector<bool> removed_;
  std::vector<std::vector<std::pair<uint32_t, uint32_t>>> copies_before_;  ///< (copy, original)
  // For the current block:
  uint32_t block_begin_ = 0;  ///< ptxas has no branches after this instruction
  std::vector<Product> products_;
  std::vector<Sum> sums_;
  std::unordered_map<uint32_t, Value> held_;                                          ///< by register
  std::unordered_map<uint32_t, std::vector<std::pair<uint32_t, uint32_t>>> factors_;  ///< (product, which)
};

}  // namespace

void contract(Function& function, Module& module) {
  if (function.defined) Contraction(function, module).run();
}

}  // namespace simt::ptx
