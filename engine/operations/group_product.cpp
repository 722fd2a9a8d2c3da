/// Each of the four warps computes its 16 rows of D when it executes the instruction. Hardware gives the same
/// result, since the operands may not change before the product is waited for.
#include "operations/group_product.hpp"

#include "machine/access.hpp"
#include "machine/grid.hpp"
#include "operations/aligned_product.hpp"
#include "operations/shared_matrix.hpp"

namespace simt::functional {
namespace {

using ptx::Type;

constexpr uint32_t max_columns = 256;
constexpr uint32_t max_planes = max_columns / 2;  ///< for 16 x 256 accumulators, 32 each
constexpr uint32_t max_group_tiles = 4;           ///< of a dense A, 16 x 32 bytes for a warp

struct GroupProductDetail : Detail {
  ProductTiles tiles;  ///< per warp
  Expand expand_a, expand_b;
  AdditionForm addition;
  bool a_transposed = false, b_transposed = false;
  bool negative = false;  ///< A B is subtracted
  bool in_pairs = false;  ///< descriptors are in two rows of registers each
  std::vector<Place> a;   ///< registers; empty if A is in shared memory
  std::vector<Place> d;
  Sparsity sparsity;
  PredicateOperand keep;  ///< whether to add to D

  bool keeps(const Context& c) const { return (c.predicate(keep.place) & 1) != (keep.negated ? 1u : 0u); }
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
  if (c.without_products) return;
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
  const bool keep = detail.keeps(c), sparse = detail.sparsity.metadata != place::none;
  const uint32_t first_row = c.warp->number() % Cta::warps_in_group * tiles.m;
  const SharedMatrix shared_a(c, *c.cta, detail.a.empty() ? descriptor(c, op.a, detail.in_pairs) : 0,
                              detail.a_transposed);
  const SharedMatrix shared_b(c, *c.cta, descriptor(c, op.b, detail.in_pairs), detail.b_transposed);
  alignas(64) std::byte bytes[tile_rows * SharedMatrix::row_bytes];
  const size_t size = size_t{tile_rows} * tiles.columns;
  const uint32_t held_tiles = tiles.k / (sparse ? 2 : 1);
  const auto load_held = [&](uint32_t row, uint32_t k, auto* out) {
    if (!detail.a.empty()) {
      detail.expand_a(c.lanes<const void>(detail.a[band_tile(tiles.m, held_tiles, row, k)]), out);
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
  const auto load_a = [&](uint32_t row, uint32_t k, auto* out) {
    if (!sparse) return load_held(row, k, out);
    using Number = std::remove_pointer_t<decltype(out)>;
    alignas(64) Number tile[tile_rows * max_tile_columns];
    load_held(row, k / 2, tile);
    spread(c, detail.sparsity, tile + k % 2 * tiles.columns / 2, tiles.columns,
           k * tiles.columns / detail.sparsity.chunk, row % 2 == 1,
           std::is_same_v<Number, float> ? static_cast<Number>(absent_factor) : Number{}, out);
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

/// Adds how many bits A and B both have.
void run_group_bits(Context& c, const Op& op) {
  need_whole_warp(c);
  if (c.without_products) return;
  const auto& detail = op.details<GroupProductDetail>();
  const ProductTiles tiles = detail.tiles;
  const bool keep = detail.keeps(c);
  const uint32_t first_row = c.warp->number() % Cta::warps_in_group * tiles.m;
  const SharedMatrix shared_a(c, *c.cta, detail.a.empty() ? descriptor(c, op.a, detail.in_pairs) : 0, false);
  const SharedMatrix shared_b(c, *c.cta, descriptor(c, op.b, detail.in_pairs), false);
  constexpr uint32_t row_words = SharedMatrix::row_bytes / 4, tile_words = tile_rows * row_words;
  uint32_t a[max_group_tiles][tile_words], b[tile_words];
  for (uint32_t row = 0; row < tiles.m; ++row)
    for (uint32_t k = 0; k < tiles.k; ++k) {
      const uint32_t tile = band_tile(tiles.m, tiles.k, row, k);
      if (detail.a.empty())
        shared_a.read(first_row + row, k, reinterpret_cast<std::byte*>(a[tile]));
      else
        std::copy_n(c.lanes<const uint32_t>(detail.a[tile]), tile_words, a[tile]);
    }
  if (!keep)
    for (const Place d : detail.d) std::fill_n(c.lanes<uint32_t>(d), warp_lanes, 0u);
  for (uint32_t column = 0; column < tiles.n; ++column)
    for (uint32_t k = 0; k < tiles.k; ++k) {
      shared_b.read(column, k, reinterpret_cast<std::byte*>(b));
      for (uint32_t row = 0; row < tiles.m; ++row) {
        const uint32_t* of_a = a[band_tile(tiles.m, tiles.k, row, k)];
        const uint32_t first = 2 * band_tile(tiles.m, tiles.n, row, column);
        for (uint32_t i = 0; i < tile_rows; ++i)
          for (uint32_t j = 0; j < tile_rows; ++j) {
            uint32_t& sum = c.lanes<uint32_t>(detail.d[first + j % 2])[4 * i + j / 2];
            for (uint32_t w = 0; w < row_words; ++w)
              sum += static_cast<uint32_t>(std::popcount(of_a[row_words * i + w] & b[row_words * j + w]));
          }
      }
    }
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
    case Type::B1:
      known = types.d == Type::S32 && types.b == types.a;
      break;
    default:
      break;
  }
  return known ? "" : "no such types of D, A and B";
}

/// Tiles along k: rows of A in shared memory and of a dense B have 32 bytes.
uint32_t tiles_along_k(bool sparse) {
  return sparse ? 4 : 2;
}

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
  const bool bits = product.types.a == Type::B1, integers = product.types.d == Type::S32;
  if (bits && product.sparse) return "a sparse matrix A of single bits";
  if (shape.m != 64 || shape.n == 0 || shape.n > max_columns || shape.n % tile_rows != 0 ||
      shape.k != tiles_along_k(product.sparse) * tile_columns(product.types.a) ||
      (integers && shape.n > 32 && shape.n % 16 != 0))
    return "no such shape for these types";
  if (product.saturate && (!integers || bits)) return "`.satfinite` is for integers";
  return {};
}

uint32_t group_accumulators(const GroupProduct& product) {
  return product.shape.n / tile_rows * (product.types.d == Type::F16 ? 2 : 4);
}

BoundGroupProduct bind_group_product(GroupProduct product) {
  const ProductTypes& types = product.types;
  auto detail = std::make_unique<GroupProductDetail>();
  detail->tiles = {2, product.shape.n / tile_rows, tiles_along_k(product.sparse), tile_columns(types.a)};
  detail->a_transposed = product.a_transposed;
  detail->b_transposed = product.b_transposed;
  detail->negative = product.negative;
  detail->in_pairs = product.in_pairs;
  detail->keep = product.keep;
  detail->a = std::move(product.a);
  detail->d = std::move(product.d);
  detail->sparsity = product.sparsity;
  if (types.a == Type::B1) return {run_group_bits, std::move(detail)};
  detail->expand_a = expansion(types.a);
  detail->expand_b = expansion(types.b);
  detail->addition = addition_form(types, ProductUnit::Warpgroup, product.sparse);
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

}  // namespace simt::functional
