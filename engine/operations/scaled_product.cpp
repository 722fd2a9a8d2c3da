#include "operations/scaled_product.hpp"

#include <algorithm>
#include <string>

#include "machine/grid.hpp"
#include "operations/small_floats.hpp"

namespace simt::functional {

using ptx::Type;

namespace {

constexpr uint32_t most_k = 64, most_scales = 4, lanes_of_row = 4, columns = 8, rows = 2 * tile_rows;

float number(uint32_t code, Type type) {
  switch (type) {
    case Type::E5M2:
      return small_float<E5m2>(code);
    case Type::E3M2:
      return small_float<E3m2>(code);
    case Type::E2M3:
      return small_float<E2m3>(code);
    case Type::E2M1:
      return small_float<E2m1>(code);
    default:
      return small_float<E4m3>(code);
  }
}

int least_exponent(Type type) {
  switch (type) {
    case Type::E5M2:
      return -14;
    case Type::E4M3:
      return -6;
    case Type::E3M2:
      return -2;
    default:
      return 0;
  }
}

/// Of a row of A or a column of B, whose k elements are in `row` of two tiles.
void read_row(const Context& c, const Place (&tiles)[2], uint32_t row, uint32_t k, Type type, float* out) {
  const uint32_t bits = k == most_k ? 4 : 8, each = 32 / bits;
  // Four bits in a byte are in its middle.
  const uint32_t shift = bits == 8 && type == Type::E2M1 ? 2 : 0;
  for (const Place tile : tiles)
    for (uint32_t quarter = 0; quarter < lanes_of_row; ++quarter) {
      const uint32_t word = c.lanes<const uint32_t>(tile)[lanes_of_row * row + quarter];
      for (uint32_t i = 0; i < each; ++i)
        *out++ = number((word >> bits * i & ((1u << bits) - 1)) >> shift, type);
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

}  // namespace

void run_scaled_product(Context& c, const Op& op) {
  need_whole_warp(c);
  const auto& d = op.details<ScaledProductDetail>();
  // A row of A and the one eight below it are in two of the four lanes, a column of B in one.
  const Selection of_a = selection(c, d.scale_a, d.scales, 2), of_b = selection(c, d.scale_b, d.scales, 4);
  float a[rows][most_k], b[columns][most_k];
  ScaleFactor scales_a[rows][most_scales], scales_b[columns][most_scales];
  for (uint32_t m = 0; m < rows; ++m) {
    const uint32_t lower = m / tile_rows, row = m % tile_rows;
    read_row(c, {d.a_tiles[lower], d.a_tiles[2 + lower]}, row, d.k, d.a, a[m]);
    read_scales(c, d, d.scale_a, lanes_of_row * row + 2 * of_a.thread + lower, of_a.byte, scales_a[m]);
  }
  for (uint32_t n = 0; n < columns; ++n) {
    read_row(c, {d.b_tiles[0], d.b_tiles[1]}, n, d.k, d.b, b[n]);
    read_scales(c, d, d.scale_b, lanes_of_row * n + of_b.thread, of_b.byte, scales_b[n]);
  }
  const bool exact = c.grid->machine().tensor_core == TensorCore::Exact;
  const BlockScaledSum sum({.k = d.k,
                            .scales = d.scales,
                            .least_a = least_exponent(d.a),
                            .least_b = least_exponent(d.b),
                            .addition = exact ? ScaledAddition::Exact : d.addition});
  float results[4][warp_lanes];
  for (uint32_t m = 0; m < rows; ++m)
    for (uint32_t n = 0; n < columns; ++n) {
      const uint32_t plane = m / tile_rows * 2 + n % 2, lane = lanes_of_row * (m % tile_rows) + n / 2;
      results[plane][lane] =
          sum.add({a[m], scales_a[m]}, {b[n], scales_b[n]}, c.lanes<const float>(d.c[plane])[lane]);
    }
  for (uint32_t plane = 0; plane < 4; ++plane)
    std::copy_n(results[plane], warp_lanes, c.lanes<float>(d.d[plane]));
}

}  // namespace simt::functional
