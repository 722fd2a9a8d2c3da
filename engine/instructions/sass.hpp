#pragma once
#include <span>
#include <string_view>

#include "instructions/facts.hpp"

namespace simt::sass {
class Translation;
}  // namespace simt::sass

/// The instruction table of machine code (SASS), sm_75 to sm_90.
namespace simt::instructions {

/// What an instruction reads and writes follows from how it is translated; unit and latency from the opcode
/// tables of the GPUs' specifications, which traces use too.
struct SassRow {
  Required<std::string_view> name;  ///< without modifiers
  /// Its operands and modifiers, for documentation: `d` destination, `p` predicate, `a` address, other
  /// letters sources; [..] optional.
  Required<std::string_view> forms;
  Required<void (*)(sass::Translation&)> translate;
};

/// All rows, sorted by name.
std::span<const SassRow* const> sass_table();

/// nullptr if the opcode is not in the table.
const SassRow* find_sass(std::string_view opcode);

}  // namespace simt::instructions
