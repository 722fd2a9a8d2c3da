#include "ptx/translation/translator.hpp"

#include <algorithm>
#include <cstring>
#include <set>

#include "machine/calls.hpp"
#include "machine/clock_wait.hpp"
#include "machine/round_up.hpp"
#include "operations/texture.hpp"
#include "ptx/contraction.hpp"
#include "ptx/schedule.hpp"
#include "ptx/translation/instructions.hpp"
#include "ptx/translation/references.hpp"
#include "ptx/translation/refusal.hpp"
#include "ptx/translation/register_slots.hpp"
#include "ptx/translation/shared_layout.hpp"

namespace simt::functional {
namespace {

using ptx::Space;
using ptx::Type;

constexpr uint32_t unlimited = UINT32_MAX;

}  // namespace

/// Translates all functions of a module.
class Translator {
 public:
  Translator(Program& program, DeviceMemory& memory, const std::map<std::string, uint64_t>& places)
      : program_(program), memory_(memory), places_(places), t_(program) {}

  void run() {
    place_variables();
    references_ = find_references(module());
    shared_.emplace(module(), references_, program_.variables);
    program_.functions.resize(program_.module.functions.size());
    for (uint32_t f = 0; f < program_.module.functions.size(); ++f) translate(f);
    for (uint32_t f = 0; f < program_.module.functions.size(); ++f) {
      FunctionCode& code = program_.functions[f];
      code.order_sensitive = false;
      for (const uint32_t g : references_.reachable[f]) code.order_sensitive |= sensitive_[g];
      std::set<uint32_t> under_way;
      code.deepest_stack = deepest_stack(f, under_way);
    }
  }

 private:
  const ptx::Module& module() const { return program_.module; }

  /// Places the variables in global and constant memory, with their initial values.
  void place_variables() {
    program_.variables.assign(module().variables.size(), UINT64_MAX);
    for (size_t i = 0; i < module().variables.size(); ++i) {
      const ptx::Variable& v = module().variables[i];
      const bool in_memory = v.space == Space::Global || v.space == Space::Constant;
      if (in_memory && v.linkage != ptx::Linkage::Extern) program_.variables[i] = place_variable(v);
    }
    for (size_t i = 0; i < module().variables.size(); ++i)
      for (const ptx::Relocation& r : module().variables[i].relocations) {
        const uint64_t target = address_of(r.symbol, module().variables[i].line);
        const uint64_t value = (target + static_cast<uint64_t>(r.addend)) >> r.mask_shift;
        std::memcpy(memory_.host(program_.variables[i] + r.offset), &value, r.bytes);
      }
  }

  uint64_t place_variable(const ptx::Variable& v) {
    const bool opaque = ptx::is_opaque(v.type);
    const uint64_t bytes = opaque ? sizeof(TextureDescriptor) : std::max<uint64_t>(1, v.size);
    const std::string name(v.name);
    uint64_t address = 0;
    if (const auto place = places_.find(name); place == places_.end())
      address = memory_.allocate(bytes, name);
    else if (memory_.allocate_at(place->second, bytes, name))
      address = place->second;
    if (!address) refuse(module(), v.line, "no room for its " + std::to_string(bytes) + " bytes");
    std::copy(v.initial.begin(), v.initial.end(), reinterpret_cast<uint8_t*>(memory_.host(address)));
    if (opaque) place_descriptor(v, address);
    return address;
  }

  void place_descriptor(const ptx::Variable& v, uint64_t address) {
    try {
      const TextureDescriptor descriptor = initial_descriptor(v);
      std::memcpy(memory_.host(address), &descriptor, sizeof descriptor);
    } catch (const std::invalid_argument& error) {
      // free_variables does not know of it yet.
      memory_.free(address);
      refuse(module(), v.line, std::string(error.what()) + " is not supported");
    }
  }

  /// Address of a variable or function named by an initialiser.
  uint64_t address_of(std::string_view symbol, uint32_t line) {
    for (size_t k = 0; k < module().variables.size(); ++k)
      if (module().variables[k].name == symbol && program_.variables[k] != UINT64_MAX)
        return program_.variables[k];
    const uint32_t f = function_index(module(), symbol);
    if (f == UINT32_MAX)
      refuse(module(), line, "the initialiser names `" + std::string(symbol) + "`, which is not defined");
    return function_address(f);
  }

  void translate(uint32_t number) {
    const ptx::Function& function = module().functions[number];
    FunctionCode& code = program_.functions[number];
    code.name = std::string(function.name);
    code.ptx = number;
    code.entry = function.entry;
    code.max_threads = function.max_threads;
    code.required_threads = function.required_threads;
    code.cluster = function.cluster;
    code.first = static_cast<uint32_t>(program_.code.size());
    code.shared_bytes = shared_->static_bytes(number);
    place_stack(function, code);
    sensitive_.push_back(false);
    if (!function.defined) {
      code.body = code.end = code.first;
      return;
    }
    t_.function_ = &function;
    t_.function_number_ = number;
    t_.flow_ = ptx::control_flow(function, module());
    t_.allocation_ = ptx::allocate_registers(function, module(), t_.flow_);
    t_.shared_offsets_ = shared_->own(number);
    t_.module_addresses_ = program_.variables;
    for (size_t v = 0; v < module().variables.size(); ++v)
      if (module().variables[v].space == Space::Shared && module().variables[v].size == 0)
        t_.module_addresses_[v] = shared_->dynamic_offset(number);
    t_.first_op_.assign(function.instructions.size() + 1, 0);
    t_.patches_.clear();
    t_.saves_stack_ = references_.takes_stack[number] && !function.entry;
    t_.scratch_bytes_ = scratch_base();
    t_.slots_begin_ = code.stack_bytes;
    t_.slot_bytes_ = 0;
    t_.order_sensitive_ = false;
    begin_function(number);
    code.body = static_cast<uint32_t>(program_.code.size());
    for (size_t i = 0; i < function.instructions.size(); ++i) {
      t_.instruction_ = &function.instructions[i];
      t_.index_ = static_cast<uint32_t>(i);
      t_.mnemonic_ = &module().mnemonics[t_.instruction_->mnemonic];
      t_.begin(t_.mnemonic_->modifiers);
      t_.scratch_now_ = scratch_base();
      t_.slots_now_ = 0;
      t_.first_op_[i] = static_cast<uint32_t>(program_.code.size());
      t_.mnemonic_->row->translate.value(t_);
      if (const std::string_view left = t_.untaken(); !left.empty())
        t_.unsupported("`." + std::string(left) + "` is not supported here");
    }
    t_.first_op_.back() = static_cast<uint32_t>(program_.code.size());
    // Falling off the end returns.
    const ptx::Instruction end;
    t_.instruction_ = &end;
    t_.index_ = static_cast<uint32_t>(function.instructions.size());
    emit_return(t_);
    for (const auto& patch : t_.patches_) patch();
    code.end = static_cast<uint32_t>(program_.code.size());
    code.registers = t_.allocation_.registers;
    code.max_live = t_.allocation_.max_live;
    code.places = t_.allocation_.place;
    code.frame_bytes = t_.fixed_frame_bytes() + t_.scratch_bytes_;
    code.stack_bytes = round_up(code.stack_bytes + t_.slot_bytes_, 16);
    sensitive_.back() = t_.order_sensitive_;
  }

  /// The dynamic stack in use at the call is stored after the function's own registers.
  uint32_t scratch_base() const { return t_.saves_stack_ ? place::register_bytes : 0; }

  /// Ops before the first instruction, which initialise the function's registers.
  void begin_function(uint32_t number) {
    const ptx::Function& function = module().functions[number];
    const ptx::Instruction begin;
    t_.instruction_ = &begin;
    t_.index_ = 0;
    if (t_.saves_stack_) emit_save_stack(t_);
    t_.register_parameters_.clear();
    t_.register_results_.clear();
    uint32_t next = 0;
    for (size_t v = 0; v < function.results.size() + function.parameters.size(); ++v) {
      const ptx::Variable& variable = function.variables[v];
      if (function.entry || variable.space != Space::Register) continue;
      const bool predicate = variable.type == Type::Pred, result = v < function.results.size();
      for (uint32_t k = 0; k < ptx::register_count(variable); ++k) {
        const uint32_t at = t_.allocation_.place[next++];
        if (at == ptx::RegisterAllocation::unused) continue;
        const Place first =
            place::frame | (predicate ? t_.allocation_.registers * place::register_bytes + 4 * at
                                      : at * place::register_bytes);
        each_slot(variable.type, first, t_.stack_offsets_[v] + k * slot_bytes(variable.type),
                  [&](Place part, StackSlot slot) {
                    if (result) {
                      t_.register_results_.push_back({part, slot});
                      return;
                    }
                    Op& op = t_.emit(from_stack(slot.bytes));
                    op.destination = part;
                    op.immediate = slot.offset;
                  });
      }
    }
  }

  void place_stack(const ptx::Function& function, FunctionCode& code) {
    t_.stack_offsets_.assign(function.variables.size(), 0);
    const size_t results = function.results.size(), parameters = function.parameters.size();
    uint32_t at = 0, block = 0;
    for (size_t v = 0; v < function.variables.size(); ++v) {
      const ptx::Variable& variable = function.variables[v];
      if (variable.space == Space::Shared || variable.space == Space::Global) continue;
      const bool in_register = variable.space == Space::Register;
      const uint32_t size = in_register ? slot_bytes(variable) : static_cast<uint32_t>(variable.size);
      if (function.entry && v < parameters) {
        block = round_up(block, variable.alignment);
        t_.stack_offsets_[v] = block;
        code.parameter_offsets.push_back(block);
        code.parameter_sizes.push_back(size);
        code.parameter_types.emplace_back(ptx::name(variable.type));
        block += size;
        continue;
      }
      at = round_up(at, std::max(variable.alignment, 4u));
      t_.stack_offsets_[v] = at;
      if (v < results) {
        code.result_offsets.push_back(at);
        code.result_sizes.push_back(size);
      } else if (v < results + parameters) {
        code.parameter_offsets.push_back(at);
        code.parameter_sizes.push_back(size);
      }
      at += size;
    }
    code.stack_bytes = round_up(at, 16);
    code.parameter_bytes = block;
  }

  /// Bytes of stack per thread for a function and everything it calls; unlimited if unknown (recursion,
  /// indirect calls).
  uint32_t deepest_stack(uint32_t f, std::set<uint32_t>& under_way) {
    if (const auto it = deepest_.find(f); it != deepest_.end()) return it->second;
    if (references_.calls_indirectly[f] || references_.takes_stack[f] || !under_way.insert(f).second)
      return unlimited;
    uint32_t most = 0;
    for (const uint32_t g : references_.calls[f]) most = std::max(most, deepest_stack(g, under_way));
    under_way.erase(f);
    const uint32_t result = most == unlimited ? unlimited : program_.functions[f].stack_bytes + most;
    deepest_[f] = result;
    return result;
  }

  Program& program_;
  DeviceMemory& memory_;
  const std::map<std::string, uint64_t>& places_;
  Translation t_;
  References references_;
  std::optional<SharedLayout> shared_;
  std::vector<bool> sensitive_;
  std::map<uint32_t, uint32_t> deepest_;
};

Program translate(ptx::Module module, DeviceMemory& memory, const std::map<std::string, uint64_t>& places) {
  Program program;
  program.module = std::move(module);
  for (ptx::Function& function : program.module.functions) {
    ptx::contract(function, program.module);
    ptx::schedule(function, program.module);
  }
  try {
    Translator(program, memory, places).run();
    find_clock_waits(program);
  } catch (...) {
    free_variables(program, memory);
    throw;
  }
  return program;
}

void free_variables(const Program& program, DeviceMemory& memory) {
  for (const uint64_t address : program.allocations) memory.free(address);
  for (size_t i = 0; i < program.variables.size(); ++i) {
    const Space space = program.module.variables[i].space;
    if (space == Space::Global || space == Space::Constant) memory.free(program.variables[i]);
  }
}

void refuse(const ptx::Module& module, uint32_t line, const std::string& why) {
  throw TranslationError(module.name + ":" + std::to_string(line) + ": " + ptx::line_text(module, line) +
                         ": " + why);
}

}  // namespace simt::functional
