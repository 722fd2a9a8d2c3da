/// Queries of textures, surfaces and samplers: txq, suq, istypep.
#include "functional/instructions.hpp"
#include "functional/texture_operands.hpp"

namespace simt::functional {
namespace {

using ptx::Type;
using Channel = TextureDescriptor::Channel;
using Geometry = TextureDescriptor::Geometry;
using Kind = TextureDescriptor::Kind;

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

enum class Query : uint8_t {
  Width,
  Height,
  Depth,
  ArraySize,
  ChannelType,
  ChannelOrder,
  Normalized,
  Levels,
  Samples,
  ForceUnnormalized,
  Filter,
  Addressing0,
  Addressing1,
  Addressing2,
  MemoryLayout
};

struct QueryDetail : Detail {
  TextureReference reference;
  Kind kind = Kind::Texture;
  Query query = Query::Width;
  Place level = place::none;
  Place destination = place::none;
};

uint32_t answer(const TextureDescriptor& d, Query query, uint32_t level) {
  const bool has_level = level < d.level_count;
  const TextureLevel& l = d.levels[has_level ? level : 0];
  switch (query) {
    case Query::Width:
      return has_level ? l.width : 0;
    case Query::Height:
      return has_level && d.dimensions() > 1 ? l.height : 0;
    case Query::Depth:
      return has_level && d.geometry == Geometry::D3 ? l.layers : 0;
    case Query::ArraySize:
      return !is_layered(d.geometry) ? 0 : d.cube() ? l.layers / 6 : l.layers;
    case Query::ChannelType:
      return channel_type_code(d);
    case Query::ChannelOrder:
      return channel_order_code(d);
    case Query::Normalized:
      return d.normalized;
    case Query::Levels:
      return d.mipmapped ? d.level_count : 0;
    case Query::Samples:
      return 0;
    case Query::ForceUnnormalized:
      return d.sampler.force_unnormalized;
    case Query::Filter:
      return static_cast<uint32_t>(d.sampler.filter);
    case Query::Addressing0:
    case Query::Addressing1:
    case Query::Addressing2:
      return static_cast<uint32_t>(
          d.sampler.addressing[static_cast<uint32_t>(query) - static_cast<uint32_t>(Query::Addressing0)]);
    case Query::MemoryLayout:
      return d.linear_memory;
  }
  return 0;
}

void run_query(Context& c, const Op& op) {
  const auto& d = op.details<QueryDetail>();
  Descriptors descriptors(c, d.reference, d.kind);
  uint32_t* to = c.lanes<uint32_t>(d.destination);
  each_lane(c, [&](int i) {
    const uint32_t level = d.level == place::none ? 0 : c.lanes<const uint32_t>(d.level)[i];
    to[i] = answer(descriptors.of(i), d.query, level);
  });
}

void translate_query(Translation& t, bool surface) {
  QueryDetail d;
  d.kind = surface ? Kind::Surface : Kind::Texture;
  const bool has_level = !surface && t.take("level");
  const int query =
      t.take_one_of({"width", "height", "depth", "array_size", "channel_data_type", "channel_order",
                     "normalized_coords", "num_mipmap_levels", "num_samples", "force_unnormalized_coords",
                     "filter_mode", "addr_mode_0", "addr_mode_1", "addr_mode_2", "memory_layout"});
  if (query < 0) t.unsupported("this property");
  d.query = static_cast<Query>(query);
  if (d.query >= Query::ForceUnnormalized && d.query <= Query::Addressing2) d.kind = Kind::Sampler;
  if (surface ? d.query >= Query::Normalized && d.query != Query::MemoryLayout
              : d.query == Query::MemoryLayout)
    t.unsupported("this property");
  if (t.take_type() != Type::B32) t.unsupported("this type");
  d.destination = t.destination(0, Type::B32);
  d.reference = take_reference(t, t.operand(1));
  if (has_level) d.level = t.source(2, Type::U32);
  t.emit(run_query);
  t.detail<QueryDetail>() = d;
}

struct TypeQueryDetail : Detail {
  Kind kind = Kind::Texture;
  Place address = place::none;
  Place destination = place::none;
};

void run_type_query(Context& c, const Op& op) {
  const auto& d = op.details<TypeQueryDetail>();
  uint32_t holds = 0;
  const auto* addresses = c.lanes<const uint64_t>(d.address);
  record_access(c, AccessSpace::Global, addresses);
  each_lane(c, [&](int i) {
    const TextureDescriptor* descriptor = descriptor_at(c, addresses[i]);
    if (descriptor && descriptor->kind == d.kind) holds |= 1u << i;
  });
  write_predicate(c, d.destination, holds);
}

void translate_type_query(Translation& t) {
  TypeQueryDetail d;
  const int kind = t.take_one_of({"texref", "samplerref", "surfref"});
  if (kind < 0) t.unsupported("this type");
  d.kind = static_cast<Kind>(kind);
  d.destination = t.predicate_destination(t.operand(0));
  d.address = t.source(1, Type::U64);
  t.emit(run_type_query);
  t.detail<TypeQueryDetail>() = d;
}

}  // namespace

std::array<uint32_t, 4> dimensions_of(const TextureDescriptor& texture, uint32_t level) {
  const Query third = texture.geometry == Geometry::D3 ? Query::Depth : Query::ArraySize;
  return {answer(texture, Query::Width, level), answer(texture, Query::Height, level),
          answer(texture, third, level), answer(texture, Query::Levels, level)};
}

void translate_txq(Translation& t) {
  translate_query(t, false);
}
void translate_suq(Translation& t) {
  translate_query(t, true);
}
void translate_istypep(Translation& t) {
  translate_type_query(t);
}

}  // namespace simt::functional
