/// Fetches from textures: tex, tld4.
#include <optional>

#include "functional/fetch.hpp"
#include "functional/instructions.hpp"

namespace simt::functional {
namespace {

using ptx::OperandKind;
using ptx::Type;
using Geometry = TextureDescriptor::Geometry;
using Kind = TextureDescriptor::Kind;

TextureCoordinates coordinates_of(const Context& c, const FetchDetail& d, int lane) {
  TextureCoordinates at;
  at.integer = d.integer_coordinates;
  const auto lane_of = [&](Place p) { return c.lanes<const uint32_t>(p)[lane]; };
  for (uint32_t k = 0; k < 3; ++k) {
    if (d.coordinates[k] != place::none) {
      at.at[k] = std::bit_cast<float>(lane_of(d.coordinates[k]));
      at.texel[k] = static_cast<int32_t>(lane_of(d.coordinates[k]));
    }
    if (d.offsets[k] != place::none) at.offset[k] = static_cast<int32_t>(lane_of(d.offsets[k]));
  }
  if (d.layer != place::none) at.layer = lane_of(d.layer);
  if (d.level_from == FetchDetail::Level::Given) {
    at.level = d.integer_coordinates ? static_cast<float>(static_cast<int32_t>(lane_of(d.level)))
                                     : std::bit_cast<float>(lane_of(d.level));
    at.has_level = true;
  }
  return at;
}

void run_fetch(Context& c, const Op& op) {
  const auto& d = op.details<FetchDetail>();
  Descriptors textures(c, d.texture, Kind::Texture);
  std::optional<Descriptors> samplers;
  if (d.sampler.given) samplers.emplace(c, d.sampler, Kind::Sampler);
  alignas(64) uint64_t touched[warp_lanes] = {};
  alignas(64) uint32_t result[most_elements][warp_lanes];
  each_lane(c, [&](int i) {
    const TextureDescriptor& texture = textures.of(i);
    const Sampler& sampler = samplers ? samplers->of(i).sampler : texture.sampler;
    const bool flatter =
        d.also_flatter && ((d.geometry == Geometry::D2 && texture.geometry == Geometry::D1) ||
                           (d.geometry == Geometry::A2d && texture.geometry == Geometry::A1d));
    if (texture.geometry != d.geometry && !flatter)
      throw Fault("invalid texture",
                  std::string("the texture is .") + name(texture.geometry) +
                      ", the instruction reads one of ." + name(d.geometry),
                  i);
    if (d.result != FetchDetail::Result::Words && texture.integer())
      throw Fault("invalid texture", "the texture holds integers, the instruction returns f16 numbers", i);
    TextureCoordinates at = coordinates_of(c, d, i);
    if (d.level_from == FetchDetail::Level::Gradients) {
      std::array<std::array<float, 3>, 2> g{};
      for (uint32_t k = 0; k < 2; ++k)
        for (uint32_t n = 0; n < texture.dimensions(); ++n)
          g[k][n] = std::bit_cast<float>(c.lanes<const uint32_t>(d.gradients[k][n])[i]);
      at.level = level_of_gradients(texture, sampler, g[0], g[1]);
      at.has_level = true;
    }
    const Texel texel = d.component >= 0
                            ? gather(c, texture, sampler, at, static_cast<uint32_t>(d.component), i)
                            : sample(c, texture, sampler, at, i);
    touched[i] = texel.address;
    for (uint32_t e = 0; e < most_elements; ++e) result[e][i] = texel.bits[e];
  });
  record_touched(c, touched);
  if (d.result == FetchDetail::Result::PackedHalves) {
    each_lane(c, [&](int i) {
      for (uint32_t e = 0; e < 2; ++e)
        c.lanes<uint32_t>(d.destinations[e])[i] =
            half_bits(result[2 * e][i]) | uint32_t{half_bits(result[2 * e + 1][i])} << 16;
    });
  } else {
    if (d.result == FetchDetail::Result::Halves)
      each_lane(c, [&](int i) {
        for (auto& e : result) e[i] = half_bits(e[i]);
      });
    for (uint32_t e = 0; e < most_elements; ++e)
      write_lanes(c, c.lanes<uint32_t>(d.destinations[e]), result[e]);
  }
  if (d.resident != place::none) write_predicate(c, d.resident, full_mask);
}

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
  t.emit(run_fetch);
  t.detail<FetchDetail>() = d;
}

}  // namespace

Handler fetch_handler() {
  return run_fetch;
}

void translate_tex(Translation& t) {
  translate_fetch(t, false);
}
void translate_tld4(Translation& t) {
  translate_fetch(t, true);
}

}  // namespace simt::functional
