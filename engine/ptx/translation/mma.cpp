/// mma.sync and mma.sp: products of small matrices in a warp's registers.
#include <algorithm>

#include "operations/quad_pairs.hpp"
#include "operations/scaled_product.hpp"
#include "ptx/translation/instructions.hpp"
#include "ptx/translation/matrix_operands.hpp"

namespace simt::functional {
namespace {

using ptx::Type;

constexpr std::initializer_list<Type> small_types = {Type::E4M3, Type::E5M2, Type::E3M2, Type::E2M3,
                                                     Type::E2M1};

/// Checks the shapes of mma.sync or mma.sp for each type, and the types of accumulators. small: of
/// .kind::f8f6f4.
void check(Translation& t, const MatrixShape& shape, bool sparse, bool small, const ProductTypes& types) {
  if (small) {
    expect_shape(t, shape, {{16, 8, sparse ? 64u : 32u}});
    expect_type(t, types.a, small_types);
    expect_type(t, types.b, small_types);
    expect_type(t, types.d, {Type::F16, Type::F32});
    return expect_type(t, types.c, {types.d});
  }
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

ScaleOperand take_scale(Translation& t, uint32_t index) {
  const auto parts = take_registers(t, index, Type::B32, 1);
  const ptx::Operand& selection = t.operand(index + 1);
  if (selection.kind != ptx::OperandKind::Vector || selection.part_count != 2)
    t.unsupported("operand " + std::to_string(index + 1) + " is not {byte, thread}");
  return {parts[0], t.source(t.part(selection, 0), Type::U16), t.source(t.part(selection, 1), Type::U16)};
}

/// mma.kind.block_scale d, a, b, c, [metadata, selector,] {scales of a}, {byte, thread}, {scales of b},
/// {byte, thread}.
void translate_scaled(Translation& t, const MatrixShape& shape, bool mx8, bool nv, bool sparse) {
  ScaledProductDetail p;
  const int vector = t.take_one_of({"scale_vec::1X", "scale_vec::2X", "scale_vec::4X"});
  if (vector < 0 && nv) t.unsupported("`.scale_vec::2X` or `.scale_vec::4X` is missing");
  p.scales = vector >= 0 ? 1u << vector : mx8 ? 1 : 2;
  const Type d = t.take_type(), a = t.take_type(), b = t.take_type(), c = t.take_type();
  const int factors = t.take_one_of({"ue8m0", "ue4m3"});
  if (factors < 0) t.unsupported("the type of the scale factors is missing");
  p.exponents_only = factors == 0;
  p.packed = !mx8;
  p.k = (mx8 ? 32 : 64) * (sparse ? 2 : 1);
  expect_shape(t, shape, {{16, 8, p.k}});
  for (const Type type : {a, b}) mx8 ? expect_type(t, type, small_types) : expect_type(t, type, {Type::E2M1});
  expect_type(t, d, {Type::F32});
  expect_type(t, c, {Type::F32});
  const bool known = mx8                ? p.scales == 1 && p.exponents_only
                     : p.exponents_only ? p.scales == 2 || (nv && p.scales == 4)
                                        : nv && p.scales == 4;
  if (!known) t.unsupported("no such scale factors for this kind");
  p.a = a;
  p.b = b;
  p.addition = mx8                ? ScaledAddition::Window
               : p.exponents_only ? ScaledAddition::Groups
                                  : ScaledAddition::FineGroups;
  const auto keep = [](const std::vector<Place>& from, auto& to) {
    std::copy_n(from.begin(), to.size(), to.begin());
  };
  keep(take_destinations(t, 0, Type::B32, 4), p.d);
  keep(take_registers(t, 1, Type::B32, 4), p.a_tiles);
  std::ranges::copy(take_registers(t, 2, Type::B32, sparse ? 4 : 2), p.b_tiles.begin());
  keep(take_registers(t, 3, Type::B32, 4), p.c);
  if (sparse) {
    p.metadata = t.source(4, Type::B32);
    if (t.immediate(t.operand(5)) != 0) t.unsupported("a sparsity selector other than 0");
  }
  const uint32_t first_scale = sparse ? 6 : 4;
  p.scale_a = take_scale(t, first_scale);
  p.scale_b = take_scale(t, first_scale + 2);
  Op& op = t.emit(run_scaled_product, Control::Collective);
  op.destination = p.d[0];
  t.detail<ScaledProductDetail>() = p;
}

}  // namespace

void translate_mma(Translation& t) {
  t.take("sync");
  t.take("aligned");
  // Ordered metadata are also valid for plain `.sp`.
  const bool ordered = t.take("sp::ordered_metadata"), sparse = t.take("sp") || ordered;
  const bool small = t.take("kind::f8f6f4");
  const int scaled = t.take_one_of({"kind::mxf8f6f4", "kind::mxf4", "kind::mxf4nvf4"});
  const MatrixShape shape = take_shape(t);
  const auto [a_by_column, b_by_column] = take_layouts(t);
  if (scaled >= 0) {
    if (sparse && !ordered) t.unsupported("scale factors of a sparse matrix need .sp::ordered_metadata");
    if (!t.take("block_scale")) t.unsupported("`.block_scale` is missing");
    if (a_by_column || !b_by_column) t.unsupported("A by rows and B by columns are expected");
    return translate_scaled(t, shape, scaled == 0, scaled == 2, sparse);
  }
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
  check(t, shape, sparse, small, {d, a, b, c});
  if (saturate && d != Type::S32) t.unsupported("`.satfinite` is for integers");
  emit_product(t, shape, {d, a, b, c}, saturate, {.sparse = sparse});
}

}  // namespace simt::functional
