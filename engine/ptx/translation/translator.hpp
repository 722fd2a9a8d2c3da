#pragma once
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "machine/address.hpp"
#include "machine/basic_translation.hpp"
#include "machine/calls.hpp"
#include "machine/code.hpp"
#include "machine/memory.hpp"
#include "ptx/control_flow.hpp"
#include "ptx/register_allocation.hpp"

namespace simt::functional {

/// PTX that parses but cannot be executed here. what(): "FILE:LINE: INSTRUCTION: why".
struct TranslationError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// One instruction being translated from PTX to Ops; passed to the functions that translate opcodes.
/// A translator takes every modifier it supports; an instruction with a modifier not taken is refused.
class Translation : public BasicTranslation {
 public:
  const ptx::Mnemonic& mnemonic() const { return *mnemonic_; }
  const ptx::Module& module() const { return program_.module; }
  const ptx::Function& function() const { return *function_; }
  const ptx::Instruction& instruction() const { return *instruction_; }
  bool in_entry() const { return function_->entry; }

  /// The next type among the modifiers. Refuses the instruction if there is none left.
  ptx::Type take_type();
  std::optional<ptx::Type> take_type_if_any();
  void take_all() { take_all_modifiers(); }

  /// Operands.
  uint32_t operand_count() const { return instruction_->operand_count; }
  const ptx::Operand& operand(uint32_t index);
  const ptx::Operand& part(const ptx::Operand& operand, uint32_t index) const;

  /// Place of a value to read: a register, or an immediate that is added to the constants. Register and type
  /// must have the same size.
  Place source(const ptx::Operand& operand, ptx::Type type);
  Place source(uint32_t index, ptx::Type type) { return source(operand(index), type); }
  /// As `source`, for a register that may be wider or narrower than the type; `bytes` receives its size.
  Place source_of_any_size(const ptx::Operand& operand, ptx::Type type, uint32_t& bytes);
  /// Place to write to; for `_`, a place that is never read.
  Place destination(const ptx::Operand& operand, ptx::Type type);
  Place destination(uint32_t index, ptx::Type type) { return destination(operand(index), type); }
  Place destination_of_any_size(const ptx::Operand& operand, ptx::Type type, uint32_t& bytes);
  PredicateOperand predicate_source(const ptx::Operand& operand);
  Place predicate_destination(const ptx::Operand& operand);
  bool is_predicate(const ptx::Operand& operand) const;
  bool is_immediate(const ptx::Operand& operand) const;
  /// Value of an integer immediate. Refuses anything else.
  int64_t immediate(const ptx::Operand& operand);
  Address address(const ptx::Operand& operand);
  /// Stack slot of a `.param` or `.local` variable that an operand names.
  const ptx::Variable& variable(const ptx::Operand& operand) const;
  uint32_t stack_offset(const ptx::Operand& operand) const;
  uint64_t variable_address(const ptx::Operand& operand);
  uint32_t register_bytes(const ptx::Operand& operand) const;  ///< 0 if it is not a register
  ptx::Type register_type(const ptx::Operand& operand) const;

  /// A value that is the same in all lanes. `bytes` is 4 or 8.
  Place constant(uint64_t bits, uint32_t bytes);
  uint64_t immediate_bits(const ptx::Operand& operand, ptx::Type type);
  /// Registers for this instruction only, `bytes` per lane (4, 8 or 16).
  Place scratch(uint32_t bytes);
  /// Stack space for this instruction only: its offset in the frame.
  uint32_t scratch_slot(uint32_t bytes);
  /// Predicate that holds the carry flag (CC.CF) of the function's extended-precision arithmetic.
  Place carry_flag() const;
  /// In functions with `alloca`: how much dynamic stack (32 bits) was in use when the function was called.
  Place saved_stack() const;
  bool saves_stack() const { return saves_stack_; }
  uint32_t function_number() const { return function_number_; }  ///< index into Program::functions
  /// Places of the function's parameters and results that are registers, and their stack slots.
  struct RegisterSlot {
    Place place;
    StackSlot slot;
  };
  const std::vector<RegisterSlot>& register_results() const { return register_results_; }

  /// Appends an Op that has the instruction's guard.
  Op& emit(Handler handler, Control control = Control::None);
  uint32_t label_target(uint32_t label);  ///< op index; patched at the end
  /// Branch targets are known only at the end of the function, when `patch` is called.
  void when_labels_known(std::function<void()> patch) { patches_.push_back(std::move(patch)); }
  uint32_t op_of_instruction(uint32_t instruction) const { return first_op_[instruction]; }
  uint32_t reconvergence_op() const;
  uint32_t function_index(std::string_view name) const;  ///< UINT32_MAX if the module does not define it

  /// Declares that CTAs influence each other through this instruction, so that their order matters.
  void order_matters() { order_sensitive_ = true; }

  [[noreturn]] void unsupported(const std::string& why) const;

 private:
  friend class Translator;
  explicit Translation(Program& program) : BasicTranslation(program) {}

  /// Refuses an operand of `bytes` bytes if values of the type need a place of another size.
  void check_size(const char* what, uint32_t bytes, ptx::Type type) const;
  /// Size of the function's registers, predicates and carry flag.
  uint32_t fixed_frame_bytes() const;

  const ptx::Function* function_ = nullptr;
  const ptx::Instruction* instruction_ = nullptr;
  uint32_t index_ = 0;  ///< of the instruction in the function
  const ptx::Mnemonic* mnemonic_ = nullptr;
  uint32_t function_number_ = 0;
  ptx::ControlFlow flow_;
  ptx::RegisterAllocation allocation_;
  std::vector<uint32_t> stack_offsets_;     ///< of the function's variables
  std::vector<uint32_t> shared_offsets_;    ///< of the function's own shared variables
  std::vector<uint64_t> module_addresses_;  ///< of the module's variables, as seen by this function
  std::vector<uint32_t> first_op_;
  std::vector<std::function<void()>> patches_;
  std::unordered_map<uint64_t, Place> constants4_, constants8_;
  uint32_t scratch_bytes_ = 0, scratch_now_ = 0;
  uint32_t slots_begin_ = 0, slot_bytes_ = 0, slots_now_ = 0;  ///< of scratch slots
  std::vector<RegisterSlot> register_parameters_, register_results_;
  bool saves_stack_ = false;
  bool order_sensitive_ = false;
};

/// Translates a module and places its variables in memory. Throws TranslationError.
Program translate(ptx::Module module, DeviceMemory& memory,
                  const std::map<std::string, uint64_t>& places = {});
/// Frees a module's variables.
void free_variables(const Program& program, DeviceMemory& memory);

}  // namespace simt::functional
