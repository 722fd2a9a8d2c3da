#pragma once
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "instructions/ptx.hpp"
#include "machine/lowering.hpp"
#include "ptx/control_flow.hpp"
#include "ptx/register_allocation.hpp"

namespace simt::functional {

/// Lowers a program, one PTX instruction after another. The rules of lowering_rules.hpp see the current
/// instruction through it.
class Lowerer {
 public:
  Lowerer(const Program& program, uint32_t sm, bool plain) : program_(program), sm_(sm), plain_(plain) {}

  Lowering run();

  /// The current instruction.
  uint32_t sm() const { return sm_; }
  bool in_entry() const { return function_->entry; }
  const ptx::Mnemonic& mnemonic() const { return *mnemonic_; }
  bool has(std::string_view modifier) const { return mnemonic_->has(modifier); }
  bool names_shared_memory() const { return has("shared") || has("shared::cta") || has("shared::cluster"); }
  /// Elements of a vector access.
  uint32_t vector_length() const { return has("v8") ? 8 : has("v4") ? 4 : has("v2") ? 2 : 1; }
  uint32_t operand_count() const { return instruction_->operand_count; }
  /// nullptr if there are fewer operands.
  const ptx::Operand* operand(uint32_t index) const {
    return index < operand_count() ? &function_->operands[instruction_->first_operand + index] : nullptr;
  }
  ptx::Type type() const { return last_type(*mnemonic_); }  ///< the last among the modifiers
  ptx::Type type(uint32_t k) const;                         ///< the k-th among the modifiers
  /// Whether one of its Ops takes effect in time order.
  bool deferred() const { return deferred_; }
  /// The opcode in the row that serves as the rule's argument.
  const char* argument() const { return mnemonic_->row->lowering.cases[0].code.opcodes[0]; }

  /// Virtual registers as places: (first 32-bit register, count), or predicates.
  struct Place32 {
    uint32_t first = 0, count = 1;
    bool predicate = false;
  };
  const std::vector<Place32>& reads() const { return reads_; }
  const std::vector<Place32>& writes() const { return writes_; }

  /// The value of an operand that is an integer, or a register that only ever holds one.
  std::optional<int64_t> constant(uint32_t operand) const;
  /// Leaves an operand out of reads(), if it is a register.
  void omit_read(uint32_t operand);

  /// Appends machine instructions for the current instruction, in the forms of MachineCode.
  void append(const instructions::MachineCode& code);
  RawInstruction& one(std::string_view sass);
  void halves(std::string_view low, std::string_view high);
  void chain(std::initializer_list<std::string_view> sass);
  void repeat(uint32_t times, std::string_view sass);
  RawInstruction& memory(std::string_view sass, uint32_t bytes, AddressKind kind = AddressKind::Lanes);
  void copy();
  /// As `one`, for the instruction that carries the barrier.
  RawInstruction& barrier(std::string_view sass);

 private:
  static ptx::Type last_type(const ptx::Mnemonic& mnemonic);
  const ptx::Mnemonic& mnemonic(uint32_t i) const {
    return program_.module.mnemonics[function_->instructions[i].mnemonic];
  }

  void lower_function(const FunctionCode& function);
  void lower_instruction(uint32_t i, uint32_t op, uint32_t op_end);
  void apply_rule(uint32_t i);
  void lower_plainly();
  void fuse(uint32_t product);

  /// Finds multiplications that feed only 64-bit additions: each becomes part of an IMAD.WIDE.
  void find_fusions();
  void collect_accesses();
  /// Finds registers that only ever hold a kernel parameter: where PTX reads the register, machine code reads
  /// the constant bank.
  void find_parameters();
  void find_loaded_parameter(uint32_t i, uint64_t bank_offset, const std::vector<uint64_t>& offsets);

  std::vector<Place32> places(const std::vector<uint32_t>& registers) const;
  std::vector<Place32> places_of_values(const std::vector<uint32_t>& registers) const;
  void join_vectors();
  void join_vector(const ptx::Operand& vector);
  void follow_copies();
  void name_constant(uint32_t i);

  void begin();
  RawInstruction& add(std::string_view sass);
  void link(bool is_first, std::string_view sass);
  void end(uint32_t op, uint32_t op_end, uint32_t instruction);

  const Program& program_;
  uint32_t sm_;
  bool plain_;
  Lowering result_;
  struct TextHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  std::unordered_map<std::string, uint32_t, TextHash, std::equal_to<>> opcode_index_;
  const FunctionCode* code_ = nullptr;
  const ptx::Function* function_ = nullptr;
  const ptx::Instruction* instruction_ = nullptr;
  const ptx::Mnemonic* mnemonic_ = nullptr;
  ptx::ControlFlow flow_;
  std::vector<ptx::Access> accesses_;
  std::vector<uint32_t> uses_, defined_by_;
  std::vector<uint32_t> fuses_;           ///< by instruction: the product that an addition absorbs
  std::vector<bool> fused_;               ///< products absorbed by additions
  std::vector<uint32_t> constant_of_;     ///< by register: offset of its value in the constant bank, if it is
                                          ///< there
  std::map<uint32_t, Place32> copies_;    ///< copies in the block that cost nothing: place -> what it holds
  std::map<uint32_t, uint32_t> written_;  ///< by place: the register that was last written there, in the text
  std::vector<Place32> reads_, writes_;
  bool deferred_ = false;
  uint32_t first_ = 0, access_ = UINT32_MAX, line_ = 0;
};

/// Lowers all functions of a program for an architecture (70, 75, 80, 86, 89, 90). plain: divisions, roots
/// and special functions as products.
Lowering lower(const Program& program, uint32_t sm_version, bool plain = false);

}  // namespace simt::functional
