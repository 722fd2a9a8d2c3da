#pragma once
#include "operations/texture_operands.hpp"
#include "ptx/translation/translator.hpp"

/// Operands and modifiers of instructions on textures and surfaces.
namespace simt::functional {

inline TextureReference take_reference(Translation& t, const ptx::Operand& operand) {
  TextureReference r;
  r.given = true;
  r.address = t.address(operand);
  if (r.address.base == Address::Base::Stack && !r.address.entry_parameter)
    t.unsupported("a reference that is a parameter of a function");
  return r;
}

inline TextureDescriptor::Geometry take_geometry(Translation& t) {
  if (t.take("2dms") || t.take("a2dms")) t.unsupported("multi-sample textures, which exist only in graphics");
  const int index = t.take_one_of({"1d", "2d", "3d", "a1d", "a2d", "cube", "acube"});
  if (index < 0) t.unsupported("its geometry is missing");
  return static_cast<TextureDescriptor::Geometry>(index);
}

inline const ptx::Operand& part_of(const Translation& t, const ptx::Operand& vector, uint32_t index) {
  return vector.kind == ptx::OperandKind::Vector ? t.part(vector, index) : vector;
}

}  // namespace simt::functional
