#include "functional/matrix_product.hpp"

namespace simt::functional {

using ptx::Type;

namespace {

constexpr uint32_t max_planes = 8;  ///< 32 x 8 or 16 x 16 accumulators

/// Which columns of A its registers hold (PTX ISA, "Sparse matrix storage"): two of each chunk of four units,
/// each with a 2-bit index. A unit is an element; for tf32 half an element, for s4 and u4 a pair.
struct Sparsity {
  Place metadata = place::none;
  uint32_t chunk = 4;         ///< elements
  bool row_per_lane = false;  ///< a lane's metadata cover eight chunks of one row; otherwise four of each of
                              ///< two rows
  uint32_t first_lane = 0;    ///< first lane, in each group of four, that provides metadata
};

struct ProductDetail : Detail {
  ProductTiles tiles;
  Sparsity sparsity;
  Expand expand_a = nullptr, expand_b = nullptr;
  std::vector<Place> a, b, c, d;
  /// D's registers overlap other operands, so results must be buffered
  bool aside = false;
};

/// Expands a tile of A, half of whose elements are kept: `kept` has 8 rows of columns / 2 elements, `columns`
/// apart. chunk: index of the tile's first chunk in its row; lower: rows 8 to 15.
void spread(const Context& c, const Sparsity& sparsity, const double* kept, uint32_t columns, uint32_t chunk,
            bool lower, double* out) {
  const uint32_t* metadata = c.lanes<const uint32_t>(sparsity.metadata);
  const uint32_t chunks = columns / sparsity.chunk, pair = sparsity.chunk / 4,
                 kept_of_chunk = sparsity.chunk / 2;
  std::fill_n(out, tile_rows * columns, 0.0);
  for (uint32_t row = 0; row < tile_rows; ++row) {
    for (uint32_t i = 0; i < chunks; ++i) {
      const uint32_t q = chunk + i;
      const uint32_t lane =
          4 * row + sparsity.first_lane + (sparsity.row_per_lane ? q / 8 * 2 + lower : q / 4);
      const uint32_t shift = sparsity.row_per_lane ? q % 8 * 4 : q % 4 * 4 + 16 * lower;
      const uint32_t indices[2] = {metadata[lane] >> shift & 3, metadata[lane] >> (shift + 2) & 3};
      const double* from = kept + row * columns + i * kept_of_chunk;
      double* to = out + row * columns + i * sparsity.chunk;
      if (sparsity.chunk == 2)  // tf32: both halves of one element
        to[indices[0] / 2] = from[0];
      else
        for (uint32_t k = 0; k < kept_of_chunk; ++k) to[indices[k / pair] * pair + k % pair] = from[k];
    }
  }
}

/// C: the type in c's registers: float, double, int32_t, or uint16_t for pairs of f16.
template <class C, class To, bool pairs>
void run_product(Context& c, const Op& op) {
  need_whole_warp(c);
  const auto& detail = op.details<ProductDetail>();
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
      tiles,
      [&](uint32_t row, uint32_t k, double* out) {
        if (detail.sparsity.metadata == place::none) {
          detail.expand_a(c.lanes<const void>(detail.a[band_tile(tiles.m, tiles.k, row, k)]), out);
          return;
        }
        alignas(64) double tile[tile_rows * max_tile_columns];
        detail.expand_a(c.lanes<const void>(detail.a[band_tile(tiles.m, tiles.k / 2, row, k / 2)]), tile);
        spread(c, detail.sparsity, tile + k % 2 * tiles.columns / 2, tiles.columns,
               k * tiles.columns / detail.sparsity.chunk, row % 2 == 1, out);
      },
      [&](uint32_t column, uint32_t k, double* out) {
        alignas(64) double tile[tile_rows * max_tile_columns];
        detail.expand_b(c.lanes<const void>(detail.b[column * tiles.k + k]), tile);
        transpose_tile(tile, tiles.columns, out);
      },
      before, after);
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

/// Takes the metadata and sparsity selector operands.
Sparsity take_sparsity(Translation& t, const MatrixShape& shape, Type type) {
  Sparsity sparsity;
  sparsity.chunk = type == Type::TF32 ? 2 : element_bits(type) < 8 ? 8 : 4;
  sparsity.row_per_lane = element_bits(type) <= 8;
  sparsity.metadata = t.source(4, Type::B32);
  const int64_t selector = t.immediate(t.operand(5));
  // Lanes in each group of four that provide metadata.
  const uint32_t lanes = shape.k / sparsity.chunk / 4;
  if (selector < 0 || selector >= 4 / lanes)
    t.unsupported("sparsity selector " + std::to_string(selector) + ", expected less than " +
                  std::to_string(4 / lanes));
  sparsity.first_lane = static_cast<uint32_t>(selector) * lanes;
  return sparsity;
}

/// Takes the register operands.
ProductDetail take_operands(Translation& t, const MatrixShape& shape, const ProductTypes& types,
                            uint32_t registers_a, uint32_t registers_b, bool sparse = false) {
  ProductDetail detail;
  const uint32_t columns = tile_columns(types.a);
  detail.tiles = {shape.m / tile_rows, shape.n / tile_rows, shape.k / columns, columns};
  const uint32_t count_a = detail.tiles.m * detail.tiles.k / (sparse ? 2 : 1),
                 count_b = detail.tiles.n * detail.tiles.k;
  const Type input = fragment_register(types.a);
  detail.d = take_destinations(t, 0, fragment_register(types.d), accumulator_registers(types.d, shape));
  detail.a = take_registers(t, 1, input, std::max(count_a, registers_a));
  detail.b = take_registers(t, 2, input, std::max(count_b, registers_b));
  detail.c = take_registers(t, 3, fragment_register(types.c), accumulator_registers(types.c, shape));
  if (sparse) detail.sparsity = take_sparsity(t, shape, types.a);
  detail.a.resize(count_a);
  detail.b.resize(count_b);
  detail.aside = must_keep_aside(detail);
  return detail;
}

void emit(Translation& t, Handler run, ProductDetail detail, int rounding) {
  Op& op = t.emit(run, Control::Collective);
  op.immediate = rounding;
  op.destination = detail.d[0];
  t.detail<ProductDetail>() = std::move(detail);
}

}  // namespace

void emit_product(Translation& t, const MatrixShape& shape, const ProductTypes& types, bool saturate,
                  const ProductForm& form) {
  ProductDetail detail = take_operands(t, shape, types, form.registers_a, form.registers_b, form.sparse);
  detail.expand_a = expansion(types.a);
  detail.expand_b = expansion(types.b);
  const int rounding = types.d == Type::F64 ? take_rounding(t, FE_TONEAREST) : FE_TONEAREST;
  const bool pairs = types.c == Type::F16;
  Handler run = nullptr;
  if (types.d == Type::F64)
    run = rounding == FE_TONEAREST ? run_f64 : run_directed<run_f64>;
  else if (types.d == Type::S32)
    run = saturate ? run_product<int32_t, ToS32<true>, false> : run_product<int32_t, ToS32<false>, false>;
  else if (types.d == Type::F16)
    run = saturate ? handler_for<ToF16<true>, true>(pairs) : handler_for<ToF16<false>, true>(pairs);
  else
    run = saturate ? handler_for<ToF32<true>, false>(pairs) : handler_for<ToF32<false>, false>(pairs);
  emit(t, run, std::move(detail), rounding);
}

void emit_bit_product(Translation& t, const MatrixShape& shape) {
  const int operation = t.take_one_of({"and", "xor"});
  if (operation < 0 || !t.take("popc")) t.unsupported("`.and.popc` or `.xor.popc` is missing");
  ProductDetail detail = take_operands(t, shape, {Type::S32, Type::B1, Type::B1, Type::S32}, 0, 0);
  emit(t, operation ? run_bit_product<true> : run_bit_product<false>, std::move(detail), FE_TONEAREST);
}

}  // namespace simt::functional
