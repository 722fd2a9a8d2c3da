/// Tensor memory. Opcodes as ptxas 13 writes them for sm_100a.
#include <string>

#include "ptx/lowering/rules.hpp"

namespace simt::functional {

void lower_tensor_memory_move(Lowerer& l) {
  std::string opcode = l.has("red") ? "LDTM.STAT" : l.has("ld") ? "LDTM" : "STTM";
  if (l.has("16x64b")) opcode += ".16dp64bit";
  if (l.has("16x128b")) opcode += ".16dp128bit";
  if (l.has("16x256b")) opcode += ".16dp256bit";
  if (l.has("16x32bx2")) opcode += ".16dp32bit_t0_t15";
  for (const std::string_view m : l.mnemonic().modifiers)
    if (m.starts_with('x')) opcode += "." + std::string(m);
  l.one(opcode);
}

void lower_tensor_memory_copy(Lowerer& l) {
  l.memory(std::string("UTCCP.T.S") + (l.has("cta_group::2") ? ".2CTA" : ""), 16, AddressKind::Bulk);
}

void lower_tensor_memory_shift(Lowerer& l) {
  l.memory(std::string("UTCSHIFT") + (l.has("cta_group::2") ? ".2CTA" : "") + ".DOWN", 16, AddressKind::Bulk);
}

/// The opcode has the shape, which machine code does not name, if the program's text has it.
void lower_tensor_memory_product(Lowerer& l) {
  const bool nibbles = l.has("kind::mxf4") || l.has("kind::mxf4nvf4"), scaled = l.has("block_scale");
  std::string opcode = l.has("kind::i8")                           ? "UTCIMMA"
                       : l.has("kind::f16") || l.has("kind::tf32") ? "UTCHMMA"
                       : nibbles                                   ? "UTCOMMA"
                                                                   : "UTCQMMA";
  if (l.has("scale_vec::4X") || l.has("block16")) opcode += ".4X";
  if (l.has("cta_group::2")) opcode += ".2CTA";
  const std::optional<int64_t> descriptor = l.constant(l.has("sp") ? 4 : 3);
  // Descriptors and addresses are in uniform registers in machine code, which are not tracked.
  for (uint32_t operand = 0; operand < l.operand_count(); ++operand) l.omit_read(operand);
  if (descriptor) {
    const auto word = static_cast<uint32_t>(*descriptor);
    const uint32_t m = scaled ? (word >> 27 & 3) * 128 : (word >> 24 & 31) * 16, n = (word >> 17 & 63) * 8;
    const uint32_t k = l.has("kind::f16")    ? 16
                       : l.has("kind::tf32") ? 8
                       : !nibbles            ? 32
                       : word >> 31          ? 96
                                             : 64;
    opcode += "." + std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k);
    if (l.has("kind::tf32")) opcode += ".TF32";
  }
  l.one("UMOV");  // of a descriptor: ptxas moves what is constant, where a program computes others itself
  l.memory(opcode, 16, AddressKind::Bulk);
}

void lower_tensor_memory_commit(Lowerer& l) {
  l.memory(std::string("UTCBAR") + (l.has("cta_group::2") ? ".2CTA" : "") +
               (l.has("multicast::cluster") ? ".MULTICAST" : ""),
           8, AddressKind::Bulk);
}

}  // namespace simt::functional
