#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "isa/opcode_table.hpp"
#include "isa/raw_instruction.hpp"

namespace simt {

/// Bytes that each lane of a memory instruction accesses, as its opcode says: 4 if no modifier does.
uint32_t lane_access_bytes(std::string_view opcode);

/// Gives each raw instruction of one kernel its class, access width and register widths.
/// `unknown` receives the replacement for each opcode missing from the table.
std::vector<StaticInstruction> classify(const std::vector<RawInstruction>& raw,
                                        const std::vector<std::string>& opcodes, const OpcodeTable& table,
                                        std::map<std::string, std::string>& unknown);

}  // namespace simt
