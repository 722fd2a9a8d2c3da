/// Loads, stores and reductions on surfaces.
#include "operations/surfaces.hpp"
#include "sass/handles.hpp"
#include "sass/instructions.hpp"
#include "sass/ordering.hpp"
#include "sass/rows.hpp"

namespace simt::sass {

using functional::Outside;
using functional::SurfaceDetail;
using Geometry = functional::TextureDescriptor::Geometry;
using ptx::Type;

namespace {

void take_surface_type(Translation& t, SurfaceDetail& d, bool reduces) {
  static constexpr Type of_reduction[] = {Type::U32, Type::S32, Type::U64, Type::S64, Type::U64, Type::B32};
  if (reduces) {
    d.type = of_reduction[t.take_one_of({"U32", "S32", "U64", "S64", "64", "SD32"}, 0)];
    return;
  }
  if (d.formatted) {
    d.elements = t.take("R") ? 1 : functional::most_elements;
    return;
  }
  const int small = t.take_one_of({"U8", "S8", "U16", "S16"});
  if (small >= 0)
    d.type = small < 2 ? Type::U8 : Type::U16;
  else
    d.elements = 1u << t.take_one_of({"32", "64", "128"}, 0);
}

}  // namespace

/// SULD d, address, handle; SUST, SURED address, a, handle. Coordinates: x (in bytes with .BA), y, z or the
/// layer.
void translate_surface(Translation& t) {
  const bool loads = t.what().operation == Operation::Load,
             reduces = t.what().operation == Operation::Reduction;
  SurfaceDetail d;
  const bool by_bytes = t.take("BA");
  t.take("D");
  t.take("P");
  d.formatted = !by_bytes;
  if (loads && d.formatted) t.unsupported("a formatted load");
  const int geometry = t.take_one_of({"1D", "2D", "3D", "1D_ARRAY", "2D_ARRAY"});
  if (geometry < 0) t.unsupported("this geometry");
  d.geometry = static_cast<Geometry>(geometry);
  const int operation = reduces ? t.take_one_of({"ADD", "MIN", "MAX", "AND", "OR"}) : 0;
  take_ordering(t);
  d.outside = t.take("TRAP") ? Outside::Trap : t.take("IGN") ? Outside::Zero : Outside::Clamp;
  take_surface_type(t, d, reduces);

  const uint32_t count = functional::coordinate_count(d.geometry);
  const bool layered = functional::is_layered(d.geometry);
  const Operand& at = t.operand(loads ? 1 : 0);
  if (at.kind != OperandKind::Memory || at.base == Operand::none) t.unsupported("this address");
  const Place coordinates = t.general(at.base, count + layered, false);
  for (uint32_t k = 0; k < count; ++k) d.coordinates[k] = coordinates + k * place::register_bytes;
  if (layered) d.layer = coordinates + count * place::register_bytes;
  const uint32_t words = reduces && ptx::bytes(d.type) == 8 ? 2 : d.elements;
  d.pairs = words == 2 && reduces;
  const Place first = loads ? t.destination(0, words) : t.source(1, words);
  for (uint32_t e = 0; e < d.elements; ++e) d.places[e] = first + e * place::register_bytes;
  d.surface = take_handle(t, 2);
  const Handler run = loads     ? functional::surface_load_handler()
                      : reduces ? functional::surface_reduction_handler(operation, d.type, d.formatted)
                                : functional::surface_store_handler();
  if (!run) t.unsupported("this operation on this type");
  t.emit(run, reduces ? Control::Deferred : Control::None);
  const uint32_t bytes = ptx::bytes(d.type) * d.elements;
  t.detail<SurfaceDetail>() = d;
  t.accesses(bytes);
}

}  // namespace simt::sass
