#include "operations/quad_pairs.hpp"

#include <utility>

#include "machine/grid.hpp"
#include "operations/aligned_product.hpp"

namespace simt::functional {
namespace {

using ptx::Type;

struct QuadPairDetail : Detail {
  QuadPairProduct product;
  AdditionForm addition;
};

/// Lane, from the pair's first, and number of the accumulator (m, n). f16: one row per lane; f32: 2 x 2
/// blocks.
std::pair<uint32_t, uint32_t> quad_pair_place(bool pairs, uint32_t m, uint32_t n) {
  const uint32_t high = m / 4 * 16, row = m % 4;
  if (pairs) return {high + row, n};
  return {high + (row & 1) + (n & 2), (n & 4) + (row & 2) + (n & 1)};
}

/// The matrices of a quad pair; D has planes of four columns, and is C before.
struct QuadPair {
  alignas(64) float a[8][4], b[4][8], d[2][8][4];
};

/// How generations without HMMA.884 compute it, in f32: with f32 accumulators, a chain of fused
/// multiply-adds, starting from zero, is added to C; with f16, two sums of two products (as ptxas expands
/// it for sm_80 and later).
float multiply_in_f32(const float* a, const float* b, float c, bool half) {
  const auto both = [&](uint32_t k, float sum) {
    return std::fma(a[k + 1], b[8 * (k + 1)], std::fma(a[k], b[8 * k], sum));
  };
  // -0 is what an addition does not change.
  return half ? c + both(0, -0.0f) + both(2, -0.0f) : c + both(2, both(0, 0.0f));
}

/// half: D is f16.
void multiply(QuadPair& pair, const AdditionForm& form, bool half, TensorCore core) {
  if (core == TensorCore::Volta || core == TensorCore::Turing) {
    alignas(64) int16_t a_exponents[32], b_exponents[32], b_pairs[32];
    take_exponents(pair.a[0], 32, form.least_a, a_exponents);
    take_exponents(pair.b[0], 32, form.least_b, b_exponents);
    for (uint32_t i = 0; i < 32; ++i) b_pairs[i / 16 * 16 + i % 8 * 2 + i / 8 % 2] = b_exponents[i];
    const AlignedSum sum(*form.on(core), 4, 4, form.half);
    const RoundingScope scope(sum.host_rounding());
    sum.add({pair.a[0], a_exponents}, {pair.b[0], b_pairs}, pair.d[0][0], pair.d[1][0]);
    return;
  }
  for (uint32_t m = 0; m < 8; ++m)
    for (uint32_t n = 0; n < 8; ++n) {
      float& d = pair.d[n / 4][m][n % 4];
      if (core == TensorCore::Exact) {
        double sum = d;
        for (uint32_t k = 0; k < 4; ++k) sum += double{pair.a[m][k]} * double{pair.b[k][n]};
        d = half ? narrowed_to_odd(sum) : canonical(static_cast<float>(sum));
      } else {
        d = canonical(multiply_in_f32(pair.a[m], &pair.b[0][n], d, form.half));
      }
    }
}

void run_quad_pairs(Context& c, const Op& op) {
  need_whole_warp(c);
  const auto& [product, addition] = op.details<QuadPairDetail>();
  // Elements by lane: four halves of A and of B, eight accumulators.
  alignas(64) float half_a[2][2 * warp_lanes], half_b[2][2 * warp_lanes];
  for (uint32_t r = 0; r < 2; ++r) {
    widen_lanes<Half, true>(c.lanes<const uint32_t>(product.a[r]), half_a[r]);
    widen_lanes<Half, true>(c.lanes<const uint32_t>(product.b[r]), half_b[r]);
  }
  alignas(64) float before[8][warp_lanes] = {}, after[8][warp_lanes];
  for (uint32_t r = 0; r < product.c.size(); ++r) {
    float (*const to)[warp_lanes] = before + product.first_c + (product.c_pairs ? 2 * r : r);
    if (product.c_pairs)
      split_pairs(c.lanes<const uint32_t>(product.c[r]), to[0], to[1]);
    else
      std::copy_n(c.lanes<const float>(product.c[r]), warp_lanes, to[0]);
  }
  for (uint32_t quad = 0; quad < 4; ++quad) {
    // The lane of a pair that holds row or column i of 8; the first four are in the pair's first quad.
    const auto lane_of = [&](uint32_t i) { return quad * 4 + i % 4 + i / 4 * 16; };
    QuadPair pair;
    for (uint32_t i = 0; i < 8; ++i) {
      for (uint32_t k = 0; k < 4; ++k) {
        const uint32_t by_k = quad * 4 + k + i / 4 * 16, element = i % 4;
        pair.a[i][k] = product.a_by_column ? half_a[element / 2][2 * by_k + element % 2]
                                           : half_a[k / 2][2 * lane_of(i) + k % 2];
        pair.b[k][i] = product.b_by_column ? half_b[k / 2][2 * lane_of(i) + k % 2]
                                           : half_b[element / 2][2 * by_k + element % 2];
      }
    }
    for (uint32_t m = 0; m < 8; ++m)
      for (uint32_t n = 0; n < 8; ++n) {
        const auto [lane, element] = quad_pair_place(product.c_pairs, m, n);
        pair.d[n / 4][m][n % 4] = before[element][quad * 4 + lane];
      }
    multiply(pair, addition, product.d_pairs, c.grid->machine().tensor_core);
    for (uint32_t m = 0; m < 8; ++m)
      for (uint32_t n = 0; n < 8; ++n) {
        const auto [lane, element] = quad_pair_place(product.d_pairs, m, n);
        after[element][quad * 4 + lane] = pair.d[n / 4][m][n % 4];
      }
  }
  for (uint32_t r = 0; r < product.d.size(); ++r) {
    const float (*const from)[warp_lanes] = after + product.first_d + (product.d_pairs ? 2 * r : r);
    if (product.d_pairs)
      join_pairs(from[0], from[1], c.lanes<uint32_t>(product.d[r]));
    else
      std::copy_n(from[0], warp_lanes, c.lanes<float>(product.d[r]));
  }
}

}  // namespace

BoundProduct bind_quad_pairs(QuadPairProduct product) {
  auto detail = std::make_unique<QuadPairDetail>();
  const auto accumulator = [](bool pairs) { return pairs ? Type::F16 : Type::F32; };
  detail->addition = addition_form(
      {accumulator(product.d_pairs), Type::F16, Type::F16, accumulator(product.c_pairs)}, ProductUnit::Warp);
  detail->product = std::move(product);
  return {run_quad_pairs, std::move(detail)};
}

}  // namespace simt::functional
