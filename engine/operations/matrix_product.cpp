#include "operations/matrix_product.hpp"

#include "machine/grid.hpp"
#include "operations/aligned_product.hpp"

namespace simt::functional {

using ptx::Type;

namespace {

constexpr uint32_t max_planes = 8;  ///< 32 x 8 or 16 x 16 accumulators

/// Infinities become the largest number, NaN becomes 0.
void saturate_plane(bool half, float* numbers) {
  const float largest = half ? 65504.0f : std::numeric_limits<float>::max();
  for (size_t i = 0; i < warp_lanes; ++i)
    numbers[i] = numbers[i] == numbers[i] ? std::clamp(numbers[i], -largest, largest) : 0.0f;
}

/// The accumulators plus what is added last, rounded to nearest.
void add_last(const float* addends, bool half, float* numbers) {
  for (size_t i = 0; i < warp_lanes; ++i)
    numbers[i] =
        half ? narrowed_to_odd(double{addends[i]} + double{numbers[i]}) : canonical(addends[i] + numbers[i]);
}

struct ProductDetail : Detail {
  ProductTiles tiles;
  Sparsity sparsity;
  AdditionForm addition;
  Expand expand_a, expand_b;
  std::vector<Place> a, b, c, d;
  bool c_pairs = false, d_pairs = false;  ///< f16 accumulators
  bool saturate = false;
  /// D's registers overlap other operands, so results must be buffered
  bool aside = false;
};

template <class Number>
void load_a(const Context& c, const ProductDetail& detail, uint32_t row, uint32_t k, Number absent,
            Number* out) {
  const ProductTiles& tiles = detail.tiles;
  if (detail.sparsity.metadata == place::none) {
    detail.expand_a(c.lanes<const void>(detail.a[band_tile(tiles.m, tiles.k, row, k)]), out);
    return;
  }
  alignas(64) Number tile[tile_rows * max_tile_columns];
  detail.expand_a(c.lanes<const void>(detail.a[band_tile(tiles.m, tiles.k / 2, row, k / 2)]), tile);
  spread(c, detail.sparsity, tile + k % 2 * tiles.columns / 2, tiles.columns,
         k * tiles.columns / detail.sparsity.chunk, row % 2 == 1, absent, out);
}

template <class Number>
void load_b(const Context& c, const ProductDetail& detail, uint32_t column, uint32_t k, Number* out) {
  alignas(64) Number tile[tile_rows * max_tile_columns];
  detail.expand_b(c.lanes<const void>(detail.b[column * detail.tiles.k + k]), tile);
  transpose_tile(tile, detail.tiles.columns, out);
}

/// As the tensor core adds.
void run_aligned(Context& c, const ProductDetail& detail, const Addition& addition) {
  alignas(64) float planes[max_planes][warp_lanes];
  float* accumulators[max_planes];
  for (size_t i = 0; i < max_planes; ++i) accumulators[i] = planes[i];
  for (size_t i = 0; i < detail.c.size(); ++i) {
    if (detail.c_pairs)
      split_pairs(c.lanes<const uint32_t>(detail.c[i]), planes[2 * i], planes[2 * i + 1]);
    else
      std::copy_n(c.lanes<const float>(detail.c[i]), warp_lanes, planes[i]);
  }
  alignas(64) float last[max_planes][warp_lanes];  // what is added last
  if (addition.unpacked) {
    std::memcpy(last, planes, sizeof planes);
    std::memset(planes, 0, sizeof planes);
  }
  multiply_aligned(
      detail.tiles, addition, detail.addition,
      [&](uint32_t row, uint32_t k, float* out) { load_a(c, detail, row, k, absent_factor, out); },
      [&](uint32_t column, uint32_t k, float* out) { load_b(c, detail, column, k, out); }, accumulators);
  for (size_t i = 0; i < detail.d.size() * (detail.d_pairs ? 2 : 1); ++i) {
    if (addition.unpacked) add_last(last[i], detail.addition.half, planes[i]);
    if (detail.saturate) saturate_plane(detail.d_pairs, planes[i]);
  }
  for (size_t i = 0; i < detail.d.size(); ++i) {
    if (detail.d_pairs)
      join_pairs(planes[2 * i], planes[2 * i + 1], c.lanes<uint32_t>(detail.d[i]));
    else
      std::copy_n(planes[i], warp_lanes, c.lanes<float>(detail.d[i]));
  }
}

/// C: the type in c's registers: float, double, int32_t, or uint16_t for pairs of f16.
template <class C, class To, bool pairs>
void run_product(Context& c, const Op& op) {
  need_whole_warp(c);
  if (c.without_products) return;
  const auto& detail = op.details<ProductDetail>();
  if constexpr (std::is_same_v<typename To::Plane, float>)
    if (const Addition* addition = detail.addition.on(c.grid->machine().tensor_core))
      return run_aligned(c, detail, *addition);
  using In = std::conditional_t<std::is_same_v<C, uint16_t>, float, C>;
  using Plane = typename To::Plane;
  const In* before[max_planes];
  Plane* after[max_planes];
  alignas(64) float split[std::is_same_v<C, uint16_t> ? max_planes : 1][warp_lanes];
  if constexpr (std::is_same_v<C, uint16_t>) {
    for (size_t i = 0; i < detail.c.size(); ++i)
      split_pairs(c.lanes<const uint32_t>(detail.c[i]), split[2 * i], split[2 * i + 1]);
    for (size_t i = 0; i < 2 * detail.c.size(); ++i) before[i] = split[i];
  } else {
    for (size_t i = 0; i < detail.c.size(); ++i) before[i] = c.lanes<const In>(detail.c[i]);
  }
  alignas(64) Plane results[max_planes][warp_lanes];
  const size_t planes = detail.d.size() * (pairs ? 2 : 1);
  for (size_t i = 0; i < planes; ++i)
    after[i] = pairs || detail.aside ? results[i] : c.lanes<Plane>(detail.d[i]);
  const ProductTiles tiles = detail.tiles;
  multiply<To>(
      tiles, [&](uint32_t row, uint32_t k, double* out) { load_a(c, detail, row, k, 0.0, out); },
      [&](uint32_t column, uint32_t k, double* out) { load_b(c, detail, column, k, out); }, before, after);
  if constexpr (pairs) {
    for (size_t i = 0; i < detail.d.size(); ++i)
      join_pairs(results[2 * i], results[2 * i + 1], c.lanes<uint32_t>(detail.d[i]));
  } else if (detail.aside) {
    for (size_t i = 0; i < planes; ++i)
      std::copy(results[i], results[i] + warp_lanes, c.lanes<Plane>(detail.d[i]));
  }
}

template <class To, bool pairs>
Handler handler_for(bool c_pairs) {
  return c_pairs ? run_product<uint16_t, To, pairs> : run_product<float, To, pairs>;
}

constexpr Handler run_f64 = run_product<double, ToF64, false>;

bool must_keep_aside(const ProductDetail& detail) {
  for (size_t i = 0; i < detail.d.size(); ++i) {
    if (detail.d[i] == detail.sparsity.metadata) return true;
    for (const auto* sources : {&detail.a, &detail.b})
      if (std::find(sources->begin(), sources->end(), detail.d[i]) != sources->end()) return true;
    for (size_t k = 0; k < detail.c.size(); ++k)
      if (k != i && detail.c[k] == detail.d[i]) return true;
  }
  return false;
}

template <bool exclusive>
void run_bit_product(Context& c, const Op& op) {
  need_whole_warp(c);
  const auto& detail = op.details<ProductDetail>();
  const ProductTiles tiles = detail.tiles;
  uint32_t results[max_planes][warp_lanes];
  for (uint32_t row = 0; row < tiles.m; ++row) {
    for (uint32_t i = 0; i < tile_rows; ++i) {
      for (uint32_t j = 0; j < tile_rows; ++j) {
        const uint32_t plane = 2 * row + j % 2, lane = 4 * i + j / 2;
        uint32_t sum = c.lanes<const uint32_t>(detail.c[plane])[lane];
        for (uint32_t k = 0; k < tiles.k; ++k) {
          const uint32_t* a = c.lanes<const uint32_t>(detail.a[band_tile(tiles.m, tiles.k, row, k)]) + 4 * i;
          const uint32_t* b = c.lanes<const uint32_t>(detail.b[k]) + 4 * j;
          for (uint32_t w = 0; w < 4; ++w)
            sum += static_cast<uint32_t>(std::popcount(exclusive ? a[w] ^ b[w] : a[w] & b[w]));
        }
        results[plane][lane] = sum;
      }
    }
  }
  for (size_t i = 0; i < detail.d.size(); ++i)
    std::copy_n(results[i], warp_lanes, c.lanes<uint32_t>(detail.d[i]));
}

/// Elements of a chunk.
uint32_t chunk_of(Type a) {
  return a == Type::TF32 ? 2 : element_bits(a) < 8 ? 8 : 4;
}
/// Lanes in each group of four that provide metadata.
uint32_t lanes_with_metadata(Type a, uint32_t k) {
  return k / chunk_of(a) / 4;
}
}  // namespace

uint32_t sparsity_selectors(Type a, uint32_t k) {
  return 4 / lanes_with_metadata(a, k);
}

BoundProduct bind_product(RegisterProduct product) {
  const ProductTypes types = product.types;
  const bool sparse = product.sparsity.metadata != place::none;
  const uint32_t columns = tile_columns(types.a);
  auto detail = std::make_unique<ProductDetail>();
  detail->tiles = {product.shape.m / tile_rows, product.shape.n / tile_rows, product.shape.k / columns,
                   columns};
  detail->a = std::move(product.a);
  detail->b = std::move(product.b);
  detail->c = std::move(product.c);
  detail->d = std::move(product.d);
  if (types.a == Type::B1)
    return {product.exclusive ? run_bit_product<true> : run_bit_product<false>, std::move(detail)};
  detail->sparsity = product.sparsity;
  detail->addition = addition_form(types, ProductUnit::Warp, sparse, product.step);
  detail->expand_a = expansion(types.a);
  detail->expand_b = expansion(types.b);
  detail->c_pairs = types.c == Type::F16;
  detail->d_pairs = types.d == Type::F16;
  detail->saturate = product.saturate;
  detail->aside = must_keep_aside(*detail);
  Handler run = nullptr;
  if (types.d == Type::F64)
    run = product.rounding == FE_TONEAREST ? run_f64 : run_directed<run_f64>;
  else if (types.d == Type::S32)
    run = product.saturate ? run_product<int32_t, ToS32<true>, false>
                           : run_product<int32_t, ToS32<false>, false>;
  else if (types.d == Type::F16)
    run = product.saturate ? handler_for<ToF16<true>, true>(detail->c_pairs)
                           : handler_for<ToF16<false>, true>(detail->c_pairs);
  else
    run = product.saturate ? handler_for<ToF32<true>, false>(detail->c_pairs)
                           : handler_for<ToF32<false>, false>(detail->c_pairs);
  return {run, std::move(detail)};
}

Sparsity sparsity_of(Type a, Place metadata, uint32_t k, uint32_t selector) {
  Sparsity sparsity;
  sparsity.metadata = metadata;
  sparsity.chunk = chunk_of(a);
  sparsity.row_per_lane = element_bits(a) <= 8;
  sparsity.first_lane = selector * lanes_with_metadata(a, k);
  return sparsity;
}

}  // namespace simt::functional
