#pragma once
#include <map>
#include <string>
#include <vector>

#include "isa/opcode_table.hpp"
#include "isa/raw_instruction.hpp"

namespace simt {

/// Gives each raw instruction of one kernel its class, access width and register widths.
/// `unknown` receives the replacement for each opcode missing from the table.
std::vector<StaticInstruction> classify(const std::vector<RawInstruction>& raw,
                                        const std::vector<std::string>& opcodes, const OpcodeTable& table,
                                        std::map<std::string, std::string>& unknown);

}  // namespace simt
