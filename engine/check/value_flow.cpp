#include "check/value_flow.hpp"

#include <algorithm>
#include <set>
#include <string_view>
#include <unordered_set>

#include "ptx/register_allocation.hpp"

namespace simt::check {
namespace {

using instructions::Facts;
using ptx::OperandKind;

/// Whether a thread's results depend on nothing but what it reads, and are all that it does.
bool computes(const ptx::Mnemonic& mnemonic) {
  const Facts& facts = mnemonic.facts();
  return facts.memory == instructions::Memory::None && facts.control == instructions::Control::Next &&
         facts.motion == instructions::Motion::Free && facts.latency != instructions::Latency::Matrix &&
         facts.carry != instructions::Carry::Always && !mnemonic.has("cc") && mnemonic.opcode != "movmatrix";
}

bool is_move(const ptx::Mnemonic& mnemonic) {
  return mnemonic.opcode == "mov" || mnemonic.opcode == "selp";
}

/// Calls f for the registers in an operand and its parts.
template <class F>
void each_register(const ptx::Function& function, const ptx::Operand& operand, F f) {
  if (operand.kind == OperandKind::Register) f(operand.index);
  for (uint32_t p = 0; p < operand.part_count; ++p)
    each_register(function, function.operands[operand.first_part + p], f);
}

/// Registers, each of which is looked at once.
class Found {
 public:
  explicit Found(size_t registers) : is_found_(registers) {}
  void add(uint32_t r) {
    if (!is_found_[r]) left_.push_back(r);
    is_found_[r] = true;
  }
  bool take(uint32_t& r) {
    if (left_.empty()) return false;
    r = left_.back();
    left_.pop_back();
    return true;
  }

 private:
  std::vector<bool> is_found_;
  std::vector<uint32_t> left_;
};

/// The first of the two state spaces that an instruction's name has, as a copy's destination.
std::string_view first_space(const ptx::Mnemonic& mnemonic) {
  for (const std::string_view word : mnemonic.modifiers)
    if (word == "global" || word.starts_with("shared")) return word;
  return {};
}

bool names_shared(const ptx::Mnemonic& mnemonic) {
  return std::any_of(mnemonic.modifiers.begin(), mnemonic.modifiers.end(),
                     [](std::string_view word) { return word.starts_with("shared"); });
}

/// Shared, local and tensor memory, as one.
bool may_be_on_chip(const ptx::Mnemonic& mnemonic) {
  return !mnemonic.has("global") && !mnemonic.has("const") && !mnemonic.has("param") &&
         !mnemonic.has("param::entry") && !mnemonic.has("param::func");
}

bool may_be_global(const ptx::Mnemonic& mnemonic) {
  return !names_shared(mnemonic) && !mnemonic.has("local");
}

bool is_bulk_store(const ptx::Mnemonic& mnemonic) {
  return mnemonic.opcode == "cp" && mnemonic.has("bulk") && first_space(mnemonic) == "global";
}

/// Loads from memory on the chip, or what may be there.
bool reads_chip(const ptx::Mnemonic& mnemonic) {
  const std::string_view name = mnemonic.opcode;
  if (name == "ld" || name == "atom") return may_be_on_chip(mnemonic);
  if (name == "wmma") return mnemonic.has("load") && may_be_on_chip(mnemonic);
  return name == "ldmatrix" || name == "wgmma" || name == "tcgen05";
}

}  // namespace

/// The instructions that may read what another has written to a register.
const std::vector<uint32_t>& ValueFlow::readers_of(Kernel& kernel, const ptx::Function& function,
                                                   uint32_t written_by, uint32_t value) {
  const auto [at, is_new] = kernel.read_by.try_emplace(uint64_t{written_by} << 32 | value);
  if (is_new) at->second = find_readers(kernel, function, written_by, value);
  return at->second;
}

std::vector<uint32_t> ValueFlow::find_readers(const Kernel& kernel, const ptx::Function& function,
                                              uint32_t written_by, uint32_t value) {
  const std::vector<uint32_t>&readers = kernel.readers[value], &writers = kernel.writers[value];
  std::vector<bool> visited(kernel.flow.blocks.size());
  std::vector<uint32_t> all;
  std::vector<std::pair<uint32_t, uint32_t>> left{{kernel.flow.block_of[written_by], written_by + 1}};
  while (!left.empty()) {
    const auto [number, from] = left.back();
    left.pop_back();
    const ptx::ControlFlow::Block& block = kernel.flow.blocks[number];
    const auto overwrites = [&](uint32_t k) {
      return k >= from && function.instructions[k].guard < 0 && function.registers[value].vector == 1;
    };
    const auto over = std::find_if(writers.begin(), writers.end(), overwrites);
    const bool ends = over != writers.end() && *over < block.last;
    const uint32_t last = ends ? *over + 1 : block.last;
    for (auto k = std::lower_bound(readers.begin(), readers.end(), from); k != readers.end() && *k < last;
         ++k)
      all.push_back(*k);
    if (ends) continue;
    for (const uint32_t next : block.successors) {
      if (visited[next]) continue;
      visited[next] = true;
      left.emplace_back(next, kernel.flow.blocks[next].first);
    }
  }
  return all;
}

const ValueFlow::Use& ValueFlow::use_of(uint32_t load) {
  const auto [at, is_new] = uses_.try_emplace(load);
  if (is_new) at->second = find_use(load);
  return at->second;
}

ValueFlow::Use ValueFlow::find_use(uint32_t load) {
  Kernel* kernel = kernel_of(load);
  const uint32_t first = program_.origins[load].instruction;
  if (!kernel) return {"a function that a kernel calls", first, {}};
  const ptx::Function& function =
      program_.module.functions[program_.functions[program_.origins[load].function].ptx];
  const ptx::Mnemonic& begin = program_.module.mnemonics[function.instructions[first].mnemonic];
  if (begin.opcode == "cp") return use_of_chip(*kernel, function);
  if (begin.facts().control != instructions::Control::Next) return {"what a function does", first, {}};
  return find_use(*kernel, function, first);
}

/// What becomes of what shared, local and tensor memory hold.
const ValueFlow::Use& ValueFlow::use_of_chip(Kernel& kernel, const ptx::Function& function) {
  if (!kernel.chip) kernel.chip = find_use(kernel, function, std::nullopt);
  return *kernel.chip;
}

/// load: nullopt for what is in memory on the chip.
ValueFlow::Use ValueFlow::find_use(Kernel& kernel, const ptx::Function& function,
                                   std::optional<uint32_t> load) {
  const auto mnemonic_of = [&](uint32_t k) -> const ptx::Mnemonic& {
    return program_.module.mnemonics[function.instructions[k].mnemonic];
  };
  // A value is that of a register, as one instruction writes it. Memory on the chip and the carry flag count
  // as registers that nothing overwrites.
  const auto chip = static_cast<uint32_t>(function.registers.size()), carry = chip + 1;
  std::unordered_set<uint64_t> found;
  std::vector<std::pair<uint32_t, uint32_t>> left;
  const auto add = [&](uint32_t k, uint32_t r) {
    if (found.insert(uint64_t{r < chip ? k : 0} << 32 | r).second) left.emplace_back(k, r);
  };
  std::set<uint32_t> stores;
  const auto add_results = [&](uint32_t k) {
    for (const uint32_t r : kernel.steps[k].writes) add(k, r);
    if (mnemonic_of(k).has("cc")) add(k, carry);
  };
  const auto store = [&](uint32_t k) {
    const ptx::Mnemonic& mnemonic = mnemonic_of(k);
    if (may_be_on_chip(mnemonic)) add(k, chip);
    if (may_be_global(mnemonic)) stores.insert(k);
  };
  /// Whether a register is in an operand of these kinds, or in any other.
  const auto is_in = [&](uint32_t k, uint32_t r, auto wanted) {
    const ptx::Instruction& instruction = function.instructions[k];
    bool is = false;
    for (uint32_t o = 0; o < instruction.operand_count; ++o) {
      const ptx::Operand& operand = function.operands[instruction.first_operand + o];
      if (wanted(operand, o)) each_register(function, operand, [&](uint32_t each) { is |= each == r; });
    }
    return is;
  };
  const auto is_address = [](const ptx::Operand& operand, uint32_t) {
    return operand.kind == OperandKind::Address;
  };
  const auto is_no_vector = [](const ptx::Operand& operand, uint32_t) {
    return operand.kind != OperandKind::Vector;
  };
  // nullptr: what it reads only becomes values.
  const auto decided = [&](uint32_t k, uint32_t r) -> const char* {
    const ptx::Instruction& instruction = function.instructions[k];
    const ptx::Mnemonic& mnemonic = mnemonic_of(k);
    const Facts& facts = mnemonic.facts();
    const std::string_view name = mnemonic.opcode;
    if (instruction.guard == static_cast<int32_t>(r)) return "which threads execute";
    if (facts.control != instructions::Control::Next) return "where threads go on";
    const bool is_of_warp = name == "shfl" || name == "vote" || name == "match" || name == "redux";
    if (is_of_warp) {
      const uint32_t last = instruction.operand_count - 1u;
      if (mnemonic.has("sync") && is_in(k, r, [&](const ptx::Operand&, uint32_t o) { return o == last; }))
        return "which threads take part";
      add_results(k);
    } else if (name == "st" || name == "red" || name == "atom" || name == "stmatrix") {
      if (is_in(k, r, is_address)) return "an address";
      if (mnemonic.has("param") || mnemonic.has("param::func")) return "what is passed to a function";
      add_results(k);
      if (name == "stmatrix" || mnemonic.has("async"))
        add(k, chip);
      else
        store(k);
    } else if (name == "wmma" && mnemonic.has("store")) {
      if (is_in(k, r, is_no_vector)) return "an address";
      store(k);
    } else if (name == "wgmma") {
      if (is_in(k, r, is_no_vector)) return "a matrix descriptor";
      add_results(k);
    } else if (facts.memory != instructions::Memory::None) {
      return "an address";
    } else if (name == "tcgen05") {
      if (!mnemonic.has("st") || is_in(k, r, is_no_vector)) return "an address";
      add(k, chip);
    } else if (facts.motion == instructions::Motion::Free || name == "movmatrix" || name == "wmma") {
      add_results(k);
    } else {
      return "what an instruction does";
    }
    return nullptr;
  };
  if (load)
    add_results(*load);
  else
    add(0, chip);
  while (!left.empty()) {
    const auto [from, value] = left.back();
    left.pop_back();
    if (value == chip && load) {
      const Use& use = use_of_chip(kernel, function);
      if (use.decides) return use;
      stores.insert(use.stores.begin(), use.stores.end());
      continue;
    }
    if (value == chip || value == carry) {
      for (uint32_t k = 0; k < kernel.steps.size(); ++k) {
        const ptx::Mnemonic& mnemonic = mnemonic_of(k);
        const Facts& facts = mnemonic.facts();
        if (value == carry) {
          if (facts.carry == instructions::Carry::Always) add_results(k);
          continue;
        }
        if (facts.control == instructions::Control::Call) return {"what a function may find", k, {}};
        if (reads_chip(mnemonic)) add_results(k);
        if (is_bulk_store(mnemonic)) stores.insert(k);
      }
      continue;
    }
    for (const uint32_t reader : readers_of(kernel, function, from, value))
      if (const char* what = decided(reader, value)) return {what, reader, {}};
  }
  return {nullptr, 0, {stores.begin(), stores.end()}};
}

/// nullptr for functions that kernels call: registers take values there that no instruction names.
ValueFlow::Kernel* ValueFlow::kernel_of(uint32_t op) {
  const uint32_t number = program_.origins[op].function;
  const functional::FunctionCode& code = program_.functions[number];
  const ptx::Function& function = program_.module.functions[code.ptx];
  if (!function.entry || op < code.body) return nullptr;
  auto& made = kernels_[number];
  if (made) return made.get();
  made = std::make_unique<Kernel>();
  made->steps.resize(function.instructions.size());
  made->flow = ptx::control_flow(function, program_.module);
  made->readers.resize(function.registers.size());
  made->writers.resize(function.registers.size());
  for (uint32_t k = 0; k < made->steps.size(); ++k) {
    ptx::Access access = ptx::access(function, program_.module, k);
    for (const uint32_t r : access.reads) made->readers[r].push_back(k);
    for (const uint32_t r : access.writes) made->writers[r].push_back(k);
    made->steps[k].reads = std::move(access.reads);
    made->steps[k].writes = std::move(access.writes);
  }
  for (uint32_t at = code.body; at < program_.code.size(); ++at)
    if (program_.origins[at].function == number && facts_[at].kind == Kind::Store && facts_[at].described &&
        facts_[at].space != functional::AccessSpace::Local)
      made->steps[program_.origins[at].instruction].op = at;
  return made.get();
}

const std::vector<uint32_t>* ValueFlow::stores_of(uint32_t load) {
  const auto [at, is_new] = stores_.try_emplace(load);
  if (is_new) at->second = follow(load);
  return at->second ? &*at->second : nullptr;
}

std::optional<std::vector<uint32_t>> ValueFlow::follow(uint32_t load) {
  const Kernel* kernel = kernel_of(load);
  if (!kernel) return std::nullopt;
  const ptx::Function& function =
      program_.module.functions[program_.functions[program_.origins[load].function].ptx];
  std::vector<uint32_t> stores;
  Found found(function.registers.size());
  for (const uint32_t r : kernel->steps[program_.origins[load].instruction].writes) found.add(r);
  for (uint32_t value; found.take(value);)
    for (const uint32_t reader : kernel->readers[value]) {
      const ptx::Instruction& instruction = function.instructions[reader];
      const Step& step = kernel->steps[reader];
      if (instruction.guard == static_cast<int32_t>(value)) return std::nullopt;
      if (step.op != UINT32_MAX) {
        bool is_address = false;
        each_register(function, function.operands[instruction.first_operand],
                      [&](uint32_t r) { is_address |= r == value; });
        if (is_address) return std::nullopt;
        stores.push_back(step.op);
      } else if (computes(program_.module.mnemonics[instruction.mnemonic])) {
        for (const uint32_t r : step.writes) found.add(r);
      } else {
        return std::nullopt;
      }
    }
  std::sort(stores.begin(), stores.end());
  return stores;
}

uint32_t ValueFlow::combined_by(uint32_t store, uint32_t element) {
  const auto [at, is_new] = combined_.try_emplace({store, element}, 0u);
  if (is_new) at->second = trace_back(store, element);
  return at->second;
}

/// Whether all that a register may hold comes from arithmetic of f32, or is a constant.
bool ValueFlow::is_rounded(const Kernel& kernel, uint32_t function_number, uint32_t from) const {
  const ptx::Function& function = program_.module.functions[program_.functions[function_number].ptx];
  bool is_any = false;
  Found found(function.registers.size());
  found.add(from);
  for (uint32_t value; found.take(value);)
    for (const uint32_t writer : kernel.writers[value]) {
      const ptx::Instruction& instruction = function.instructions[writer];
      const ptx::Mnemonic& mnemonic = program_.module.mnemonics[instruction.mnemonic];
      if (is_move(mnemonic)) {
        for (uint32_t k = 1; k < std::min<uint32_t>(3, instruction.operand_count); ++k)
          each_register(function, function.operands[instruction.first_operand + k],
                        [&](uint32_t r) { found.add(r); });
      } else if (computes(mnemonic) && mnemonic.has("f32")) {
        is_any = true;
      } else {
        return false;
      }
    }
  return is_any;
}

/// A number, or what a register always holds; 0 if that is not known.
uint32_t ValueFlow::constant(const Kernel& kernel, const ptx::Function& function,
                             const ptx::Operand& operand) const {
  if (operand.kind == OperandKind::Integer) return static_cast<uint32_t>(operand.value);
  if (operand.kind != OperandKind::Register || kernel.writers[operand.index].size() != 1) return 0;
  const ptx::Instruction& from = function.instructions[kernel.writers[operand.index][0]];
  const ptx::Operand& source = function.operands[from.first_operand + 1];
  const bool is_constant =
      program_.module.mnemonics[from.mnemonic].opcode == "mov" && source.kind == OperandKind::Integer;
  return is_constant ? static_cast<uint32_t>(source.value) : 0;
}

uint32_t ValueFlow::trace_back(uint32_t store, uint32_t element) {
  const Kernel* kernel = kernel_of(store);
  if (!kernel) return 0;
  const functional::Origin& origin = program_.origins[store];
  const ptx::Function& function = program_.module.functions[program_.functions[origin.function].ptx];
  const ptx::Instruction& instruction = function.instructions[origin.instruction];
  std::vector<uint32_t> stored;
  for (uint32_t k = 1; k < instruction.operand_count; ++k)
    each_register(function, function.operands[instruction.first_operand + k],
                  [&](uint32_t r) { stored.push_back(r); });
  if (element >= stored.size() || !is_rounded(*kernel, origin.function, stored[element])) return 0;
  uint32_t bits = 0;
  Found found(function.registers.size());
  found.add(stored[element]);
  for (uint32_t value; found.take(value);)
    for (const uint32_t writer : kernel->writers[value]) {
      const ptx::Instruction& from = function.instructions[writer];
      const ptx::Mnemonic& mnemonic = program_.module.mnemonics[from.mnemonic];
      const bool is_exchange = mnemonic.opcode == "shfl" && mnemonic.has("bfly");
      if (is_exchange) {
        bits |= constant(*kernel, function, function.operands[from.first_operand + 2]) & 31;
      }
      if (is_exchange || computes(mnemonic))
        for (const uint32_t r : kernel->steps[writer].reads) found.add(r);
    }
  return bits;
}

}  // namespace simt::check
