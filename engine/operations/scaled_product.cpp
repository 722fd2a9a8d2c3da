#include "operations/scaled_product.hpp"

#include <algorithm>
#include <iterator>
#include <span>
#include <string>

#include "machine/grid.hpp"
#include "operations/aligned_product.hpp"
#include "operations/small_floats.hpp"

namespace simt::functional {

using ptx::Type;

namespace {

constexpr uint32_t most_k = 128, most_stored = 64, most_scales = 4, lanes_of_row = 4, columns = 8,
                   rows = 2 * tile_rows;

/// Of eight rows of A or columns of B. packed: eight numbers of four bits in a word.
void read_rows(const Context& c, std::span<const Place> tiles, bool packed, Type type, float (*out)[most_k]) {
  const uint32_t columns_of_tile = packed ? 32 : 16;
  for (uint32_t t = 0; t < tiles.size(); ++t) {
    const auto* words = c.lanes<const uint32_t>(tiles[t]);
    float tile[tile_rows * max_tile_columns];
    if (packed)
      for (uint32_t i = 0; i < std::size(tile); ++i) tile[i] = small_float<E2m1>(words[i / 8] >> i % 8 * 4);
    else
      expansion(type)(words, tile);
    for (uint32_t row = 0; row < tile_rows; ++row)
      std::copy_n(tile + row * columns_of_tile, columns_of_tile, out[row] + t * columns_of_tile);
  }
}

struct Selection {
  uint32_t byte, thread;
};
/// The operands must be the same in all lanes; ptxas demands constants.
Selection selection(const Context& c, const ScaleOperand& operand, uint32_t scales, uint32_t threads) {
  const Selection s{c.lanes<const uint16_t>(operand.byte)[0], c.lanes<const uint16_t>(operand.thread)[0]};
  if (s.byte % scales != 0 || s.byte + scales > 4 || s.thread >= threads)
    throw Fault("illegal instruction", "scale factors in byte " + std::to_string(s.byte) + " of thread " +
                                           std::to_string(s.thread) +
                                           " of four, which this form does not have");
  return s;
}

void read_scales(const Context& c, const ScaledProductDetail& d, const ScaleOperand& operand, uint32_t lane,
                 uint32_t first_byte, ScaleFactor* out) {
  const uint32_t word = c.lanes<const uint32_t>(operand.factors)[lane];
  for (uint32_t i = 0; i < d.scales; ++i)
    out[i] = scale_factor(static_cast<uint8_t>(word >> 8 * (first_byte + i)), d.exponents_only);
}

/// Where along k the elements are that a row of a sparse A stores: two of four, or two pairs of eight.
void read_places(const Context& c, const ScaledProductDetail& d, uint32_t row,
                 uint8_t (&places)[most_stored]) {
  const auto* metadata = c.lanes<const uint32_t>(d.metadata);
  const uint32_t unit = d.packed ? 2 : 1, chunks = d.k / (4 * unit), chunks_of_lane = 8;
  uint32_t stored = 0;
  for (uint32_t i = 0; i < chunks; ++i) {
    const uint32_t lane = lanes_of_row * (row % tile_rows) + i / chunks_of_lane * 2 + row / tile_rows;
    const uint32_t code = metadata[lane] >> i % chunks_of_lane * 4;
    for (const uint32_t index : {code & 3, code >> 2 & 3})
      for (uint32_t k = 0; k < unit; ++k) places[stored++] = static_cast<uint8_t>((4 * i + index) * unit + k);
  }
}

}  // namespace

void run_scaled_product(Context& c, const Op& op) {
  need_whole_warp(c);
  const auto& d = op.details<ScaledProductDetail>();
  // A row of A and the one eight below it are in two of the four lanes, a column of B in one.
  const Selection of_a = selection(c, d.scale_a, d.scales, 2), of_b = selection(c, d.scale_b, d.scales, 4);
  float a[rows][most_k], b[columns][most_k];
  ScaleFactor scales_a[rows][most_scales], scales_b[columns][most_scales];
  const bool sparse = d.metadata != place::none;
  for (uint32_t lower = 0; lower < 2; ++lower) {
    const Place tiles[] = {d.a_tiles[lower], d.a_tiles[2 + lower]};
    read_rows(c, tiles, d.packed, d.a, a + lower * tile_rows);
  }
  read_rows(c, std::span(d.b_tiles).first(sparse ? 4 : 2), d.packed, d.b, b);
  for (uint32_t m = 0; m < rows; ++m) {
    const uint32_t lower = m / tile_rows, row = m % tile_rows;
    read_scales(c, d, d.scale_a, lanes_of_row * row + 2 * of_a.thread + lower, of_a.byte, scales_a[m]);
  }
  for (uint32_t n = 0; n < columns; ++n)
    read_scales(c, d, d.scale_b, lanes_of_row * n + of_b.thread, of_b.byte, scales_b[n]);
  const bool exact = c.grid->machine().tensor_core == TensorCore::Exact;
  const ScaledAddition addition = exact ? ScaledAddition::Exact : d.addition;
  // Groups are of the elements that a sparse A stores, except fine ones (as of tcgen05).
  const bool kept = sparse && addition != ScaledAddition::FineGroups;
  const uint32_t stored = sparse ? d.k / 2 : d.k;
  const BlockScaledSum sum({.k = kept ? stored : d.k,
                            .scales = d.scales,
                            .least_a = least_exponent(d.a),
                            .least_b = least_exponent(d.b),
                            .group = sparse && !kept ? 32u : 16u,
                            .addition = addition});
  float results[4][warp_lanes], spread_a[most_k], kept_b[most_stored];
  for (uint32_t m = 0; m < rows; ++m) {
    uint8_t places[most_stored];
    const float* row = a[m];
    if (sparse) read_places(c, d, m, places);
    if (sparse && !kept) {
      std::fill_n(spread_a, d.k, 0.0f);
      for (uint32_t i = 0; i < stored; ++i) spread_a[places[i]] = a[m][i];
      row = spread_a;
    }
    for (uint32_t n = 0; n < columns; ++n) {
      const uint32_t plane = m / tile_rows * 2 + n % 2, lane = lanes_of_row * (m % tile_rows) + n / 2;
      if (kept)
        for (uint32_t i = 0; i < stored; ++i) kept_b[i] = b[n][places[i]];
      results[plane][lane] = sum.add({row, scales_a[m]}, {kept ? kept_b : b[n], scales_b[n]},
                                     c.lanes<const float>(d.c[plane])[lane]);
    }
  }
  for (uint32_t plane = 0; plane < 4; ++plane)
    std::copy_n(results[plane], warp_lanes, c.lanes<float>(d.d[plane]));
}

}  // namespace simt::functional
