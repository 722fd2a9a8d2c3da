#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "instructions/row.hpp"

namespace simt::functional {
class Translation;
class Lowerer;
}  // namespace simt::functional

/// The instruction table of PTX. Another instruction set has another table of Rows, with its own Translation.
namespace simt::instructions {

using PtxRow = Row<void (*)(functional::Translation&), void (*)(functional::Lowerer&)>;

/// All rows, sorted by name.
std::span<const PtxRow* const> ptx_table();

/// Of the rows of an opcode whose modifiers an instruction has, the one with the most. For an instruction
/// without a row one that stands for all these: it writes its first operand, nothing moves across it, and it
/// is refused when it is translated.
const PtxRow& find_ptx(std::string_view opcode, const std::vector<std::string_view>& modifiers);

/// The rows of an opcode, none if the table does not have it.
std::span<const PtxRow* const> ptx_rows_of(std::string_view opcode);

/// Whether it can be executed; rows of PTX that is only read cannot.
bool is_executable(const PtxRow& row);

}  // namespace simt::instructions
