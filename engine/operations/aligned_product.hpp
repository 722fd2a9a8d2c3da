#pragma once
#include <algorithm>
#include <array>

#include "operations/aligned_sum.hpp"
#include "operations/floats.hpp"
#include "operations/matrix_product.hpp"

/// D = A B + C in tiles of fragments.hpp, added as a tensor core does.
namespace simt::functional {

/// Of a type's least normal number.
int least_exponent(ptx::Type type);

/// What decides how a product is added, besides the generation.
struct AdditionForm {
  Additions additions{};
  int least_a = 0, least_b = 0;  ///< exponents of the types' least normal numbers
  bool half = false;             ///< the accumulator is f16, else f32
  bool sparse = false;           ///< factors of A that are `absent_factor` take no part: half of them
  uint32_t step = UINT32_MAX;    ///< k of the machine instructions it is made of

  /// nullptr: to be computed by `multiply`.
  const Addition* on(TensorCore core) const { return additions[static_cast<size_t>(core)]; }
};
/// step: as above.
AdditionForm addition_form(const ProductTypes& types, ProductUnit unit, bool sparse = false,
                           uint32_t step = UINT32_MAX);

/// No type of A has this number.
constexpr float absent_factor = 0x1p-149f;

/// What becomes of a product on one generation: which factors are in a sum, and in which order they are
/// taken.
class SumPlan {
 public:
  SumPlan(const Addition& addition, const AdditionForm& form, uint32_t k);

  bool ascending() const { return ascending_; }
  /// The place of a factor, if the order is not ascending.
  uint32_t place(uint32_t k) const { return places_[k]; }

  uint32_t factors;      ///< of A, in a sum
  int least_a, least_b;  ///< as AdditionForm's, of what the tensor core multiplies
  bool sparse;

 private:
  bool ascending_;
  std::array<uint8_t, max_product_k> places_;
};

/// A, by rows, and its exponents.
class AlignedRows {
 public:
  /// load(row, k, out): the numbers of a tile, 8 x columns.
  template <class Load>
  AlignedRows(const ProductTiles& tiles, const SumPlan& plan, Load load) : k_(tiles.k * tiles.columns) {
    alignas(64) float tile[tile_rows * max_tile_columns];
    for (uint32_t row = 0; row < tiles.m; ++row)
      for (uint32_t k = 0; k < tiles.k; ++k) {
        load(row, k, tile);
        place(plan, tile, tiles.columns, row * tile_rows, k * tiles.columns);
      }
    finish(tiles.m * tile_rows * k_, plan);
  }
  SumRows from(uint32_t row) const { return {numbers_ + row * k_, exponents_ + row * k_}; }

 private:
  void place(const SumPlan& plan, const float* tile, uint32_t columns, uint32_t row, uint32_t k);
  template <uint32_t columns>
  void place_rows(const SumPlan& plan, const float* tile, float* to) const;
  void finish(uint32_t count, const SumPlan& plan);

  uint32_t k_;
  alignas(64) float numbers_[max_product_a];
  alignas(64) int16_t exponents_[max_product_a];
};

/// Eight columns of B, and their exponents.
class AlignedColumns {
 public:
  /// load(k, out): a tile, columns x 8.
  template <class Load>
  void take(const ProductTiles& tiles, const SumPlan& plan, Load load) {
    const uint32_t k_count = tiles.k * tiles.columns;
    for (uint32_t k = 0; k < tiles.k; ++k) load(k, numbers_ + k * tiles.columns * tile_rows);
    finish(k_count, plan);
  }
  SumColumns all() const { return {numbers_, exponent_pairs_}; }

 private:
  void finish(uint32_t k_count, const SumPlan& plan);

  alignas(64) float numbers_[max_product_k * tile_rows];
  alignas(64) int16_t exponent_pairs_[max_product_k * tile_rows];
};

/// As `multiply`, with the accumulators in `planes` before and after. f16 accumulators are held as f32.
template <class LoadA, class LoadB>
inline void multiply_aligned(const ProductTiles& tiles, const Addition& addition, const AdditionForm& form,
                             LoadA load_a, LoadB load_b, float* const* planes) {
  const uint32_t k = tiles.k * tiles.columns;
  const SumPlan plan(addition, form, k);
  const AlignedSum sum(addition, k, plan.factors, form.half);
  const AlignedRows a(tiles, plan, load_a);
  AlignedColumns b;
  const RoundingScope scope(sum.host_rounding());
  for (uint32_t column = 0; column < tiles.n; ++column) {
    b.take(tiles, plan, [&](uint32_t i, float* out) { load_b(column, i, out); });
    for (uint32_t row = 0; row < tiles.m; ++row) {
      const uint32_t tile = band_tile(tiles.m, tiles.n, row, column);
      sum.add(a.from(row * tile_rows), b.all(), planes[2 * tile], planes[2 * tile + 1]);
    }
  }
}

}  // namespace simt::functional
