#include <algorithm>
#include <array>

#include "instructions/sass/control.hpp"
#include "instructions/sass/float.hpp"
#include "instructions/sass/integer.hpp"
#include "instructions/sass/memory.hpp"
#include "instructions/sass/moves.hpp"
#include "instructions/sass/tensor.hpp"
#include "instructions/sass/texture.hpp"
#include "isa/opcode.hpp"

namespace simt {
namespace {

template <size_t... Count>
consteval auto sorted_by_opcode(const OpcodeRow (&... rows)[Count]) {
  std::array<const OpcodeRow*, (Count + ...)> all{};
  size_t next = 0;
  const auto append = [&](const auto& list) {
    for (const OpcodeRow& row : list) all[next++] = &row;
  };
  (append(rows), ...);
  std::sort(all.begin(), all.end(),
            [](const OpcodeRow* a, const OpcodeRow* b) { return a->name.value < b->name.value; });
  return all;
}

using namespace instructions;

// Sources of generations and classes, unless a row says otherwise: NVIDIA's list of SASS instructions (CUDA
// Binary Utilities); the unit assignment of Accel-Sim 1.x for sm_35 (Kepler), sm_60 (Pascal) and sm_70 (Volta
// to Ampere), the categories of Accel-Sim 2.0 (Hopper), and what ptxas 13 emits for simt's own kernels
// (Blackwell).

constexpr auto opcodes =
    sorted_by_opcode(sass_control_rows, sass_float_rows, sass_integer_rows, sass_memory_rows, sass_move_rows,
                     sass_tensor_rows, sass_texture_rows);

static_assert(std::all_of(opcodes.begin(), opcodes.end(),
                          [](const OpcodeRow* row) { return complete(*row); }),
              "a row of the opcode table is incomplete or contradicts itself");
/// Machine code is executed from Volta on.
constexpr bool can_be_executed(const OpcodeRow& row) {
  for (Generation g = Generation::Volta; g <= Generation::Blackwell;
       g = static_cast<Generation>(static_cast<int>(g) + 1))
    if (row.classes.in(g) != Class::Gone) return true;
  return false;
}
static_assert(std::all_of(opcodes.begin(), opcodes.end(),
                          [](const OpcodeRow* row) { return !row->is_executed() || can_be_executed(*row); }),
              "an opcode has a function but is in no generation whose machine code is executed");

static_assert(std::adjacent_find(opcodes.begin(), opcodes.end(),
                                 [](const OpcodeRow* a, const OpcodeRow* b) {
                                   return a->name.value == b->name.value;
                                 }) == opcodes.end(),
              "two rows of the opcode table have the same name");

/// Where each row is, by its name's hash: traces are searched for an opcode in every line.
constexpr size_t slots = 1024;
constexpr size_t slot_of(std::string_view name) {
  uint32_t hash = 0;
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x01000193u;
  return (hash ^ hash >> 15) % slots;
}
consteval auto hashed() {
  std::array<const OpcodeRow*, slots> all{};
  for (const OpcodeRow* row : opcodes) {
    size_t at = slot_of(row->name);
    while (all[at]) at = (at + 1) % slots;
    all[at] = row;
  }
  return all;
}
constexpr auto by_hash = hashed();

constexpr OpcodeRow unknown_product = {"", {},           Energy::Tensor,
                                       "", not_executed, {.elements = Elements::Float16, .stand_in = true}};
constexpr OpcodeRow unknown_group_product = {
    "", {}, Energy::Tensor, "", not_executed, {.elements = Elements::Float16, .warp_group = true}};
constexpr OpcodeRow unknown_uniform = {"", {}, Energy::Uniform, "", not_executed};
constexpr OpcodeRow unknown_opcode = {"", {}, Energy::IntAdd, "", not_executed};

}  // namespace

std::span<const OpcodeRow* const> opcode_rows() {
  return opcodes;
}

const OpcodeRow* find_opcode(std::string_view opcode) {
  const std::string_view name = opcode_name(opcode);
  size_t at = slot_of(name);
  while (by_hash[at] && by_hash[at]->name.value != name) at = (at + 1) % slots;
  return by_hash[at];
}

const OpcodeRow& opcode_row(std::string_view opcode) {
  if (const OpcodeRow* row = find_opcode(opcode)) return *row;
  const std::string_view name = opcode_name(opcode);
  if (name.ends_with("GMMA")) return unknown_group_product;
  if (name.ends_with("MMA")) return unknown_product;
  return name.starts_with('U') ? unknown_uniform : unknown_opcode;
}

}  // namespace simt
