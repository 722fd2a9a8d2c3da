/// Tensor memory.
#include <string>

#include "ptx/lowering/rules.hpp"

namespace simt::functional {

/// LDTM.x16 and the like; the number is that of the registers.
void lower_tensor_memory_move(Lowerer& l) {
  const ptx::Operand* registers = l.operand(l.has("ld") ? 0 : l.operand_count() - 1);
  const uint32_t count = registers && registers->kind == ptx::OperandKind::Vector ? registers->part_count : 1;
  l.one((l.has("ld") ? "LDTM.x" : "STTM.x") + std::to_string(count));
}

void lower_tensor_memory_product(Lowerer& l) {
  // Descriptors and addresses are in uniform registers in machine code, which are not tracked.
  for (uint32_t operand = 0; operand < l.operand_count(); ++operand) l.omit_read(operand);
  const char* opcode = l.has("kind::i8")                                ? "UTCIMMA"
                       : l.has("kind::f16") || l.has("kind::tf32")      ? "UTCHMMA"
                       : l.has("kind::mxf4") || l.has("kind::mxf4nvf4") ? "UTCOMMA"
                       : l.has("kind::mxf8f6f4")                        ? "UTCMXQMMA"
                                                                        : "UTCQMMA";
  l.memory(std::string(opcode) + (l.has("cta_group::2") ? ".2CTA" : ""), 0, AddressKind::Bulk);
}

void lower_tensor_memory_commit(Lowerer& l) {
  l.memory(std::string("UTCBAR") + (l.has("cta_group::2") ? ".2CTA" : "") +
               (l.has("multicast::cluster") ? ".MULTICAST" : ""),
           8, AddressKind::Bulk);
}

}  // namespace simt::functional
