/// Bulk copies through tensor maps (TMA), and changes to tensor maps: cp.async.bulk.tensor,
/// cp.reduce.async.bulk.tensor, tensormap.replace, tensormap.cp_fenceproxy.
#include "operations/tensor_copies.hpp"
#include "operations/tensor_map.hpp"
#include "ptx/translation/bulk.hpp"
#include "ptx/translation/instructions.hpp"
#include "ptx/translation/operands.hpp"

namespace simt::functional {
namespace {

using ptx::OperandKind;
using ptx::Type;

/// [map, {coordinates}]
void take_tensor(Translation& t, TensorCopy& d, uint32_t operand) {
  const ptx::Operand& o = t.operand(operand);
  if (o.kind != OperandKind::Address || o.part_count != 2) t.unsupported("[map, {coordinates}] is expected");
  d.map = memory_address(t, operand);
  const ptx::Operand& list = t.part(o, 1);
  const uint32_t count = d.four_rows ? 5 : d.rank;
  if (list.kind == OperandKind::Vector ? list.part_count != count : count != 1)
    t.unsupported("the number of coordinates differs from the number of dimensions");
  for (uint32_t k = 0; k < count; ++k)
    d.coordinates[k] = t.source(list.kind == OperandKind::Vector ? t.part(list, k) : list, Type::B32);
}

enum class Field : uint8_t {
  GlobalAddress,
  Rank,
  BoxDim,
  GlobalDim,
  GlobalStride,
  ElementStride,
  ElementType,
  Interleave,
  Swizzle,
  Atomicity,
  Fill
};

struct ReplaceDetail : Detail {
  Address map;
  AccessSpace space = AccessSpace::Generic;
  Field field = Field::Rank;
  uint32_t ordinal = 0;
  Place value = place::none;
  bool wide = false;
};

void replace(TensorMap& m, Field field, uint32_t k, uint64_t value) {
  switch (field) {
    case Field::GlobalAddress:
      m.address = value;
      break;
    case Field::Rank:
      m.rank_minus_one = static_cast<uint8_t>(value);
      break;
    case Field::BoxDim:
      m.box[k] = static_cast<uint16_t>(value);
      break;
    case Field::GlobalDim:
      m.dims[k] = static_cast<uint32_t>(value);
      break;
    case Field::GlobalStride:
      m.strides[k] = value;
      break;
    case Field::ElementStride:
      m.element_strides[k] = static_cast<uint8_t>(value);
      break;
    case Field::ElementType:
      m.element = static_cast<TensorMap::Element>(value);
      break;
    case Field::Interleave:
      m.interleave = static_cast<uint8_t>(value);
      break;
    case Field::Swizzle:
      m.swizzle = static_cast<TensorMap::Swizzle>(value);
      break;
    case Field::Atomicity:
      m.atomicity = static_cast<TensorMap::Atomicity>(value);
      break;
    case Field::Fill:
      m.fill = static_cast<TensorMap::Fill>(value);
      break;
  }
}

void run_replace(Context& c, const Op& op) {
  const auto& d = op.details<ReplaceDetail>();
  uint64_t maps[warp_lanes];
  lane_addresses(c, d.map, maps);
  record_access(c, d.space, maps);
  each_lane(c, [&](int i) {
    std::byte* at = host_address(c, d.space, maps[i], TensorMap::memory_bytes, i);
    TensorMap m = TensorMap::unpacked(at);
    replace(m, d.field, d.ordinal,
            d.wide ? c.lanes<const uint64_t>(d.value)[i] : c.lanes<const uint32_t>(d.value)[i]);
    std::ranges::copy(m.packed(), at);
  });
}

struct CopyMapDetail : Detail {
  Address to, from;
};
void run_copy_map(Context& c, const Op& op) {
  const auto& d = op.details<CopyMapDetail>();
  uint64_t to[warp_lanes], from[warp_lanes];
  lane_addresses(c, d.to, to);
  lane_addresses(c, d.from, from);
  record_access(c, AccessSpace::Global, to);
  each_lane(c, [&](int i) {
    std::memcpy(c.global(to[i], TensorMap::memory_bytes, i), c.shared(from[i], TensorMap::memory_bytes, i),
                TensorMap::memory_bytes);
  });
}

}  // namespace

void translate_bulk_tensor(Translation& t, bool reduces, bool prefetches) {
  TensorCopy d;
  const int rank = t.take_one_of({"1d", "2d", "3d", "4d", "5d"});
  if (rank < 0) t.unsupported("a dimension from .1d to .5d is missing");
  d.rank = static_cast<uint32_t>(rank) + 1;
  const bool has_policy = take_cache_hint(t);
  t.take("tile");
  const bool gathers = t.take("tile::gather4"), scatters = t.take("tile::scatter4");
  d.four_rows = gathers || scatters;
  if (d.four_rows && d.rank != 2) t.unsupported("four rows are those of two dimensions");
  d.pair = t.take_one_of({"cta_group::1", "cta_group::2"}) == 1;
  using Pixels = TensorMap::Pixels;
  static constexpr Pixels modes[] = {Pixels::All, Pixels::All, Pixels::Row, Pixels::Row128};
  const int mode = t.take_one_of({"im2col", "im2col_no_offs", "im2col::w", "im2col::w::128"});
  if (mode >= 0) d.pixels = modes[mode];
  const bool along_w = mode >= 2;
  if (mode >= 0 && d.rank < 3) t.unsupported("im2col mode needs at least 3 dimensions");
  uint32_t next = 0;
  if (prefetches) {
    d.move = TensorCopy::Move::Prefetch;
    if (!t.take("L2") || !t.take("global")) t.unsupported("a bulk prefetch needs .L2.global");
    take_tensor(t, d, next++);
  } else {
    const bool loads = take_direction(t).to == AccessSpace::Shared;
    if ((take_completion(t) == Completion::Mbarrier) != loads || (loads && reduces))
      t.unsupported("loads complete on an mbarrier, stores and reductions in a bulk group");
    if (loads ? scatters : gathers || (d.four_rows && reduces))
      t.unsupported("loads gather four rows, stores scatter them");
    if (loads) {
      d.shared = memory_address(t, next++);
      take_tensor(t, d, next++);
      d.mbarrier = memory_address(t, next++);
    } else {
      d.move = reduces ? TensorCopy::Move::Reduce : TensorCopy::Move::Store;
      if (reduces) {
        for (const std::string_view operation : {"add", "min", "max", "inc", "dec", "and", "or", "xor"})
          if (d.operation.empty() && t.take(operation)) d.operation = operation;
        if (d.operation.empty()) t.unsupported("an operation is missing");
        t.order_matters();
      }
      take_tensor(t, d, next++);
      d.shared = memory_address(t, next++);
    }
  }
  const bool has_offsets = d.move == TensorCopy::Move::Load || prefetches;
  if (along_w && !has_offsets) t.unsupported("only loads have im2col::w");
  if (mode >= 0 && has_offsets) {
    const ptx::Operand& offsets = t.operand(next++);
    const uint32_t count = along_w ? 2 : d.rank - 2;
    if (offsets.kind != OperandKind::Vector && count != 1) t.unsupported("im2col offsets are missing");
    for (uint32_t k = 0; k < count; ++k)
      d.offsets[k] = t.source(offsets.kind == OperandKind::Vector ? t.part(offsets, k) : offsets, Type::B16);
  }
  d.multicast = d.move == TensorCopy::Move::Load && t.take("multicast::cluster");
  if (d.multicast) d.cta_mask = t.source(next++, Type::B16);
  t.emit(tensor_copy_handler());
  t.detail<TensorCopy>() = d;
  if (has_policy) set_cache_policy(t);
}

void translate_tensormap_copy(Translation& t) {
  t.take_all();
  CopyMapDetail d;
  d.to = memory_address(t, 0);
  d.from = memory_address(t, 1);
  if (t.immediate(t.operand(2)) != TensorMap::memory_bytes) t.unsupported("a tensor map has 128 bytes");
  t.emit(run_copy_map).orders_memory = true;
  t.detail<CopyMapDetail>() = d;
}

void translate_tensormap_replace(Translation& t) {
  t.take("replace");
  if (!t.take("tile")) t.unsupported("only .replace.tile is supported");
  const int field =
      t.take_one_of({"global_address", "rank", "box_dim", "global_dim", "global_stride", "element_stride",
                     "elemtype", "interleave_layout", "swizzle_mode", "swizzle_atomicity", "fill_mode"});
  if (field < 0) t.unsupported("this field of tensor maps");
  ReplaceDetail d;
  d.field = static_cast<Field>(field);
  d.space = take_space(t);
  t.take("b1024");
  const Type type = t.take_type();
  d.wide = type == Type::B64;
  d.map = memory_address(t, 0);
  uint32_t next = 1;
  if (d.field >= Field::BoxDim && d.field <= Field::ElementStride) {
    const int64_t ordinal = t.immediate(t.operand(next++));
    if (ordinal < 0 || ordinal >= (d.field == Field::GlobalStride ? 4 : 5))
      t.unsupported("a dimension beyond the fifth");
    d.ordinal = static_cast<uint32_t>(ordinal);
  }
  d.value = t.source(next, type);
  t.emit(run_replace);
  t.detail<ReplaceDetail>() = d;
}

}  // namespace simt::functional
