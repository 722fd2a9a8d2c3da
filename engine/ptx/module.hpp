#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "instructions/ptx.hpp"

/// PTX as written: one translation unit, parsed and with names resolved, but not checked further. The meaning
/// of instructions, and whether they are supported, is decided by translation (ptx/translation/).
namespace simt::ptx {

/// Fundamental types, named as in PTX without the dot. `Pred` is the type of predicate registers.
enum class Type : uint8_t {
  None,
  B1,
  B8,
  B16,
  B32,
  B64,
  B128,
  U8,
  U16,
  U32,
  U64,
  S8,
  S16,
  S32,
  S64,
  F16,
  F16x2,
  BF16,
  BF16x2,
  TF32,
  F32,
  F32x2,
  F64,
  E4M3,
  E5M2,
  E3M2,
  E2M3,
  E2M1,
  E4M3x2,
  E5M2x2,
  U16x2,
  S16x2,
  U8x4,
  S8x4,
  U4,
  S4,
  Pred,
  Texref,
  Samplerref,
  Surfref
};

/// Size of a register or memory element of this type; 0 for None, Pred and types smaller than a byte.
uint32_t bytes(Type type);
bool is_float(Type type);
bool is_signed(Type type);
bool is_opaque(Type type);  ///< texref, samplerref, surfref
/// The type named by a modifier such as "f32"; None if it is not a type.
Type type_named(std::string_view modifier);
std::string_view name(Type type);

enum class Space : uint8_t { None, Register, Constant, Global, Local, Param, Shared };

enum class Linkage : uint8_t { Internal, Visible, Extern, Weak, Common };

/// A part of an initialiser that holds an address: `bytes` wide, at `offset` in the variable.
struct Relocation {
  uint64_t offset = 0;
  uint8_t bytes = 8;
  bool generic = false;    ///< generic(symbol); otherwise an address in the symbol's own space
  uint8_t mask_shift = 0;  ///< for 0xFF(symbol) and similar: how many bits the address is shifted right
  std::string_view symbol;
  int64_t addend = 0;
};

/// A variable in any space except registers: of the module, of a function body, or a parameter.
struct Variable {
  std::string_view name;
  Space space = Space::None;
  Type type = Type::None;
  Linkage linkage = Linkage::Internal;
  uint32_t alignment = 1;        ///< bytes
  uint64_t size = 0;             ///< bytes; 0 for an array without size (dynamic shared memory)
  bool managed = false;          ///< .attribute(.managed)
  uint32_t line = 0;             ///< in the PTX text, from 1
  std::vector<uint8_t> initial;  ///< empty if all zero, else `size` bytes
  std::vector<Relocation> relocations;
  /// For a texref, samplerref or surfref: its initialiser as written, such as filter_mode = nearest.
  std::vector<std::pair<std::string_view, std::string_view>> properties;
};

enum class OperandKind : uint8_t {
  None,
  Register,  ///< index: into Function::registers
  Special,   ///< %tid.x and similar; text: without the %
  Integer,   ///< value; a constant expression is folded
  Float,     ///< value: bits of a double (0D..., 1.0), or of a float if `single` (0F...)
  Variable,  ///< its address; index: into Function::variables if `local`, else into Module::variables;
             ///< value: a byte offset written as name+8
  Symbol,    ///< a function, or an undeclared name; text. If `local`, it names a list of targets (component
             ///< 1, index: into Function::targets) or a prototype (2, Function::prototypes)
  Label,     ///< index: into Function::labels
  Address,   ///< [base + value]: parts[0] is the base (Register, Variable, Symbol, Special or Integer);
             ///< further parts: the other operands in the brackets (tensor coordinates as Vector, texture
             ///< operands)
  Vector,    ///< {a, b, c}: parts
  List,      ///< (a, b, c): parts; for calls
  Pair,      ///< p|q: parts[0], parts[1]
  Discard    ///< _
};

struct Operand {
  OperandKind kind = OperandKind::None;
  bool negated = false;  ///< !p, or -r where PTX allows it
  bool single = false;
  bool local = false;
  uint8_t component = 0;  ///< the .x .y .z .w of a register (video selectors .b0-.b3, .h0, .h1): 1 to 4, or
                          ///< 8+k for .bk, 16+k for .hk, 24 for several parts such as .b7654 or .h10; 0 for
                          ///< none. text: as written, without the dot
  uint32_t index = 0;
  uint32_t first_part = 0;  ///< parts are Function::operands[first_part] on, part_count of them
  uint32_t part_count = 0;
  int64_t value = 0;
  std::string_view text;
};

struct Instruction {
  uint32_t mnemonic = 0;        ///< index into Module::mnemonics
  uint32_t line = 0;            ///< in the PTX text, from 1
  uint32_t begin = 0, end = 0;  ///< bytes of the PTX text, from the guard to after the semicolon
  uint32_t location = 0;        ///< index into Module::locations; 0 for none
  uint32_t first_operand = 0;   ///< Function::operands[first_operand] on; their parts are elsewhere in it
  uint16_t operand_count = 0;
  bool guard_negated = false;
  int32_t guard = -1;  ///< predicate register (index into Function::registers), -1 for none
};

/// A full dotted mnemonic, such as ld.global.nc.v4.f32, stored once per module.
struct Mnemonic {
  std::string_view text;
  std::string_view opcode;                  ///< up to the first dot
  std::vector<std::string_view> modifiers;  ///< between the dots; "shared::cta" is one
  const instructions::PtxRow* row;          ///< its row in the instruction table

  explicit Mnemonic(std::string_view whole);

  const instructions::Facts& facts() const { return row->facts; }
  bool loads_parameter() const {  ///< of a kernel or function
    return facts().memory == instructions::Memory::Load && (has("param") || has("param::entry"));
  }
  bool has(std::string_view modifier) const {
    return std::find(modifiers.begin(), modifiers.end(), modifier) != modifiers.end();
  }
};

/// A declared register; every member of a family `%r<10>` is one.
struct RegisterDeclaration {
  std::string_view name;  ///< for a family, the prefix
  int32_t number = -1;    ///< for a member of a family, else -1
  Type type = Type::None;
  uint8_t vector = 1;  ///< 2 or 4 for .v2 and .v4 registers
};

struct Label {
  std::string_view name;
  uint32_t target = 0;  ///< index into Function::instructions; may be one past the last
};

/// .branchtargets, .calltargets: a list of labels or functions to which an indirect instruction may transfer
/// control.
struct TargetList {
  std::string_view name;
  std::vector<uint32_t> labels;             ///< for branches
  std::vector<std::string_view> functions;  ///< for calls
};

struct Prototype {
  std::string_view name;
  std::vector<Variable> results, parameters;
};

struct Function {
  std::string_view name;
  bool entry = false;
  bool defined = false;  ///< has a body
  bool noreturn = false;
  Linkage linkage = Linkage::Internal;
  uint32_t line = 0;
  uint32_t body_begin = 0, body_end = 0;      ///< bytes of the PTX text, between the braces
  std::vector<Variable> results, parameters;  ///< also at the front of `variables`, results first
  std::vector<Variable> variables;            ///< results, parameters, then those declared in the body
  std::vector<RegisterDeclaration> registers;
  std::vector<Operand> operands;
  std::vector<Instruction> instructions;
  std::vector<Label> labels;
  std::vector<TargetList> targets;
  std::vector<Prototype> prototypes;
  std::array<uint32_t, 3> max_threads{};       ///< .maxntid, 0 for none
  std::array<uint32_t, 3> required_threads{};  ///< .reqntid
  std::array<uint32_t, 3> cluster{};           ///< .reqnctapercluster
  uint32_t max_registers = 0;                  ///< .maxnreg
  uint32_t min_ctas = 0;                       ///< .minnctapersm
  bool explicit_cluster = false;
  bool blocks_are_clusters = false;  ///< .blocksareclusters: the grid is given in clusters
};

struct Location {
  uint32_t file = 0, line = 0, column = 0;  ///< of .loc
  uint32_t call = 0;  ///< index of the call where its function is inlined; 0 if it is not
};

struct Module {
  std::unique_ptr<const std::string> text;  ///< all string_views below point into it
  std::string name;                         ///< for messages
  uint32_t version = 0;                     ///< .version 8.3 is 83
  uint32_t target = 0;                      ///< .target sm_90a is 90
  std::string_view target_suffix;           ///< a, f, or empty
  uint32_t address_size = 64;
  std::vector<std::pair<uint32_t, std::string_view>> files;  ///< of .file
  std::vector<Location> locations;                           ///< [0] is "none"
  std::vector<Mnemonic> mnemonics;
  std::vector<Variable> variables;
  std::vector<Function> functions;  ///< one per name: a definition replaces declarations
  std::vector<std::pair<std::string_view, std::string_view>> aliases;  ///< .alias: name, function

  /// The path of a file; empty if there is none of this number.
  std::string_view file(uint32_t number) const;
  /// Where the program itself calls library code that is inlined at a location; the location if it is of no
  /// library, or of one throughout.
  const Location& own_location(uint32_t location) const;
};

/// Whether a source is of a CUDA toolkit or an installed Python package, by its path.
bool is_library(std::string_view path);

/// The offset of each kernel parameter in the parameter buffer: in order, each aligned.
std::vector<uint64_t> parameter_offsets(const std::vector<Variable>& parameters);

/// A line of a module's text, counted from 1, without the spaces around it; empty if there is none.
std::string line_text(const Module& module, uint32_t line);

}  // namespace simt::ptx
