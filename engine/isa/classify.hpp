#pragma once
#include <map>
#include <string>
#include <vector>

#include "isa/opcode_table.hpp"
#include "isa/raw_instruction.hpp"

namespace simt {

/// Gives each raw instruction of one kernel its class, access width and register widths.
/// `unknown` receives, for each opcode that the table does not have, what it is simulated as.
std::vector<StaticInstruction> classify(const std::vector<RawInstruction>& raw,
                                        const std::vector<std::string>& opcodes, const OpcodeTable& table,
                                        std::map<std::string, std::string>& unknown);

}  // namespace simt
