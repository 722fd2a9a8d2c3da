#pragma once
#include <algorithm>
#include <string_view>

#include "instructions/facts.hpp"
#include "instructions/machine_code.hpp"

namespace simt::instructions {

/// Everything known about one instruction of an instruction set.
/// Translate: a function that emits its executable Ops. Lower: a function that emits its machine instructions
/// for the timing model, if MachineCases cannot express them.
template <class Translate, class Lower>
struct Row {
  /// The opcode, then the modifiers that distinguish the row from others of the opcode: `cp.async.bulk` is a
  /// `cp` with both modifiers.
  Required<std::string_view> name;
  Facts facts;
  /// Forms that are tested and listed in docs/functional/coverage.md; src/simt/cuda/coverage.py describes the
  /// notation.
  Required<std::string_view> forms;
  Required<Translate> translate;
  Lowering<Lower> lowering;
  std::string_view later_forms = {};  ///< forms that only newer architectures have

  constexpr std::string_view opcode() const { return name.value.substr(0, name.value.find('.')); }
};

/// Whether a row specifies everything it must, without contradictions.
template <class Translate, class Lower>
constexpr bool complete(const Row<Translate, Lower>& row) {
  const auto upper = [](char c) { return c >= 'A' && c <= 'Z'; };
  const auto listed = [&](std::string_view forms) {
    for (size_t at = 0; at < forms.size();) {
      const size_t end = std::min(forms.find(" | ", at), forms.size());
      const std::string_view form = forms.substr(at, end - at);
      if (!form.starts_with(row.opcode()) || form.find(' ') == std::string_view::npos) return false;
      at = end + 3;
    }
    return true;
  };
  const Lowering<Lower>& lowering = row.lowering;
  for (uint32_t k = 0; k < lowering.count; ++k)
    for (const char* opcode : lowering.cases[k].code.opcodes)
      if (opcode && !upper(*opcode)) return false;
  return !row.opcode().empty() && lowering.count > 0 &&
         !(row.forms.value.empty() && row.later_forms.empty()) && listed(row.forms) &&
         listed(row.later_forms) && row.facts.consistent();
}

}  // namespace simt::instructions
