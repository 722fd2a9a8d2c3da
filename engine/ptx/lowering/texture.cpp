/// Textures and surfaces.
#include <string>

#include "ptx/lowering/rules.hpp"

namespace simt::functional {

void lower_texture_fetch(Lowerer& l) {
  const bool by_texel = l.mnemonic().modifiers.back() == "s32";
  l.memory(l.has("grad") ? "TXD" : by_texel ? "TLD.LZ" : "TEX.LL", 4);
}

/// The property is read from a word of the descriptor.
void lower_type_query(Lowerer& l) {
  l.memory("LD.E", 4);
  l.chain({"LOP3.LUT", "ISETP.NE.EX"});
}

namespace {

uint32_t surface_bytes(const Lowerer& l) {
  return std::max(1u, ptx::bytes(l.type())) * l.vector_length();
}

std::string surface_opcode(const Lowerer& l, std::string name) {
  name += l.has("p") ? ".P" : ".D.BA";
  for (const std::string geometry : {"1d", "2d", "3d", "a1d", "a2d"})
    if (l.has(geometry))
      name +=
          geometry[0] == 'a' ? "." + geometry.substr(1, 1) + "D_ARRAY" : "." + geometry.substr(0, 1) + "D";
  return name;
}

void access_surface(Lowerer& l, const char* opcode) {
  const uint32_t bytes = surface_bytes(l);
  l.memory(surface_opcode(l, opcode) + width_suffix(bytes) + ".STRONG.SM", bytes);
}

}  // namespace

void lower_surface_load(Lowerer& l) {
  access_surface(l, "SULD");
}
void lower_surface_store(Lowerer& l) {
  access_surface(l, "SUST");
}
void lower_surface_reduction(Lowerer& l) {
  const uint32_t bytes = surface_bytes(l);
  const char* what = l.has("min")   ? ".MIN"
                     : l.has("max") ? ".MAX"
                     : l.has("and") ? ".AND"
                     : l.has("or")  ? ".OR"
                                    : ".ADD";
  l.memory(surface_opcode(l, "SURED") + what + (bytes == 8 ? ".64" : "") + ".STRONG.SYS", bytes);
}

}  // namespace simt::functional
