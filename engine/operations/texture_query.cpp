#include "operations/texture_query.hpp"

#include "operations/texture_operands.hpp"

namespace simt::functional {
namespace {

using Channel = TextureDescriptor::Channel;
using Geometry = TextureDescriptor::Geometry;

/// In OpenCL's numbering, to which PTX refers.
uint32_t channel_type_code(const TextureDescriptor& d) {
  if (d.channel == Channel::Float) return d.channel_bytes == 2 ? 0x10dd : 0x10de;
  const bool is_signed = d.channel == Channel::Signed;
  if (d.normalized_float) return (is_signed ? 0x10d0 : 0x10d2) + (d.channel_bytes == 2);
  return (is_signed ? 0x10d7 : 0x10da) + (d.channel_bytes == 1 ? 0 : d.channel_bytes == 2 ? 1 : 2);
}
uint32_t channel_order_code(const TextureDescriptor& d) {
  static constexpr uint32_t codes[] = {0x10b0, 0x10b2, 0x10b4, 0x10b5};
  return codes[d.channels - 1];
}

}  // namespace

uint32_t answer(const TextureDescriptor& d, TextureQuery query, uint32_t level) {
  const bool has_level = level < d.level_count;
  const TextureLevel& l = d.levels[has_level ? level : 0];
  switch (query) {
    case TextureQuery::Width:
      return has_level ? l.width : 0;
    case TextureQuery::Height:
      return has_level && d.dimensions() > 1 ? l.height : 0;
    case TextureQuery::Depth:
      return has_level && d.geometry == Geometry::D3 ? l.layers : 0;
    case TextureQuery::ArraySize:
      return !is_layered(d.geometry) ? 0 : d.cube() ? l.layers / 6 : l.layers;
    case TextureQuery::ChannelType:
      return channel_type_code(d);
    case TextureQuery::ChannelOrder:
      return channel_order_code(d);
    case TextureQuery::Normalized:
      return d.normalized;
    case TextureQuery::Levels:
      return d.mipmapped ? d.level_count : 0;
    case TextureQuery::Samples:
      return 0;
    case TextureQuery::ForceUnnormalized:
      return d.sampler.force_unnormalized;
    case TextureQuery::Filter:
      return static_cast<uint32_t>(d.sampler.filter);
    case TextureQuery::Addressing0:
    case TextureQuery::Addressing1:
    case TextureQuery::Addressing2:
      return static_cast<uint32_t>(d.sampler.addressing[static_cast<uint32_t>(query) -
                                                        static_cast<uint32_t>(TextureQuery::Addressing0)]);
    case TextureQuery::MemoryLayout:
      return d.linear_memory;
  }
  return 0;
}

std::array<uint32_t, 4> dimensions_of(const TextureDescriptor& texture, uint32_t level) {
  const TextureQuery third = texture.geometry == Geometry::D3 ? TextureQuery::Depth : TextureQuery::ArraySize;
  return {answer(texture, TextureQuery::Width, level), answer(texture, TextureQuery::Height, level),
          answer(texture, third, level), answer(texture, TextureQuery::Levels, level)};
}

}  // namespace simt::functional
