/// Queries of textures, surfaces and samplers: txq, suq, istypep.
#include "operations/texture_query.hpp"

#include "operations/texture_operands.hpp"
#include "ptx/translation/instructions.hpp"
#include "ptx/translation/texture_operands.hpp"

namespace simt::functional {
namespace {

using ptx::Type;
using Kind = TextureDescriptor::Kind;

struct QueryDetail : Detail {
  TextureReference reference;
  Kind kind = Kind::Texture;
  TextureQuery query = TextureQuery::Width;
  Place level = place::none;
  Place destination = place::none;
};

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
  d.query = static_cast<TextureQuery>(query);
  if (d.query >= TextureQuery::ForceUnnormalized && d.query <= TextureQuery::Addressing2)
    d.kind = Kind::Sampler;
  if (surface ? d.query >= TextureQuery::Normalized && d.query != TextureQuery::MemoryLayout
              : d.query == TextureQuery::MemoryLayout)
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
