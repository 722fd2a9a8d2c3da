#pragma once
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "isa/opcode.hpp"
#include "machine/access.hpp"
#include "machine/basic_translation.hpp"
#include "sass/code.hpp"
#include "sass/operand.hpp"
#include "sass/stored_parameters.hpp"

namespace simt::sass {

/// Registers in Lowering::touched.
constexpr uint32_t predicate_flag = 0x10000, uniform_flag = 0x20000, uniform_predicate_flag = 0x30000;

using functional::AccessSpace;
using functional::Address;
using functional::ClockUse;
using functional::Context;
using functional::Control;
using functional::Detail;
using functional::Handler;
using functional::Op;
using functional::Place;
using functional::PredicateOperand;

/// Where the registers of a kernel are in its warps' frames: rows of one word per lane, then predicates, one
/// word each. What is written to RZ or PT goes to places that nothing reads.
struct Frame {
  uint32_t registers = 0;               ///< R0 and up
  uint32_t uniforms = 0;                ///< UR0 and up
  uint32_t barriers = 0;                ///< B0 and up
  static constexpr uint32_t spare = 4;  ///< rows for RZ and URZ as destinations

  Place general(uint32_t index) const;
  Place uniform(uint32_t index) const;
  Place barrier(uint32_t index) const;
  Place predicate(uint32_t index) const;
  Place uniform_predicate(uint32_t index) const;
  Place nowhere() const;        ///< the spare rows
  Place reduced_truth() const;  ///< what BAR.RED finds, until B2R fetches it
  Place reduced_count() const;
  Place reported() const;          ///< two rows that RPCMOV moves to and from
  Place after_collective() const;  ///< two rows: where each lane goes on at ENDCOLLECTIVE
  Place scratch() const;           ///< rows of the instruction being executed
  uint32_t bytes(uint32_t scratch_rows) const;
  Frame joined(const Frame& other) const;  ///< with room for what either holds
};

/// One machine instruction being translated to Ops; passed to the functions that translate opcodes. It takes
/// every modifier that it supports and looks at every operand: an instruction with a modifier that is not
/// taken, or with an operand that nobody asked for, is refused. So is a sign or a suffix of an operand of
/// which only the place was asked for. What the instruction reads and writes is noted for the timing model as
/// its operands are resolved.
///
/// Uniform registers hold a value per lane like others: lanes that diverge do not see each other's.
class Translation : public functional::BasicTranslation {
 public:
  uint32_t sm() const { return sm_; }
  const OpcodeRow& row() const { return *row_; }
  const OpcodeClass& what() const { return row_->classes.newest(); }
  /// Of an access to memory, by its class.
  AccessSpace space() const;
  /// All modifiers and operands: whatever they are, they change nothing.
  void take_all();

  uint32_t operand_count() const { return static_cast<uint32_t>(operands_.size()); }
  const Operand& operand(uint32_t index) const;
  /// Whether there is such an operand, of this kind.
  bool is(uint32_t index, OperandKind kind) const;
  bool is_predicate(uint32_t index) const;

  /// Place of a value to read, in `words` consecutive rows: a register, a constant, or an immediate. Signs
  /// and the like (`negated`, suffixes) are left to the caller. A 64-bit immediate is sign-extended.
  Place source(uint32_t index, uint32_t words = 1);
  /// As `source`, for a double: an immediate is its upper half.
  Place source_double(uint32_t index);
  /// Place to write to.
  Place destination(uint32_t index, uint32_t words = 1);
  /// The operand's predicate, negated if it is written with `!`.
  PredicateOperand predicate(uint32_t index);
  /// What is emitted next is only for lanes for which the condition holds, too.
  void also_guarded_by(PredicateOperand condition);
  /// Where the first or the last operand is a predicate, it is such a condition. Returns the index of the
  /// first operand that is none.
  uint32_t take_condition();
  Place predicate_destination(uint32_t index);
  /// P0 to P6 by number, for instructions that name them by a mask.
  Place predicate_by_number(uint32_t index, bool uniform, bool written);
  Place barrier(uint32_t index);  ///< a convergence barrier
  Place reported(bool high) const {
    return frame_.reported() + (high ? functional::place::register_bytes : 0);
  }
  Place after_collective() const { return frame_.after_collective(); }
  Place barrier_result(bool count) const { return count ? frame_.reduced_count() : frame_.reduced_truth(); }
  int64_t integer(uint32_t index) const;
  /// The 32 bits that instructions with an immediate hold.
  uint32_t immediate_bits() const { return static_cast<uint32_t>(line_->low >> 32); }
  /// Address operand in global, generic, shared or local memory: Base::Pair or Base::Narrow. May emit an Op
  /// that adds registers. narrow: in shared memory, though the instruction has the modifier .E.
  Address address(uint32_t index, bool narrow = false);
  /// As `address`, for instructions that access only the CTA's own shared memory.
  Address own_address(uint32_t index, bool narrow = false);
  bool independent_samplers() const { return module_.independent_samplers; }
  uint64_t code_address() const;     ///< of this instruction
  uint64_t section_address() const;  ///< where its section begins
  uint32_t section() const { return section_; }
  /// Address of a branch target: a byte offset in the section, or the name of a function.
  uint64_t target(uint32_t index) const;

  /// Words of a constant bank, for instructions whose operand says only where they are.
  Place constant_words(uint32_t bank, uint32_t offset, uint32_t words) {
    return launch_row(bank, offset, words);
  }
  /// Rows that hold the same in all lanes.
  Place constant(std::initializer_list<uint32_t> words);
  /// Rows for this instruction only.
  Place scratch(uint32_t words);
  /// A register by number, for instructions and system calls whose operands are implied.
  Place general(uint32_t index, uint32_t words, bool written);
  Place uniform(uint32_t index, uint32_t words);  ///< to read

  /// Appends an Op that has the instruction's predicate.
  Op& emit(Handler handler, Control control = Control::None);
  /// Removes the guard of an Op just emitted, which then decides itself what to do for which lanes.
  PredicateOperand take_guard(Op& op);
  /// The Op just emitted branches to an address once all code is translated.
  void branches_to(uint64_t address) { branches_.emplace_back(program().code.size() - 1, address); }
  /// The Op just emitted accesses memory: `bytes` per lane.
  void accesses(uint32_t bytes, AddressKind kind = AddressKind::Lanes);
  /// Immediates that the timing model uses: barrier number and threads, groups to wait for.
  RawInstruction& timed() { return raw_; }
  /// The timing model takes it for one of this opcode.
  void time_as(std::string opcode) { timed_opcode_ = std::move(opcode); }
  /// The number in a uniform register, if the instruction that last wrote it, in the order of the code, moved
  /// a number there.
  std::optional<uint32_t> number_in_uniform(uint32_t index) const;
  void order_matters();
  /// Lanes that execute it do not go on at the next instruction.
  void leaves() { leaves_ = true; }
  /// The section calls functions whose addresses it finds in registers.
  void calls_by_register() { by_register_.insert(section_); }

  [[noreturn]] void unsupported(const std::string& why) const;

 private:
  friend class Translator;
  explicit Translation(const Module& module, Translated& result);

  void begin(uint32_t section, uint32_t index);
  void begin_system_function(size_t instruction);
  void end();
  Place launch_row(uint32_t bank, uint32_t offset, uint32_t words);
  /// A word of a constant bank. Refuses what is not known of bank 0.
  functional::ConstantWord constant_at(uint32_t bank, uint32_t offset);
  const Operand& at(uint32_t index) const;
  const Operand& placed(uint32_t index);
  void check_all_used() const;
  bool holds_policy(uint32_t descriptor) const;
  void note(bool written, RegisterFile file, uint32_t index, uint32_t words);
  Place value(uint32_t index, uint32_t words, bool is_double);
  uint32_t slot_of(uint32_t index) const;
  std::string written(uint32_t index) const;  ///< an operand, for messages

  const Module& module_;
  Translated& result_;
  uint32_t sm_;
  uint32_t section_ = 0;
  uint32_t index_ = 0;  ///< of the instruction in its section
  Frame frame_;
  const Line* line_ = nullptr;
  const OpcodeRow* row_ = nullptr;
  std::vector<std::string_view> modifiers_;
  std::vector<Operand> operands_;
  uint64_t placed_ = 0;             ///< operands of which the place was asked for
  mutable uint64_t looked_at_ = 0;  ///< operands that were asked for whole
  PredicateOperand guard_;
  RawInstruction raw_;
  std::string timed_opcode_;
  bool leaves_ = false;
  uint32_t slot_ = 0;                      ///< of the operand being resolved
  uint32_t bearer_ = UINT32_MAX;           ///< Op that accesses memory
  std::vector<uint32_t> reads_, writes_;   ///< as in Lowering::touched
  std::vector<uint32_t> parameter_words_;  ///< that it reads: 64-bit words of the parameter block
  uint32_t scratch_now_ = 0, scratch_rows_ = 0;
  std::vector<uint64_t> section_begin_;             ///< in instructions, of all code
  std::map<std::string_view, uint64_t> functions_;  ///< by name: address
  std::map<std::vector<uint32_t>, Place> constants_;
  std::map<std::array<uint32_t, 3>, Place> launch_rows_;
  std::vector<functional::ConstantWord> constant_words_;  ///< of these rows
  std::vector<std::pair<size_t, uint64_t>> branches_;
  std::vector<Step> steps_;         ///< of each instruction
  std::set<uint32_t> by_register_;  ///< sections that call functions by their addresses
  std::map<std::string, uint32_t, std::less<>> opcode_index_;
};

}  // namespace simt::sass
