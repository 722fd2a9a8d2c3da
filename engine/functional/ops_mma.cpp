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

void translate_quad_pairs(Translation& t, bool a_by_column, bool b_by_column, Type d, Type c) {
  expect_type(t, d, {Type::F16, Type::F32});
  expect_type(t, c, {Type::F16, Type::F32});
  QuadPairProduct product;
  product.a_by_column = a_by_column;
  product.b_by_column = b_by_column;
  product.c_pairs = c == Type::F16;
  product.d_pairs = d == Type::F16;
  product.d = take_destinations(t, 0, Type::B32, product.d_pairs ? 4 : 8);
  const auto a = take_registers(t, 1, Type::B32, 2), b = take_registers(t, 2, Type::B32, 2);
  std::copy_n(a.begin(), 2, product.a.begin());
  std::copy_n(b.begin(), 2, product.b.begin());
  product.c = take_registers(t, 3, Type::B32, product.c_pairs ? 4 : 8);
  const Place first = product.d[0];
  BoundProduct bound = bind_quad_pairs(std::move(product));
  Op& op = t.emit(bound.run, Control::Collective);
  op.destination = first;
  t.take_detail(std::move(bound.detail));
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
