/// wgmma: products of matrices in shared memory by a warpgroup. Each of the four warps computes its 16 rows
/// of D when it executes the instruction. Hardware gives the same result, since PTX forbids changing the
/// operands before wgmma.wait_group.
#include "functional/access.hpp"
#include "functional/aligned_product.hpp"
#include "functional/grid.hpp"
#include "functional/group_product.hpp"
#include "functional/instructions.hpp"

namespace simt::functional {
namespace {

using ptx::OperandKind;
using ptx::Type;

constexpr uint32_t row_bytes = 16;
constexpr uint32_t max_columns = 256;
constexpr uint32_t max_planes = max_columns / 2;  ///< for 16 x 256 accumulators, 32 each

/// A matrix in shared memory, as defined by a descriptor: tiles of 8 rows of 16 bytes. By default, the rows
/// of a tile are rows of the matrix (columns for B), along k; in a transposed matrix, each has a single k and
/// extends along the rows of A or columns of B.
class SharedMatrix {
 public:
  SharedMatrix(Context& c, uint64_t descriptor, bool transposed)
      : memory_(c.cta->shared()),
        bytes_(c.cta->shared_bytes()),
        start_(field(descriptor, 0)),
        swizzle_(static_cast<uint32_t>(descriptor >> 62)),
        base_(static_cast<uint32_t>(descriptor >> 49) & 7) {
    const uint32_t leading = field(descriptor, 16), stride = field(descriptor, 32);
    // Swizzled patterns are 32, 64 or 128 bytes wide.
    width_ = swizzle_ == 0 ? 1 : 16u >> swizzle_;
    row_step_ = width_ * row_bytes;
    if (!transposed) {
      inner_step_ = swizzle_ == 0 ? leading : row_bytes;
      outer_step_ = stride;
      inner_count_ = UINT32_MAX;
    } else {
      inner_step_ = row_bytes;
      inner_count_ = width_;
      wide_step_ = swizzle_ == 0 ? stride : leading;
      outer_step_ = swizzle_ == 0 ? leading : stride;
    }
  }

  /// Copies a tile. `outer` counts tiles across a tile's rows, `inner` along them.
  void read(uint32_t outer, uint32_t inner, std::byte* tile) const {
    const uint32_t first =
        start_ + outer * outer_step_ + inner % inner_count_ * inner_step_ + inner / inner_count_ * wide_step_;
    for (uint32_t i = 0; i < tile_rows; ++i) {
      const uint32_t address = swizzled(first + i * row_step_);
      std::memcpy(tile + i * row_bytes, host(address), row_bytes);
    }
  }

 private:
  /// 14 bits, in units of 16 bytes.
  static uint32_t field(uint64_t descriptor, uint32_t bit) {
    return static_cast<uint32_t>(descriptor >> bit & 0x3fff) * 16;
  }
  /// Each swizzle pattern permutes the 16-byte columns, depending on the 128-byte line.
  uint32_t swizzled(uint32_t address) const {
    return address ^ (((address >> 7) - base_) & (width_ - 1)) << 4;
  }
  const std::byte* host(uint32_t address) const {
    if (address + row_bytes > bytes_) [[unlikely]]
      beyond(address);
    return memory_ + address;
  }
  [[noreturn]] void beyond(uint32_t address) const {
    Fault fault("illegal address", "a matrix descriptor leads to byte " + std::to_string(address) + " of " +
                                       std::to_string(bytes_) + " of shared memory");
    fault.address = window::shared + address;
    fault.has_address = true;
    throw fault;
  }

  const std::byte* memory_;
  uint32_t bytes_;
  uint32_t start_, swizzle_, base_, width_ = 1;
  uint32_t row_step_ = 0;  ///< bytes between rows of a tile
  uint32_t inner_step_ = 0, inner_count_ = 1, wide_step_ = 0, outer_step_ = 0;
};

struct GroupProductDetail : Detail {
  ProductTiles tiles;  ///< per warp
  Expand expand_a, expand_b;
  AdditionForm addition;
  bool a_transposed = false, b_transposed = false;
  bool negative = false;  ///< A B is subtracted
  bool in_pairs = false;  ///< descriptors are in two rows of registers each
  std::vector<Place> a;   ///< registers; empty if A is in shared memory
  std::vector<Place> d;
  PredicateOperand keep;  ///< whether to add to D
};

/// The descriptor, which must be the same in all lanes.
uint64_t descriptor(const Context& c, Place place, bool in_pairs) {
  if (!in_pairs) return c.lanes<const uint64_t>(place)[0];
  const uint32_t* words = c.lanes<const uint32_t>(place);
  return words[0] | uint64_t{words[warp_lanes]} << 32;
}

template <class To, class C>
void run_group_product(Context& c, const Op& op) {
  need_whole_warp(c);
  const auto& detail = op.details<GroupProductDetail>();
  constexpr bool pairs = std::is_same_v<C, uint16_t>;
  using Plane = typename To::Plane;
  const Plane* before[max_planes];
  Plane* after[max_planes];
  alignas(64) float split[pairs ? max_planes : 1][warp_lanes];
  for (size_t i = 0; i < detail.d.size(); ++i) {
    if constexpr (pairs) {
      split_pairs(c.lanes<const uint32_t>(detail.d[i]), split[2 * i], split[2 * i + 1]);
      before[2 * i] = after[2 * i] = split[2 * i];
      before[2 * i + 1] = after[2 * i + 1] = split[2 * i + 1];
    } else {
      before[i] = after[i] = c.lanes<Plane>(detail.d[i]);
    }
  }
  const ProductTiles tiles = detail.tiles;
  const bool keep = (c.predicate(detail.keep.place) & 1) != (detail.keep.negated ? 1u : 0u);
  const uint32_t first_row = c.warp->number() % Cta::warps_in_group * tiles.m;
  const SharedMatrix shared_a(c, detail.a.empty() ? descriptor(c, op.a, detail.in_pairs) : 0,
                              detail.a_transposed);
  const SharedMatrix shared_b(c, descriptor(c, op.b, detail.in_pairs), detail.b_transposed);
  alignas(64) std::byte bytes[tile_rows * row_bytes];
  const size_t size = size_t{tile_rows} * tiles.columns;
  const auto load_a = [&](uint32_t row, uint32_t k, auto* out) {
    if (!detail.a.empty()) {
      detail.expand_a(c.lanes<const void>(detail.a[band_tile(tiles.m, tiles.k, row, k)]), out);
    } else if (detail.a_transposed) {
      alignas(64) std::remove_pointer_t<decltype(out)> tile[tile_rows * max_tile_columns];
      shared_a.read(k, first_row + row, bytes);
      detail.expand_a(bytes, tile);
      for (uint32_t i = 0; i < tile_rows; ++i)
        for (uint32_t j = 0; j < tile_rows; ++j) out[j * tile_rows + i] = tile[i * tile_rows + j];
    } else {
      shared_a.read(first_row + row, k, bytes);
      detail.expand_a(bytes, out);
    }
    if (detail.negative)
      for (size_t i = 0; i < size; ++i) out[i] = -out[i];
  };
  const auto load_b = [&](uint32_t column, uint32_t k, auto* out) {
    alignas(64) std::remove_pointer_t<decltype(out)> tile[tile_rows * max_tile_columns];
    if (detail.b_transposed) {
      shared_b.read(k, column, bytes);
      detail.expand_b(bytes, tile);
      for (uint32_t i = 0; i < tile_rows; ++i)
        for (uint32_t j = 0; j < tile_rows; ++j)
          out[i * tile_rows + column_place(j)] = tile[i * tile_rows + j];
    } else {
      shared_b.read(column, k, bytes);
      detail.expand_b(bytes, tile);
      transpose_tile(tile, tiles.columns, out);
    }
  };
  const Addition* addition = detail.addition.on(c.grid->machine().tensor_core);
  if constexpr (std::is_same_v<Plane, float>) {
    if (addition) {
      if (!keep)
        for (size_t i = 0; i < size_t{tiles.n} * 4; ++i) std::fill_n(after[i], warp_lanes, 0.0f);
      multiply_aligned(tiles, *addition, detail.addition, load_a, load_b, after);
    }
  }
  if (!addition) multiply<To>(tiles, load_a, load_b, keep ? before : nullptr, after);
  if constexpr (pairs)
    for (size_t i = 0; i < detail.d.size(); ++i)
      join_pairs(split[2 * i], split[2 * i + 1], c.lanes<uint32_t>(detail.d[i]));
}

/// Whether an operand that must be 1 or -1 is -1.
bool take_sign(Translation& t, uint32_t operand) {
  const int64_t sign = t.immediate(t.operand(operand));
  if (sign != 1 && sign != -1) t.unsupported("a scale of A and B is 1 or -1");
  return sign < 0;
}
bool take_flag(Translation& t, uint32_t operand) {
  const int64_t flag = t.immediate(t.operand(operand));
  if (flag != 0 && flag != 1) t.unsupported("transposition is 0 or 1");
  return flag != 0;
}

/// Whether there is a product of these types. Empty, or why there is none.
std::string type_fault(const ProductTypes& types) {
  const auto is_one_of = [](Type type, std::initializer_list<Type> allowed) {
    return std::find(allowed.begin(), allowed.end(), type) != allowed.end();
  };
  bool known = false;
  switch (types.a) {
    case Type::F16:
      known = is_one_of(types.d, {Type::F16, Type::F32}) && types.b == types.a;
      break;
    case Type::BF16:
    case Type::TF32:
      known = types.d == Type::F32 && types.b == types.a;
      break;
    case Type::E4M3:
    case Type::E5M2:
      known = is_one_of(types.d, {Type::F16, Type::F32}) && is_one_of(types.b, {Type::E4M3, Type::E5M2});
      break;
    case Type::S8:
    case Type::U8:
      known = types.d == Type::S32 && is_one_of(types.b, {Type::S8, Type::U8});
      break;
    default:
      break;
  }
  return known ? "" : "no such types of D, A and B";
}

bool has_integers(const ProductTypes& types) {
  return types.a == Type::S8 || types.a == Type::U8;
}

void translate_multiply(Translation& t) {
  GroupProduct product;
  product.shape = take_shape(t);
  product.saturate = t.take("satfinite");
  const Type d = t.take_type(), a = t.take_type(), b = t.take_type();
  product.types = {d, a, b, d};
  const bool halves = a == Type::F16 || a == Type::BF16, integers = has_integers(product.types);
  if (const std::string why = group_product_fault(product); !why.empty()) t.unsupported(why);
  product.d = take_destinations(t, 0, Type::B32, group_accumulators(product));
  const bool a_in_registers = t.operand(1).kind == OperandKind::Vector;
  if (a_in_registers)
    product.a = take_registers(t, 1, Type::B32, 4);
  else
    product.a_descriptor = t.source(1, Type::B64);
  product.b_descriptor = t.source(2, Type::B64);
  product.keep = t.predicate_source(t.operand(3));
  const uint32_t wanted = integers ? 4 : !halves ? 6 : a_in_registers ? 7 : 8;
  if (t.operand_count() != wanted)
    t.unsupported("it has " + std::to_string(t.operand_count()) + " operands, expected " +
                  std::to_string(wanted));
  if (!integers) product.negative = take_sign(t, 4) != take_sign(t, 5);
  if (halves) {
    if (!a_in_registers) product.a_transposed = take_flag(t, 6);
    product.b_transposed = take_flag(t, wanted - 1);
  }
  const Place first = product.d[0], a_at = product.a_descriptor, b_at = product.b_descriptor;
  BoundGroupProduct bound = bind_group_product(std::move(product));
  Op& op = t.emit(bound.run, Control::Collective);
  op.destination = first;
  op.a = a_at;
  op.b = b_at;
  t.take_detail(std::move(bound.detail));
}

void run_nothing(Context&, const Op&) {}

}  // namespace

void wait_for_warpgroup(Context& c, const Op&) {
  const auto warps = static_cast<uint32_t>(c.cta->warps().size());
  const uint32_t first = c.warp->number() / Cta::warps_in_group * Cta::warps_in_group;
  c.barrier = BarrierRequest{};
  c.barrier.warpgroup = true;
  c.barrier.threads = std::min(Cta::warps_in_group, warps - first) * warp_lanes;
}

std::string group_product_fault(const GroupProduct& product) {
  if (const std::string why = type_fault(product.types); !why.empty()) return why;
  const MatrixShape& shape = product.shape;
  const bool integers = has_integers(product.types);
  // A row of A or B is 32 bytes.
  if (shape.m != 64 || shape.n == 0 || shape.n > max_columns || shape.n % tile_rows != 0 ||
      shape.k != 2 * tile_columns(product.types.a) || (integers && shape.n > 32 && shape.n % 16 != 0))
    return "no such shape for these types";
  if (product.saturate && !integers) return "`.satfinite` is for integers";
  return {};
}

uint32_t group_accumulators(const GroupProduct& product) {
  return product.shape.n / tile_rows * (product.types.d == Type::F16 ? 2 : 4);
}

BoundGroupProduct bind_group_product(GroupProduct product) {
  const ProductTypes& types = product.types;
  auto detail = std::make_unique<GroupProductDetail>();
  detail->tiles = {2, product.shape.n / tile_rows, 2, tile_columns(types.a)};
  detail->expand_a = expansion(types.a);
  detail->expand_b = expansion(types.b);
  detail->addition = addition_form(types, ProductUnit::Warpgroup);
  detail->a_transposed = product.a_transposed;
  detail->b_transposed = product.b_transposed;
  detail->negative = product.negative;
  detail->in_pairs = product.in_pairs;
  detail->keep = product.keep;
  detail->a = std::move(product.a);
  detail->d = std::move(product.d);
  Handler run = nullptr;
  if (types.d == Type::S32)
    run =
        product.saturate ? run_group_product<ToS32<true>, int32_t> : run_group_product<ToS32<false>, int32_t>;
  else if (types.d == Type::F16)
    run = run_group_product<ToF16<false>, uint16_t>;
  else
    run = run_group_product<ToF32<false>, float>;
  return {run, std::move(detail)};
}

void translate_wgmma_mma_async(Translation& t) {
  t.take("mma_async");
  t.take("sync");
  t.take("aligned");
  if (t.take("sp")) t.unsupported("a sparse matrix A");
  translate_multiply(t);
}

void translate_wgmma_wait_group(Translation& t) {
  t.take("wait_group");
  t.take("sync");
  t.take("aligned");
  t.emit(wait_for_warpgroup, Control::Barrier);
}

/// Products take effect immediately here: .fence and .commit_group only affect timing.
void translate_wgmma_order(Translation& t) {
  t.take_one_of({"fence", "commit_group"});
  t.take("sync");
  t.take("aligned");
  t.emit(run_nothing);
}

}  // namespace simt::functional
