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

#include "functional/calls.hpp"
#include "functional/code.hpp"
#include "functional/memory.hpp"
#include "ptx/control_flow.hpp"
#include "ptx/register_allocation.hpp"

namespace simt::functional {

/// PTX that parses but cannot be executed here. what(): "FILE:LINE: INSTRUCTION: why".
struct TranslationError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A function without a body in PTX, provided by the system, such as vprintf. Its arguments and result are in
/// the caller's stack frame, see CallSite.
struct Builtin {
  Handler run = nullptr;
  uint32_t arguments = 0, results = 0;
  /// It changes state shared by all threads: threads call it one at a time, in time order.
  bool ordered = false;
};
/// nullptr if there is none with this name.
const Builtin* find_builtin(std::string_view name);

/// Where an address operand points.
struct Address {
  enum class Base : uint8_t {
    Wide,    ///< place holds 64-bit lanes
    Narrow,  ///< place holds 32-bit lanes
    Own,     ///< as Narrow; an address in shared memory, whose bits that name a CTA do not count
    Pair,    ///< place holds the low and then the high words of 64-bit lanes, as registers of machine code do
    Stack    ///< relative to the running function's stack frame
  };
  Base base = Base::Wide;
  Place place = place::none;
  int64_t offset = 0;
  /// State space of the variable it names, or None if it names none.
  ptx::Space space = ptx::Space::None;
  bool entry_parameter = false;  ///< offset in the kernel's parameter block
};

struct PredicateOperand {
  Place place = place::none;
  bool negated = false;
};

/// One instruction being translated from PTX to Ops; passed to the functions that translate opcodes.
/// A translator takes every modifier it supports; an instruction with a modifier not taken is refused.
class Translation {
 public:
  const ptx::Mnemonic& mnemonic() const { return *mnemonic_; }
  const ptx::Module& module() const { return program_.module; }
  const ptx::Function& function() const { return *function_; }
  const ptx::Instruction& instruction() const { return *instruction_; }
  bool in_entry() const { return function_->entry; }

  /// Modifiers. `take` returns whether the instruction has the modifier, and marks it as handled.
  bool take(std::string_view modifier);
  /// Index of the first of these modifiers that the instruction has, or `otherwise`.
  int take_one_of(std::initializer_list<std::string_view> modifiers, int otherwise = -1);
  /// The next type among the modifiers. Refuses the instruction if there is none left.
  ptx::Type take_type();
  std::optional<ptx::Type> take_type_if_any();
  /// The next modifier not yet taken, whatever it is; empty if there is none.
  std::string_view take_next();
  void take_all();

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
  /// Makes a Detail for the last Op emitted.
  template <class D>
  D& detail() {
    auto owned = std::make_unique<D>();
    D& d = *owned;
    take_detail(std::move(owned));
    return d;
  }
  /// Gives the last Op emitted a Detail.
  void take_detail(std::unique_ptr<Detail> detail) {
    program_.code.back().detail = detail.get();
    program_.details.push_back(std::move(detail));
  }
  uint32_t label_target(uint32_t label);  ///< op index; patched at the end
  /// Branch targets are known only at the end of the function, when `patch` is called.
  void when_labels_known(std::function<void()> patch) { patches_.push_back(std::move(patch)); }
  uint32_t op_of_instruction(uint32_t instruction) const { return first_op_[instruction]; }
  uint32_t reconvergence_op() const;
  uint32_t function_index(std::string_view name) const;  ///< UINT32_MAX if the module does not define it
  Program& program() { return program_; }

  /// Declares that CTAs influence each other through this instruction, so that their order matters.
  void order_matters() { order_sensitive_ = true; }

  [[noreturn]] void unsupported(const std::string& why) const;

 private:
  friend class Translator;
  explicit Translation(Program& program) : program_(program) {}

  /// Refuses an operand of `bytes` bytes if values of the type need a place of another size.
  void check_size(const char* what, uint32_t bytes, ptx::Type type) const;
  /// Size of the function's registers, predicates and carry flag.
  uint32_t fixed_frame_bytes() const;

  Program& program_;
  const ptx::Function* function_ = nullptr;
  const ptx::Instruction* instruction_ = nullptr;
  uint32_t index_ = 0;  ///< of the instruction in the function
  const ptx::Mnemonic* mnemonic_ = nullptr;
  uint64_t taken_ = 0;
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
