#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

#include "isa/instruction.hpp"
#include "isa/required.hpp"

namespace simt::sass {
class Translation;
}  // namespace simt::sass

/// What is known of a machine (SASS) opcode, from Kepler to Blackwell: one row each, in instructions/sass/.
/// Traces, execution, timing, energies, the roofline and the opcode tables of Python read the rows.
namespace simt {

/// An opcode table's entry for an opcode's first token.
struct OpcodeClass {
  Unit unit = Unit::Int;
  Operation operation = Operation::Arithmetic;
  MemorySpace space = MemorySpace::None;
  bool half_precision = false;

  friend bool operator==(const OpcodeClass&, const OpcodeClass&) = default;
};

/// Opcode tables that come with simt: one for the GPUs whose instruction sets differ little.
enum class Generation : uint8_t { Kepler, Pascal, Volta, Turing, Ampere, Hopper, Blackwell };

struct GenerationFacts {
  std::string_view name;
  std::array<uint16_t, 6> sm_versions;  ///< ends with zeros
};
inline constexpr GenerationFacts generations[] = {
    {"kepler", {30, 32, 35, 37}},
    {"pascal", {50, 52, 53, 60, 61, 62}},  // and Maxwell: one instruction set
    {"volta", {70, 72}},
    {"turing", {75}},
    {"ampere", {80, 86, 87, 88, 89}},  // and Ada
    {"hopper", {90}},
    {"blackwell", {100, 101, 103, 110, 120, 121}},
};

/// Classes of execution: what an opcode does to the machine.
enum class Class : uint8_t {
  Gone,  ///< the generation does not have the opcode
  Integer,
  Float,
  Half,
  Double,
  SpecialFunction,
  Conversion,
  IntegerMultiply,
  FloatCompare,
  Tensor,
  Uniform,
  Branch,
  BranchOnAlu,
  Texture,
  SurfaceLoad,
  SurfaceStore,
  SurfaceReduction,
  Nop,
  Exit,
  Barrier,
  MemoryBarrier,
  AsyncCommit,
  AsyncWait,
  Sleep,
  SleepOnAlu,
  ConstantLoad,
  GlobalLoad,
  GlobalStore,
  GlobalAtomic,
  GlobalReduction,
  LocalLoad,
  LocalStore,
  SharedLoad,
  SharedStore,
  SharedAtomic,
  SharedReduction,
  GenericLoad,
  GenericStore,
  GenericAtomic,
  AsyncCopy,
  BulkLoad,
  BulkStore,
  Mbarrier,
  TensorMemoryProduct,
  TensorMemoryCopy,
  TensorMemoryCommit,
  TensorMemoryMove,
  Count
};

struct ClassFacts {
  std::string_view name;  ///< in opcode tables
  OpcodeClass what;
};
inline constexpr ClassFacts classes[] = {
    {"", {}},
    {"integer", {Unit::Int}},
    {"float", {Unit::Fp32}},
    {"half", {Unit::Fp32, Operation::Arithmetic, MemorySpace::None, true}},
    {"double", {Unit::Fp64}},
    {"special_function", {Unit::Sfu}},
    {"conversion", {Unit::Conversion}},
    {"integer_multiply", {Unit::Multiply}},
    {"float_compare", {Unit::Compare}},
    {"tensor", {Unit::Tensor}},
    {"uniform", {Unit::Uniform}},
    {"branch", {Unit::Branch, Operation::Branch}},
    {"branch_on_alu", {Unit::Int, Operation::Branch}},  // before Volta branches have no unit of their own
    {"texture", {Unit::Texture, Operation::Load, MemorySpace::Texture}},
    // Surfaces take an integer slot where no addresses are known, as in Accel-Sim's tables.
    {"surface_load", {Unit::Int, Operation::Load, MemorySpace::Texture}},
    {"surface_store", {Unit::Int, Operation::Store, MemorySpace::Texture}},
    {"surface_reduction", {Unit::Int, Operation::Reduction, MemorySpace::Texture}},
    {"nop", {Unit::Int, Operation::Nop}},
    {"exit", {Unit::Int, Operation::Exit}},
    {"barrier", {Unit::Int, Operation::Barrier}},
    {"memory_barrier", {Unit::Memory, Operation::MemoryBarrier}},
    {"async_commit", {Unit::Int, Operation::AsyncCommit}},
    {"async_wait", {Unit::Int, Operation::AsyncWait}},
    {"sleep", {Unit::Branch, Operation::Sleep}},
    {"sleep_on_alu", {Unit::Int, Operation::Sleep}},
    // Through the integer unit to the constant cache; traces of real GPUs carry no address for it.
    {"constant_load", {Unit::Int, Operation::Load, MemorySpace::Constant}},
    {"global_load", {Unit::Memory, Operation::Load, MemorySpace::Global}},
    {"global_store", {Unit::Memory, Operation::Store, MemorySpace::Global}},
    {"global_atomic", {Unit::Memory, Operation::Atomic, MemorySpace::Global}},
    {"global_reduction", {Unit::Memory, Operation::Reduction, MemorySpace::Global}},
    {"local_load", {Unit::Memory, Operation::Load, MemorySpace::Local}},
    {"local_store", {Unit::Memory, Operation::Store, MemorySpace::Local}},
    {"shared_load", {Unit::Memory, Operation::Load, MemorySpace::Shared}},
    {"shared_store", {Unit::Memory, Operation::Store, MemorySpace::Shared}},
    {"shared_atomic", {Unit::Memory, Operation::Atomic, MemorySpace::Shared}},
    {"shared_reduction", {Unit::Memory, Operation::Reduction, MemorySpace::Shared}},
    {"generic_load", {Unit::Memory, Operation::Load, MemorySpace::Generic}},
    {"generic_store", {Unit::Memory, Operation::Store, MemorySpace::Generic}},
    {"generic_atomic", {Unit::Memory, Operation::Atomic, MemorySpace::Generic}},
    {"async_copy", {Unit::Memory, Operation::AsyncCopy, MemorySpace::Global}},
    {"bulk_load", {Unit::Tma, Operation::BulkLoad, MemorySpace::Global}},
    {"bulk_store", {Unit::Tma, Operation::BulkStore, MemorySpace::Global}},
    {"mbarrier", {Unit::Memory, Operation::MbarrierArrive, MemorySpace::Shared}},
    {"tensor_memory_product", {Unit::Tensor, Operation::TensorProduct}},
    {"tensor_memory_copy", {Unit::Uniform, Operation::TensorCopy}},
    {"tensor_memory_commit", {Unit::Uniform, Operation::TensorCommit}},
    {"tensor_memory_move", {Unit::Tensor, Operation::TensorMove}},
};
static_assert(std::size(classes) == static_cast<size_t>(Class::Count));

/// The key in an Energies file (src/simt/power/energies.py) that the energy of an opcode has.
enum class Energy : uint8_t {
  IntAdd,
  IntLogic,
  IntShift,
  IntMad,
  IntMulWide,
  IntCompare,
  IntBits,
  Move,
  Convert,
  Fp32Add,
  Fp32Mul,
  Fp32Fma,
  Fp32Compare,
  Fp16Add,
  Fp16Mul,
  Fp16Fma,
  Fp64Add,
  Fp64Mul,
  Fp64Fma,
  Fp64Compare,
  Sfu,
  Shuffle,
  Vote,
  Branch,
  Barrier,
  Uniform,
  Nop,
  Texture,
  LoadStore,
  Tensor,  ///< per multiply-add, by the type of the elements
  Count
};
inline constexpr std::string_view energy_names[] = {
    "int_add",      "int_logic",    "int_shift", "int_mad",  "int_mul_wide", "int_compare",
    "int_bits",     "move",         "convert",   "fp32_add", "fp32_mul",     "fp32_fma",
    "fp32_compare", "fp16_add",     "fp16_mul",  "fp16_fma", "fp64_add",     "fp64_mul",
    "fp64_fma",     "fp64_compare", "sfu",       "shuffle",  "vote",         "branch",
    "barrier",      "uniform",      "nop",       "texture",  "load_store",   "",
};
static_assert(std::size(energy_names) == static_cast<size_t>(Energy::Count));

/// An opcode's class in each generation.
class Classes {
 public:
  struct Since {
    Generation first;
    Class of;
  };
  /// Each class holds until the next one; before the first there is no such opcode.
  constexpr Classes(std::initializer_list<Since> changes) {
    for (const Since& change : changes)
      for (size_t g = static_cast<size_t>(change.first); g < of_.size(); ++g) of_[g] = change.of;
  }

  constexpr Class in(Generation generation) const { return of_[static_cast<size_t>(generation)]; }
  /// In the newest generation that has it.
  constexpr const OpcodeClass& newest() const {
    for (size_t g = of_.size(); g > 0; --g)
      if (of_[g - 1] != Class::Gone) return classes[static_cast<size_t>(of_[g - 1])].what;
    return classes[0].what;
  }
  constexpr bool is_empty() const {
    for (const Class c : of_)
      if (c != Class::Gone) return false;
    return true;
  }

 private:
  std::array<Class, std::size(generations)> of_{};
};

/// Elements of a tensor product, unless a modifier (TF32, BF16, S4, U4, E4M3, E5M2) says otherwise.
enum class Elements : uint8_t { None, Float16, Float8, Float4, Integer8, Binary, Float64 };

/// Registers of operands that are wider than 32 bits.
enum class Widths : uint8_t {
  Single,       ///< none; those of a tensor product follow from its shape, FP64 has two each
  Pair,         ///< the result has two, unless the modifier 32 says otherwise
  WideProduct,  ///< with WIDE the result and the addend have two
  ToType,       ///< of a conversion: a modifier's type is the result's, a second one the source's
  FromType,     ///< likewise, but a single floating-point type is the source's
  SameType,     ///< result and source have the modifier's type
  Pairs,        ///< all have two
  PairsBy64     ///< with 64, S64 or U64 all have two
};

/// What each address of a memory instruction names.
enum class Access : uint8_t {
  ByModifiers,  ///< as many bytes as a modifier says, or 4
  MatrixRows,   ///< 16 bytes: a row of eight 16-bit elements. A modifier says how many registers
  Mbarrier      ///< 8 bytes
};

/// Waits until at most so many are open as the instruction's immediate says.
enum class CountedWait : uint8_t {
  None,
  Counter,  ///< of a dependence counter
  Groups    ///< of groups of warp-group products
};

/// From when on the results of machine code can be read, where the latency of the unit does not say:
/// timing/warps/decoded_kernel.cpp has the cycles.
enum class ResultTime : uint8_t { OfUnit, UniformMove, Transfer };

/// A value for opcodes with consecutive modifiers, such as "G.S"; those without any if it is empty.
template <class T>
struct IfModified {
  std::string_view modifiers;
  T value;
};

/// The first case that an opcode has is used.
template <class T, size_t most>
class Cases {
 public:
  constexpr Cases() = default;
  constexpr Cases(std::initializer_list<IfModified<T>> list) : count_(list.size()) {
    for (size_t k = 0; k < list.size(); ++k) cases_[k] = list.begin()[k];  // too many do not compile
  }
  constexpr T of(std::string_view opcode, T otherwise) const;

 private:
  std::array<IfModified<T>, most> cases_{};
  size_t count_ = 0;
};

/// What only some opcodes have.
struct Particulars {
  Elements elements = Elements::None;  ///< of a tensor product
  bool warp_group = false;  ///< a product by the four warps of a warpgroup, of operands in shared memory
  Widths widths = Widths::Single;
  Access access = Access::ByModifiers;
  Cases<Operation, 3> operations = {};  ///< in place of the class's, by modifiers
  bool scoped_fence = false;            ///< a fence whose modifiers say whether it orders beyond the CTA
  Cases<Energy, 5> energies = {};       ///< in place of the row's, by modifiers
  uint8_t flops = 0;                    ///< floating-point operations of a lane; a fused multiply-add is two
  IfModified<CountedWait> wait = {};
  ResultTime result = ResultTime::OfUnit;
  bool reads_uniform_late = false;  ///< reads what uniform instructions write later than they do themselves
  bool stand_in = false;            ///< what it does is not modelled; its class stands in for it
};

/// Emits the Ops of an instruction of machine code.
using Translate = void (*)(sass::Translation&);
/// Of opcodes that are known in traces only.
inline constexpr Translate not_executed = nullptr;

/// Everything known about an opcode. A row that lacks a member or contradicts itself does not compile.
struct OpcodeRow {
  Required<std::string_view> name;  ///< without modifiers
  Classes classes;
  Required<Energy> energy;
  /// Modifiers and operands that are executed, for documentation: `d` destination, `p` predicate, `a`
  /// address, other letters sources; [..] optional. What an instruction reads and writes follows from its
  /// translation. Empty if it is not executed.
  Required<std::string_view> forms;
  Required<Translate> translate;
  Particulars also = {};

  constexpr bool is_executed() const { return translate.value != nullptr; }
};

/// Whether a row specifies everything it must, without contradictions.
constexpr bool complete(const OpcodeRow& row) {
  const auto in_opcode = [](char c) { return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; };
  for (const char c : row.name.value)
    if (!in_opcode(c)) return false;
  const bool is_product = row.also.elements != Elements::None;
  return !row.name.value.empty() && !row.classes.is_empty() &&
         (row.is_executed() || row.forms.value.empty()) && is_product == (row.energy == Energy::Tensor) &&
         (is_product || !row.also.warp_group) && !(row.is_executed() && row.also.stand_in);
}

/// All rows, sorted by name.
std::span<const OpcodeRow* const> opcode_rows();
/// The row of an opcode, with or without modifiers; nullptr if there is none.
const OpcodeRow* find_opcode(std::string_view opcode);
/// Likewise, but for an opcode without a row one that stands in for it, which has no name: by the end of the
/// opcode's name, a product of FP16 (MMA) by a warp or a warpgroup (GMMA); by its beginning, an instruction
/// of the uniform datapath (U); or else an integer addition.
const OpcodeRow& opcode_row(std::string_view opcode);

/// An opcode without its modifiers.
constexpr std::string_view opcode_name(std::string_view opcode) {
  return opcode.substr(0, opcode.find('.'));
}

/// Whether an opcode has these modifiers, one after the other: "G.S".
constexpr bool has_modifiers(std::string_view opcode, std::string_view modifiers) {
  for (size_t dot = opcode.find('.'); dot != std::string_view::npos; dot = opcode.find('.', dot + 1)) {
    const std::string_view rest = opcode.substr(dot + 1);
    if (rest.starts_with(modifiers) && (rest.size() == modifiers.size() || rest[modifiers.size()] == '.'))
      return true;
  }
  return false;
}

template <class T, size_t most>
constexpr T Cases<T, most>::of(std::string_view opcode, T otherwise) const {
  for (size_t k = 0; k < count_; ++k)
    if (cases_[k].modifiers.empty() || has_modifiers(opcode, cases_[k].modifiers)) return cases_[k].value;
  return otherwise;
}

}  // namespace simt
