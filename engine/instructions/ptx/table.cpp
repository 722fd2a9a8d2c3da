#include <algorithm>
#include <array>

#include "instructions/ptx.hpp"
#include "instructions/ptx/arithmetic.hpp"
#include "instructions/ptx/asynchronous.hpp"
#include "instructions/ptx/bits.hpp"
#include "instructions/ptx/control.hpp"
#include "instructions/ptx/data.hpp"
#include "instructions/ptx/matrix.hpp"
#include "instructions/ptx/memory.hpp"
#include "instructions/ptx/tensor_memory.hpp"
#include "instructions/ptx/texture.hpp"
#include "instructions/ptx/video.hpp"
#include "ptx/own_instructions.hpp"

namespace simt::instructions {
namespace {

/// Pointers to all rows, sorted by name. A '.' sorts before letters and digits, so the rows of an opcode are
/// adjacent.
template <size_t... Count>
consteval auto sorted(const PtxRow (&... rows)[Count]) {
  std::array<const PtxRow*, (Count + ...)> all{};
  size_t next = 0;
  const auto append = [&](const auto& list) {
    for (const PtxRow& row : list) all[next++] = &row;
  };
  (append(rows), ...);
  std::sort(all.begin(), all.end(),
            [](const PtxRow* a, const PtxRow* b) { return a->name.value < b->name.value; });
  return all;
}

constexpr auto table = sorted(arithmetic_rows, asynchronous_rows, bits_rows, control_rows, data_rows,
                              matrix_rows, memory_rows, tensor_memory_rows, texture_rows, video_rows);

static_assert(std::all_of(table.begin(), table.end(), [](const PtxRow* row) { return complete(*row); }),
              "a row of the PTX table is incomplete or contradicts itself");
static_assert(std::adjacent_find(table.begin(), table.end(),
                                 [](const PtxRow* a, const PtxRow* b) {
                                   return a->name.value == b->name.value;
                                 }) == table.end(),
              "two rows of the PTX table have the same name");

template <class R>
concept RowsMayBeIncomplete =
    requires { R{.name = "add", .facts = arithmetic, .forms = "add.u32 T,T,T", .lowering = nothing}; };
template <class F>
concept FactsMayBeIncomplete = requires { F{.writes = Writes::First, .names = Names::Values}; };
static_assert(!RowsMayBeIncomplete<PtxRow> && !FactsMayBeIncomplete<Facts>);
static_assert(!std::constructible_from<decltype(PtxRow::translate), std::nullptr_t>);

constexpr PtxRow unknown_row{.name = "",
                             .facts = ordered,
                             .forms = "",
                             .translate = functional::translate_unsupported,
                             .lowering = nothing};

constexpr PtxRow own_row{.name = "",
                         .facts = arithmetic,
                         .forms = "",
                         .translate = functional::translate_own,
                         .lowering = functional::lower_own};

/// How well a row matches an instruction; -1 if the instruction lacks one of the row's modifiers.
struct Fit {
  int modifiers = -1;  ///< number of the row's modifiers
  ptrdiff_t last = 0;  ///< position in the instruction of the row's first modifier, counted from the end

  friend auto operator<=>(const Fit&, const Fit&) = default;
};

Fit fit(std::string_view name, const std::vector<std::string_view>& modifiers) {
  Fit result{0, 0};
  for (size_t dot = name.find('.'); dot != std::string_view::npos; ++result.modifiers) {
    const size_t next = name.find('.', dot + 1);
    const auto at = std::find(modifiers.begin(), modifiers.end(), name.substr(dot + 1, next - dot - 1));
    if (at == modifiers.end()) return {};
    if (result.modifiers == 0) result.last = modifiers.end() - at;
    dot = next;
  }
  return result;
}

}  // namespace

std::span<const PtxRow* const> ptx_table() {
  return table;
}

std::span<const PtxRow* const> ptx_rows_of(std::string_view opcode) {
  const auto [first, last] =
      std::ranges::equal_range(table, opcode, {}, [](const PtxRow* row) { return row->opcode(); });
  return {first, last};
}

const PtxRow& find_ptx(std::string_view mnemonic, const std::vector<std::string_view>& modifiers) {
  const std::string_view opcode = mnemonic.substr(0, mnemonic.find('.'));
  const PtxRow* found = &unknown_row;
  Fit best;
  for (const PtxRow* row : ptx_rows_of(opcode))
    if (const Fit f = fit(row->name, modifiers); f > best) {
      found = row;
      best = f;
    }
  if (found == &unknown_row && ptx::own_instruction(mnemonic)) return own_row;
  return *found;
}

bool is_executable(const PtxRow& row) {
  return row.translate.value != functional::translate_unsupported;
}

}  // namespace simt::instructions
