/// Loads, stores and reductions on surfaces: suld, sust, sured.
#include "operations/surfaces.hpp"
#include "ptx/translation/instructions.hpp"
#include "ptx/translation/texture_operands.hpp"

namespace simt::functional {
namespace {

using ptx::OperandKind;
using ptx::Type;
using Geometry = TextureDescriptor::Geometry;

/// Shared by the three instructions; `address` and `value` are operand indices.
SurfaceDetail take_surface(Translation& t, uint32_t address, uint32_t value, bool loads) {
  SurfaceDetail d;
  d.geometry = take_geometry(t);
  if (d.geometry >= Geometry::Cube) t.unsupported("this geometry");
  t.take_one_of({"ca", "cg", "cs", "cv", "wb", "wt"});
  d.formatted = !loads && t.take("p");
  if (!d.formatted && !t.take("b")) t.unsupported("neither .b nor .p is given");
  const int vector = t.take_one_of({"v2", "v4"});
  d.elements = vector < 0 ? 1 : 2u << vector;
  d.type = t.take_type();
  const int outside = t.take_one_of({"trap", "clamp", "zero"});
  if (outside < 0) t.unsupported("a modifier for accesses outside the surface is missing");
  d.outside = static_cast<Outside>(outside);
  const uint32_t bytes = std::max(1u, ptx::bytes(d.type));
  if (bytes * d.elements > 16) t.unsupported("an access of more than 16 bytes");

  const ptx::Operand& operand = t.operand(address);
  if (operand.kind != OperandKind::Address || operand.part_count != 2)
    t.unsupported("an operand of this form");
  d.surface = take_reference(t, operand);
  const ptx::Operand& at = t.part(operand, 1);
  const uint32_t first = is_layered(d.geometry) ? 1 : 0;
  if (first) d.layer = t.source(part_of(t, at, 0), Type::U32);
  for (uint32_t k = 0; k < coordinate_count(d.geometry); ++k)
    d.coordinates[k] = t.source(part_of(t, at, first + k), Type::S32);

  const ptx::Operand& values = t.operand(value);
  for (uint32_t e = 0; e < d.elements; ++e) {
    const ptx::Operand& o = part_of(t, values, e);
    uint32_t size = 0;
    d.places[e] = loads ? t.destination_of_any_size(o, d.type, size) : t.source_of_any_size(o, d.type, size);
    if (size < bytes) t.unsupported("a register that is narrower than the access");
    if (e > 0 && d.wide != (size == 8)) t.unsupported("registers of several sizes");
    d.wide = size == 8;
  }
  return d;
}

void translate_surface_load(Translation& t) {
  const SurfaceDetail d = take_surface(t, 1, 0, true);
  t.emit(surface_load_handler());
  t.detail<SurfaceDetail>() = d;
}

void translate_surface_store(Translation& t) {
  const SurfaceDetail d = take_surface(t, 0, 1, false);
  if (d.formatted && (d.wide || ptx::bytes(d.type) != 4)) t.unsupported("this type");
  t.emit(surface_store_handler());
  t.detail<SurfaceDetail>() = d;
}

void translate_surface_reduction(Translation& t) {
  const int operation = t.take_one_of({"add", "min", "max", "and", "or"});
  const SurfaceDetail d = take_surface(t, 0, 1, false);
  if (is_layered(d.geometry) || d.elements != 1) t.unsupported("this geometry");
  const Handler handler = surface_reduction_handler(operation, d.type, d.formatted);
  const uint32_t bytes = ptx::bytes(d.type);
  if (!handler || (bytes != 4 && bytes != 8) || d.wide != (bytes == 8))
    t.unsupported("this operation on this type");
  t.emit(handler, Control::Deferred);
  t.detail<SurfaceDetail>() = d;
}

}  // namespace

void translate_suld(Translation& t) {
  translate_surface_load(t);
}
void translate_sust(Translation& t) {
  translate_surface_store(t);
}
void translate_sured(Translation& t) {
  translate_surface_reduction(t);
}

}  // namespace simt::functional
