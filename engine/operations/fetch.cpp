#include "operations/fetch.hpp"

#include <optional>

namespace simt::functional {
namespace {

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

}  // namespace

Handler fetch_handler() {
  return run_fetch;
}

}  // namespace simt::functional
