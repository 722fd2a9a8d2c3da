#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "instructions/row.hpp"

namespace simt::functional {
class Translation;
class Lowerer;
}  // namespace simt::functional

/// The instruction table of PTX. Another instruction set would have its own table of Rows, with its own
/// Translation.
namespace simt::instructions {

using PtxRow = Row<void (*)(functional::Translation&), void (*)(functional::Lowerer&)>;

/// All rows, sorted by name.
std::span<const PtxRow* const> ptx_table();

/// Of an opcode's rows whose modifiers the instruction has, the one with the most modifiers. A user's own
/// instructions share one row, and those without a row another: it writes its first operand, nothing moves
/// across it, and translation refuses it.
const PtxRow& find_ptx(std::string_view mnemonic, const std::vector<std::string_view>& modifiers);

/// The rows of an opcode; empty if it is not in the table.
std::span<const PtxRow* const> ptx_rows_of(std::string_view opcode);

/// Whether it can be executed; some PTX is only parsed.
bool is_executable(const PtxRow& row);

}  // namespace simt::instructions
