/// Fetches from textures, and queries of their size.
#include <bit>

#include "operations/fetch.hpp"
#include "operations/texture_query.hpp"
#include "sass/handles.hpp"
#include "sass/instructions.hpp"
#include "sass/rows.hpp"

namespace simt::sass {

using functional::FetchDetail;
using functional::TextureDescriptor;
using functional::TextureReference;
using Geometry = TextureDescriptor::Geometry;

namespace {

TextureReference handle_at(Place place) {
  TextureReference r;
  r.given = true;
  r.lower_half = true;
  r.address.base = Address::Base::Narrow;
  r.address.place = place;
  return r;
}

}  // namespace

TextureReference take_handle(Translation& t, uint32_t index) {
  if (t.is(index, OperandKind::Uniform) || t.is(index, OperandKind::Register)) {
    if (t.is(index + 1, OperandKind::Integer) && t.integer(index + 1) != 0)
      t.unsupported("an offset from its handle");
    return handle_at(t.source(index));
  }
  return handle_at(t.constant_words(static_cast<uint32_t>(t.integer(index)),
                                    4 * static_cast<uint32_t>(t.integer(index + 1)), 1));
}

namespace {

/// In code with samplers of their own: from sm_90 on, their handle follows that of the texture. Before, one
/// word has 20 bits of a texture's and 12 of a sampler's, which are bound together where both are named.
TextureReference take_sampler(Translation& t, uint32_t index) {
  constexpr uint32_t first_apart = 90;
  if (t.is(index, OperandKind::Integer)) return take_handle(t, index);
  if (!t.is(index, OperandKind::Uniform) || t.sm() < first_apart)
    t.unsupported("a sampler of its own that is not named with the texture");
  return handle_at(t.source(index, 2) + place::register_bytes);
}

constexpr uint32_t components = 4;

Geometry geometry_of(const Translation& t, uint32_t index) {
  static constexpr std::pair<std::string_view, Geometry> known[] = {
      {"1D", Geometry::D1},           {"2D", Geometry::D2},        {"3D", Geometry::D3},
      {"ARRAY_1D", Geometry::A1d},    {"ARRAY_2D", Geometry::A2d}, {"CUBE", Geometry::Cube},
      {"ARRAY_CUBE", Geometry::Acube}};
  const std::string_view name = t.operand(index).text;
  for (const auto& [text, geometry] : known)
    if (text == name) return geometry;
  t.unsupported("this geometry");
}

/// Places of the components that the mask selects: in registers one after another, the first two in operand
/// `first` + 1, the others in `first`. Other components go to a row that nothing reads.
std::array<Place, components> destinations(Translation& t, uint32_t first, uint32_t mask) {
  std::array<Place, components> result;
  const auto count = static_cast<uint32_t>(std::popcount(mask));
  const Place unused = t.scratch(1);
  const Place lower = t.destination(first + 1, std::min(count, 2u));
  if (count <= 2 && !t.operand(first).is_zero()) t.unsupported("a destination of no component");
  const Place upper = count > 2 ? t.destination(first, count - 2) : unused;
  uint32_t next = 0;
  for (uint32_t e = 0; e < components; ++e) {
    result[e] = unused;
    if (!(mask >> e & 1)) continue;
    result[e] = (next < 2 ? lower : upper) + next % 2 * place::register_bytes;
    ++next;
  }
  return result;
}

/// Signed offsets, which are packed in a word.
struct UnpackDetail : Detail {
  uint32_t bits = 4, stride = 4;  ///< of each
  uint32_t count = 2;
};
void run_unpack(Context& c, const Op& op) {
  const auto& d = op.details<UnpackDetail>();
  const uint32_t* packed = row(c, op.a);
  for (uint32_t k = 0; k < d.count; ++k)
    map_words(c, op.destination + k * place::register_bytes, [&](uint32_t i) {
      const uint32_t upper = packed[i] >> k * d.stride << (32 - d.bits);
      return static_cast<uint32_t>(static_cast<int32_t>(upper) >> (32 - d.bits));
    });
}

void run_resident(Context& c, const Op& op) {
  write_predicate(c, op.destination, 0);
}

enum class Fetch { Sample, Texel, Gather, Gradients };

/// TEX, TLD, TLD4, TXD [p,] d, d, a [, b], handle, geometry [, mask]. a: coordinates, of arrays the layer
/// first (after them in TXD); b: level or derivatives, then offsets. p: whether texels were not resident.
/// With .B the handle is not an operand but the first word of b, in TXD of a.
void fetch(Translation& t, Fetch kind) {
  FetchDetail d;
  using Level = FetchDetail::Level;
  t.take("SCR");
  t.take("CL");
  const bool gathers = kind == Fetch::Gather, gradients = kind == Fetch::Gradients;
  // The component comes before another B.
  if (gathers) d.component = t.take_next_of({"R", "G", "B", "A"}, 0);
  const uint32_t in_register = t.take("B") ? 1 : 0;
  const int level = t.take_one_of({"LL", "LZ"});
  if (level == 0) d.level_from = Level::Given;
  if (gradients) d.level_from = Level::Gradients;
  // From sm_120 on, ptxas makes TEX of PTX's `tex` without a level, which is that of level 0.
  constexpr uint32_t first_of_base_level = 120;
  if (!gathers && !gradients && level < 0 && t.sm() < first_of_base_level)
    t.unsupported("derivatives of neighbouring threads");
  const bool has_offsets = t.take("AOFFI");
  d.integer_coordinates = kind == Fetch::Texel;

  const uint32_t first = t.is_predicate(0) ? 1 : 0;
  // Places of the handle and the geometry, counted from the end, where the mask may be.
  uint32_t last = t.operand_count() - 1;
  uint32_t mask = 15;
  if (t.is(last, OperandKind::Integer)) mask = static_cast<uint32_t>(t.integer(last--));
  d.geometry = geometry_of(t, last);
  d.also_flatter = true;
  const bool has_sampler = t.independent_samplers() && !d.integer_coordinates;
  constexpr uint32_t first_blackwell = 100;  // whose handles are one operand
  if (!in_register) d.texture = take_handle(t, last - (t.sm() < first_blackwell ? 2 : 1));
  if (has_sampler && t.sm() >= first_blackwell) t.unsupported("a sampler of its own");
  if (has_sampler && in_register) t.unsupported("a sampler of its own with a texture by its handle");
  if (has_sampler) d.sampler = take_sampler(t, last - 2);
  const uint32_t count = functional::coordinate_count(d.geometry);
  const uint32_t layers = functional::is_layered(d.geometry) ? 1 : 0;
  const uint32_t before_a = gradients ? in_register : 0, before_b = gradients ? 0 : in_register;
  const auto word = [](Place from, uint32_t k) { return from + k * place::register_bytes; };
  const Place all_a = t.source(first + 2, before_a + count + layers), a = word(all_a, before_a);
  if (layers) d.layer = gradients ? word(a, count) : a;
  for (uint32_t k = 0; k < count; ++k) d.coordinates[k] = word(a, k + (gradients ? 0 : layers));

  const uint32_t parameters = gradients ? 2 * count : d.level_from == Level::Given ? 1 : 0;
  if (before_a) d.texture = handle_at(all_a);
  if (before_b + parameters + has_offsets) {
    const Place all_b = t.source(first + 3, before_b + parameters + has_offsets), b = word(all_b, before_b);
    if (before_b) d.texture = handle_at(all_b);
    if (d.level_from == Level::Given) d.level = b;
    if (gradients)
      for (uint32_t k = 0; k < parameters; ++k) d.gradients[k % 2][k / 2] = word(b, k);
    if (has_offsets) {
      const Place offsets = t.scratch(count);
      Op& unpack = t.emit(run_unpack);
      unpack.a = word(b, parameters);
      unpack.destination = offsets;
      auto& u = t.detail<UnpackDetail>();
      u.bits = gathers ? 6 : 4;
      u.stride = gathers ? 8 : 4;
      u.count = count;
      for (uint32_t k = 0; k < count; ++k) d.offsets[k] = word(offsets, k);
    }
  }
  d.destinations = destinations(t, first, mask);
  t.emit(functional::fetch_handler());
  t.detail<FetchDetail>() = d;
  t.accesses(4);
  if (first && t.operand(0).index != Operand::true_predicate) {
    const Place p = t.predicate_destination(0);
    t.emit(run_resident).destination = p;
  }
}

}  // namespace

void translate_sample(Translation& t) {
  fetch(t, Fetch::Sample);
}
void translate_texel(Translation& t) {
  fetch(t, Fetch::Texel);
}
void translate_gather(Translation& t) {
  fetch(t, Fetch::Gather);
}
void translate_sample_gradients(Translation& t) {
  fetch(t, Fetch::Gradients);
}

namespace {

struct TextureQueryDetail : Detail {
  TextureReference texture;
  Place level = place::none;
  std::array<Place, components> destinations{};
};

void run_texture_query(Context& c, const Op& op) {
  const auto& d = op.details<TextureQueryDetail>();
  using enum TextureDescriptor::Kind;
  alignas(64) uint64_t addresses[warp_lanes];
  functional::reference_addresses(c, d.texture, addresses);
  alignas(64) uint32_t result[components][warp_lanes];
  each_lane(c, [&](int i) {
    // ptxas makes TXQ of suq, too.
    const TextureDescriptor* found = functional::descriptor_at(c, addresses[i]);
    const auto kind = found && found->kind == Surface ? Surface : Texture;
    const auto size =
        functional::dimensions_of(functional::find_descriptor(c, addresses[i], kind, i), row(c, d.level)[i]);
    for (uint32_t e = 0; e < components; ++e) result[e][i] = size[e];
  });
  for (uint32_t e = 0; e < components; ++e) write_lanes(c, c.lanes<uint32_t>(d.destinations[e]), result[e]);
}

}  // namespace

/// TXQ d, d, level, TEX_HEADER_DIMENSION, handle, mask: width, height, depth or layers, levels. TXQ.B has the
/// handle in the register before the level's.
void translate_texture_query(Translation& t) {
  if (t.operand(3).text != "TEX_HEADER_DIMENSION") t.unsupported("this property");
  TextureQueryDetail d;
  const bool in_register = t.take("B");
  if (in_register) {
    const Place both = t.source(2, 2);
    d.texture = handle_at(both);
    d.level = both + place::register_bytes;
  } else {
    d.level = t.source(2);
    d.texture = take_handle(t, 4);
  }
  const uint32_t last = t.operand_count() - 1, mask = in_register ? 4 : 6;
  d.destinations = destinations(t, 0, last >= mask ? static_cast<uint32_t>(t.integer(last)) : 15);
  t.emit(run_texture_query);
  t.detail<TextureQueryDetail>() = d;
}

}  // namespace simt::sass
