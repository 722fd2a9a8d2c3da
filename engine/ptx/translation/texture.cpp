/// Fetches from textures: tex, tld4.
#include "operations/fetch.hpp"
#include "ptx/translation/instructions.hpp"
#include "ptx/translation/texture_operands.hpp"

namespace simt::functional {
namespace {

using ptx::OperandKind;
using ptx::Type;
using Geometry = TextureDescriptor::Geometry;

void translate_fetch(Translation& t, bool gathers) {
  FetchDetail d;
  if (gathers) {
    d.component = t.take_one_of({"r", "g", "b", "a"});
    if (d.component < 0) t.unsupported("its component is missing");
  } else {
    using Level = FetchDetail::Level;
    d.level_from = t.take("level") ? Level::Given : t.take("grad") ? Level::Gradients : Level::Base;
    t.take("base");
  }
  d.geometry = take_geometry(t);
  const uint32_t count = coordinate_count(d.geometry);
  const bool cube = d.geometry >= Geometry::Cube;
  if (gathers && d.geometry != Geometry::D2 && d.geometry != Geometry::A2d && !cube)
    t.unsupported("tld4 of this geometry");
  const int vector = t.take_one_of({"v4", "v2"});
  const Type type = t.take_type(), coordinate_type = t.take_type();
  if (type == Type::F16x2)
    d.result = FetchDetail::Result::PackedHalves;
  else if (type == Type::F16)
    d.result = FetchDetail::Result::Halves;
  else if (type != Type::F32 && type != Type::U32 && type != Type::S32)
    t.unsupported("this type of result");
  if (vector != (type == Type::F16x2 ? 1 : 0)) t.unsupported("this number of results");
  d.integer_coordinates = coordinate_type == Type::S32;
  if (coordinate_type != Type::F32 && (coordinate_type != Type::S32 || cube || gathers))
    t.unsupported("this type of coordinates");

  const ptx::Operand* results = &t.operand(0);
  if (results->kind == OperandKind::Pair) {
    d.resident = t.predicate_destination(t.part(*results, 1));
    results = &t.part(*results, 0);
  }
  const uint32_t elements = type == Type::F16x2 ? 2 : 4;
  for (uint32_t e = 0; e < elements; ++e) d.destinations[e] = t.destination(t.part(*results, e), type);

  const ptx::Operand& address = t.operand(1);
  if (address.kind != OperandKind::Address || address.part_count < 2 || address.part_count > 3)
    t.unsupported("an operand of this form");
  d.texture = take_reference(t, address);
  if (address.part_count == 3) d.sampler = take_reference(t, t.part(address, 1));
  const ptx::Operand& at = t.part(address, address.part_count - 1);
  const uint32_t first = is_layered(d.geometry) ? 1 : 0;
  if (first) d.layer = t.source(part_of(t, at, 0), Type::U32);
  for (uint32_t k = 0; k < count; ++k)
    d.coordinates[k] = t.source(part_of(t, at, first + k), coordinate_type);

  uint32_t next = 2;
  if (d.level_from == FetchDetail::Level::Given)
    d.level = t.source(next++, d.integer_coordinates ? Type::S32 : Type::F32);
  if (d.level_from == FetchDetail::Level::Gradients) {
    if (cube) t.unsupported("derivatives of directions");
    for (auto& gradient : d.gradients) {
      const ptx::Operand& o = t.operand(next++);
      for (uint32_t k = 0; k < count; ++k) gradient[k] = t.source(part_of(t, o, k), Type::F32);
    }
  }
  if (next < t.operand_count() && t.operand(next).kind == OperandKind::Vector) {
    if (cube) t.unsupported("offsets of directions");
    const ptx::Operand& o = t.operand(next++);
    for (uint32_t k = 0; k < count; ++k) d.offsets[k] = t.source(part_of(t, o, k), Type::S32);
  }
  if (next < t.operand_count()) t.unsupported("depth comparison: PTX does not say which comparison it is");
  t.emit(fetch_handler());
  t.detail<FetchDetail>() = d;
}

}  // namespace

void translate_tex(Translation& t) {
  translate_fetch(t, false);
}
void translate_tld4(Translation& t) {
  translate_fetch(t, true);
}

}  // namespace simt::functional
