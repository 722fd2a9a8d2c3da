#include "instructions/sass.hpp"

#include <algorithm>
#include <array>

#include "instructions/sass/control.hpp"
#include "instructions/sass/float.hpp"
#include "instructions/sass/integer.hpp"
#include "instructions/sass/memory.hpp"
#include "instructions/sass/moves.hpp"
#include "instructions/sass/tensor.hpp"

namespace simt::instructions {
namespace {

template <size_t... Count>
consteval auto sorted_by_opcode(const SassRow (&... rows)[Count]) {
  std::array<const SassRow*, (Count + ...)> all{};
  size_t next = 0;
  const auto append = [&](const auto& list) {
    for (const SassRow& row : list) all[next++] = &row;
  };
  (append(rows), ...);
  std::sort(all.begin(), all.end(),
            [](const SassRow* a, const SassRow* b) { return a->name.value < b->name.value; });
  return all;
}

constexpr auto opcodes = sorted_by_opcode(sass_control_rows, sass_float_rows, sass_integer_rows,
                                          sass_memory_rows, sass_move_rows, sass_tensor_rows);

static_assert(std::adjacent_find(opcodes.begin(), opcodes.end(),
                                 [](const SassRow* a, const SassRow* b) {
                                   return a->name.value == b->name.value;
                                 }) == opcodes.end(),
              "two rows of the SASS table have the same name");

}  // namespace

std::span<const SassRow* const> sass_table() {
  return opcodes;
}

const SassRow* find_sass(std::string_view opcode) {
  const auto found =
      std::ranges::lower_bound(opcodes, opcode, {}, [](const SassRow* row) { return row->name.value; });
  return found != opcodes.end() && (*found)->name.value == opcode ? *found : nullptr;
}

}  // namespace simt::instructions
