/// mma.sync and mma.sp: products of small matrices in a warp's registers.
#include "functional/aligned_product.hpp"
#include "functional/grid.hpp"
#include "functional/instructions.hpp"

namespace simt::functional {
namespace {

using ptx::Type;

/// Checks the shapes of mma.sync or mma.sp for each type, and the types of accumulators.
void check(Translation& t, const MatrixShape& shape, bool sparse, const ProductTypes& types) {
  const auto shapes = [&](std::initializer_list<MatrixShape> dense,
                          std::initializer_list<MatrixShape> halved) {
    expect_shape(t, shape, sparse ? halved : dense);
  };
  switch (types.a) {
    case Type::F16:
    case Type::BF16:
      shapes({{16, 8, 8}, {16, 8, 16}}, {{16, 8, 16}, {16, 8, 32}});
      expect_type(t, types.b, {types.a});
      break;
    case Type::TF32:
      shapes({{16, 8, 4}, {16, 8, 8}}, {{16, 8, 8}, {16, 8, 16}});
      expect_type(t, types.b, {types.a});
      break;
    case Type::E4M3:
    case Type::E5M2:
      shapes({{16, 8, 16}, {16, 8, 32}}, {{16, 8, 64}});
      expect_type(t, types.b, {Type::E4M3, Type::E5M2});
      break;
    case Type::F64:
      shapes({{8, 8, 4}, {16, 8, 4}, {16, 8, 8}, {16, 8, 16}}, {});
      expect_type(t, types.b, {types.a});
      break;
    case Type::S8:
    case Type::U8:
      shapes({{8, 8, 16}, {16, 8, 16}, {16, 8, 32}}, {{16, 8, 32}, {16, 8, 64}});
      expect_type(t, types.b, {Type::S8, Type::U8});
      break;
    case Type::S4:
    case Type::U4:
      shapes({{8, 8, 32}, {16, 8, 32}, {16, 8, 64}}, {{16, 8, 64}, {16, 8, 128}});
      expect_type(t, types.b, {Type::S4, Type::U4});
      break;
    default:
      t.unsupported("no such types of A and B");
  }
  if (!ptx::is_float(types.a))
    expect_type(t, types.d, {Type::S32});
  else if (types.a == Type::F64)
    expect_type(t, types.d, {Type::F64});
  else if (types.a == Type::BF16 || types.a == Type::TF32)
    expect_type(t, types.d, {Type::F32});
  else
    expect_type(t, types.d, {Type::F16, Type::F32});
  expect_type(t, types.c, {types.d});
}

/// Volta's m8n8k4 with f16: each quad pair (lanes 4q to 4q+3 and the same plus 16) has its own matrices. A: 8
/// x 4, B: 4 x 8.
struct QuadPairDetail : Detail {
  bool a_by_column = false, b_by_column = false, c_pairs = false, d_pairs = false;
  AdditionForm addition;
  std::array<Place, 2> a{}, b{};
  std::vector<Place> c, d;
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
  const auto& detail = op.details<QuadPairDetail>();
  // Elements by lane: four halves of A and of B, eight accumulators.
  alignas(64) float half_a[2][2 * warp_lanes], half_b[2][2 * warp_lanes];
  for (uint32_t r = 0; r < 2; ++r) {
    widen_lanes<Half, true>(c.lanes<const uint32_t>(detail.a[r]), half_a[r]);
    widen_lanes<Half, true>(c.lanes<const uint32_t>(detail.b[r]), half_b[r]);
  }
  alignas(64) float before[8][warp_lanes], after[8][warp_lanes];
  for (uint32_t r = 0; r < detail.c.size(); ++r) {
    if (detail.c_pairs)
      split_pairs(c.lanes<const uint32_t>(detail.c[r]), before[2 * r], before[2 * r + 1]);
    else
      std::copy_n(c.lanes<const float>(detail.c[r]), warp_lanes, before[r]);
  }
  for (uint32_t quad = 0; quad < 4; ++quad) {
    // The lane of a pair that holds row or column i of 8; the first four are in the pair's first quad.
    const auto lane_of = [&](uint32_t i) { return quad * 4 + i % 4 + i / 4 * 16; };
    QuadPair pair;
    for (uint32_t i = 0; i < 8; ++i) {
      for (uint32_t k = 0; k < 4; ++k) {
        const uint32_t by_k = quad * 4 + k + i / 4 * 16, element = i % 4;
        pair.a[i][k] = detail.a_by_column ? half_a[element / 2][2 * by_k + element % 2]
                                          : half_a[k / 2][2 * lane_of(i) + k % 2];
        pair.b[k][i] = detail.b_by_column ? half_b[k / 2][2 * lane_of(i) + k % 2]
                                          : half_b[element / 2][2 * by_k + element % 2];
      }
    }
    for (uint32_t m = 0; m < 8; ++m)
      for (uint32_t n = 0; n < 8; ++n) {
        const auto [lane, element] = quad_pair_place(detail.c_pairs, m, n);
        pair.d[n / 4][m][n % 4] = before[element][quad * 4 + lane];
      }
    multiply(pair, detail.addition, detail.d_pairs, c.grid->machine().tensor_core);
    for (uint32_t m = 0; m < 8; ++m)
      for (uint32_t n = 0; n < 8; ++n) {
        const auto [lane, element] = quad_pair_place(detail.d_pairs, m, n);
        after[element][quad * 4 + lane] = pair.d[n / 4][m][n % 4];
      }
  }
  for (uint32_t r = 0; r < detail.d.size(); ++r) {
    if (detail.d_pairs)
      join_pairs(after[2 * r], after[2 * r + 1], c.lanes<uint32_t>(detail.d[r]));
    else
      std::copy_n(after[r], warp_lanes, c.lanes<float>(detail.d[r]));
  }
}

void translate_quad_pairs(Translation& t, bool a_by_column, bool b_by_column, Type d, Type c) {
  expect_type(t, d, {Type::F16, Type::F32});
  expect_type(t, c, {Type::F16, Type::F32});
  QuadPairDetail detail;
  detail.a_by_column = a_by_column;
  detail.b_by_column = b_by_column;
  detail.c_pairs = c == Type::F16;
  detail.d_pairs = d == Type::F16;
  detail.addition = addition_form({d, Type::F16, Type::F16, c}, ProductUnit::Warp);
  detail.d = take_destinations(t, 0, Type::B32, detail.d_pairs ? 4 : 8);
  const auto a = take_registers(t, 1, Type::B32, 2), b = take_registers(t, 2, Type::B32, 2);
  std::copy_n(a.begin(), 2, detail.a.begin());
  std::copy_n(b.begin(), 2, detail.b.begin());
  detail.c = take_registers(t, 3, Type::B32, detail.c_pairs ? 4 : 8);
  Op& op = t.emit(run_quad_pairs, Control::Collective);
  op.destination = detail.d[0];
  t.detail<QuadPairDetail>() = std::move(detail);
}

}  // namespace

void translate_mma(Translation& t) {
  t.take("sync");
  t.take("aligned");
  // Ordered metadata are also valid for plain `.sp`.
  const bool sparse = t.take("sp") || t.take("sp::ordered_metadata");
  const MatrixShape shape = take_shape(t);
  const auto [a_by_column, b_by_column] = take_layouts(t);
  const bool saturate = t.take("satfinite");
  const Type d = t.take_type(), a = t.take_type(), b = t.take_type(), c = t.take_type();
  if (a == Type::F16 && !sparse && shape == MatrixShape{8, 8, 4}) {
    expect_type(t, b, {Type::F16});
    return translate_quad_pairs(t, a_by_column, b_by_column, d, c);
  }
  if (a_by_column || !b_by_column) t.unsupported("A by rows and B by columns are expected");
  if (a == Type::B1 && !sparse) {
    expect_type(t, b, {a});
    expect_type(t, d, {Type::S32});
    expect_type(t, c, {Type::S32});
    expect_shape(t, shape, {{8, 8, 128}, {16, 8, 128}, {16, 8, 256}});
    return emit_bit_product(t, shape);
  }
  check(t, shape, sparse, {d, a, b, c});
  if (saturate && d != Type::S32) t.unsupported("`.satfinite` is for integers");
  emit_product(t, shape, {d, a, b, c}, saturate, {.sparse = sparse});
}

}  // namespace simt::functional
