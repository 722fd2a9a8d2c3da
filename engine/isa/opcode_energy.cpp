#include "isa/opcode_energy.hpp"

#include "isa/opcode.hpp"
#include "isa/tensor_shape.hpp"

namespace simt {
namespace {

std::string_view tensor_key(Elements elements, std::string_view opcode) {
  const auto has = [&](std::string_view modifier) { return has_modifiers(opcode, modifier); };
  switch (elements) {
    case Elements::Float64:
      return "fp64";
    case Elements::Binary:
      return "binary";
    case Elements::Integer8:
      return has("S4") || has("U4") ? "int4" : "int8";
    case Elements::Float8:
    case Elements::Float4:  // has no energy of its own
      return "fp8";
    default:
      break;
  }
  if (has("E4M3") || has("E5M2")) return "fp8";
  if (has("TF32")) return "tf32";
  if (has("BF16")) return "bf16";
  return has("F32") ? "fp16_fp32" : "fp16";
}

}  // namespace

OpcodeEnergy energy_of(std::string_view opcode) {
  const OpcodeRow& row = opcode_row(opcode);
  const Energy energy = row.also.energies.of(opcode, row.energy);
  if (energy == Energy::Tensor) {
    const double multiply_adds = tensor_multiply_adds(opcode);
    return {"tensor", tensor_key(row.also.elements, opcode), multiply_adds, multiply_adds > 0};
  }
  const bool known = !row.name.value.empty() || energy == Energy::Uniform;
  return {"instructions", energy_names[static_cast<size_t>(energy)], 0, known};
}

}  // namespace simt
