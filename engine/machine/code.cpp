#include "machine/code.hpp"

#include <algorithm>
#include <cstdio>

namespace simt::functional {
const FunctionCode* Program::find(const std::string& name) const {
  for (const FunctionCode& f : functions)
    if (f.entry && f.name == name) return &f;
  return nullptr;
}

const ptx::Instruction& Program::instruction(uint32_t op) const {
  static const ptx::Instruction nowhere;
  const ptx::Function& f = module.functions[functions[origins[op].function].ptx];
  if (f.instructions.empty()) return nowhere;
  // Ops appended after a function's last instruction belong to it.
  return f.instructions[std::min<size_t>(origins[op].instruction, f.instructions.size() - 1)];
}

InstructionPlace Program::where(uint32_t op) const {
  if (is_machine_code()) {
    const MachineListing::Line& line = listing.lines[origins[op].instruction];
    char address[16];
    std::snprintf(address, sizeof address, "0x%04x", line.address);
    return {listing.name + ": " + functions[line.function].name + "+" + address, 0, listing.files[line.file],
            line.source_line};
  }
  const ptx::Instruction& at = instruction(op);
  const ptx::Location &own = module.own_location(at.location), &inner = module.locations[at.location];
  InstructionPlace place{module.name + ":" + std::to_string(at.line), at.line, module.file(own.file),
                         own.line};
  if (&own != &inner) {
    place.inner_file = module.file(inner.file);
    place.inner_line = inner.line;
  }
  return place;
}

std::string_view Program::called_function(uint32_t op) const {
  const uint32_t line = origins[op].instruction;
  const auto after = listing.called.upper_bound(line);
  if (after == listing.called.begin()) return {};
  const auto& [first, name] = *std::prev(after);
  return listing.lines[first].function == listing.lines[line].function ? name : std::string_view();
}

std::string Program::text(uint32_t op) const {
  if (is_machine_code()) return listing.lines[origins[op].instruction].text;
  return ptx::line_text(module, instruction(op).line);
}

}  // namespace simt::functional
