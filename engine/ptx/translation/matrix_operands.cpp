#include "ptx/translation/matrix_operands.hpp"

#include <algorithm>
#include <charconv>

#include "operations/floats.hpp"

namespace simt::functional {

using ptx::OperandKind;
using ptx::Type;

namespace {

/// A shape such as m16n8k16; zeros if the text is not one.
MatrixShape shape_named(std::string_view text) {
  MatrixShape shape;
  const char* at = text.data();
  const char* const end = at + text.size();
  const std::pair<char, uint32_t*> parts[] = {{'m', &shape.m}, {'n', &shape.n}, {'k', &shape.k}};
  for (const auto& [letter, size] : parts) {
    if (at == end || *at != letter) return {};
    const auto [rest, error] = std::from_chars(at + 1, end, *size);
    if (error != std::errc()) return {};
    at = rest;
  }
  return at == end ? shape : MatrixShape{};
}

template <class Take>
std::vector<Place> take_parts(Translation& t, uint32_t index, uint32_t count, Take take) {
  const ptx::Operand& operand = t.operand(index);
  std::vector<Place> places;
  if (operand.kind == OperandKind::Vector) {
    for (uint32_t i = 0; i < operand.part_count; ++i) places.push_back(take(t.part(operand, i)));
  } else {
    places.push_back(take(operand));
  }
  if (places.size() != count)
    t.unsupported("operand " + std::to_string(index) + " has " + std::to_string(places.size()) +
                  " registers, expected " + std::to_string(count));
  return places;
}

/// Takes the operands d, a, b, c, and those of sparsity.
RegisterProduct take_product(Translation& t, const MatrixShape& shape, const ProductTypes& types,
                             const ProductForm& form) {
  RegisterProduct product{.shape = shape, .types = types, .step = form.step};
  const uint32_t count_a = tile_count(types.a, shape.m, shape.k) / (form.sparse ? 2 : 1),
                 count_b = tile_count(types.b, shape.n, shape.k);
  const Type input = fragment_register(types.a);
  product.d = take_destinations(t, 0, fragment_register(types.d), accumulator_registers(types.d, shape));
  product.a = take_registers(t, 1, input, std::max(count_a, form.registers_a));
  product.b = take_registers(t, 2, input, std::max(count_b, form.registers_b));
  product.c = take_registers(t, 3, fragment_register(types.c), accumulator_registers(types.c, shape));
  product.a.resize(count_a);
  product.b.resize(count_b);
  if (!form.sparse) return product;
  const Place metadata = t.source(4, Type::B32);
  const int64_t selector = t.immediate(t.operand(5)), selectors = sparsity_selectors(types.a, shape.k);
  if (selector < 0 || selector >= selectors)
    t.unsupported("sparsity selector " + std::to_string(selector) + ", expected less than " +
                  std::to_string(selectors));
  product.sparsity = sparsity_of(types.a, metadata, shape.k, static_cast<uint32_t>(selector));
  return product;
}

void emit(Translation& t, RegisterProduct product) {
  const Place destination = product.d[0];
  const int rounding = product.rounding;
  BoundProduct bound = bind_product(std::move(product));
  Op& op = t.emit(bound.run, Control::Collective);
  op.immediate = rounding;
  op.destination = destination;
  t.take_detail(std::move(bound.detail));
}

}  // namespace

MatrixShape take_shape(Translation& t) {
  for (const std::string_view m : t.mnemonic().modifiers) {
    const MatrixShape shape = shape_named(m);
    if (shape.m && t.take(m)) return shape;
  }
  t.unsupported("a shape such as m16n8k16 is missing");
}

void expect_shape(Translation& t, const MatrixShape& shape, std::initializer_list<MatrixShape> shapes) {
  if (std::find(shapes.begin(), shapes.end(), shape) == shapes.end())
    t.unsupported("no such shape for these types");
}

void expect_type(Translation& t, Type type, std::initializer_list<Type> types) {
  if (std::find(types.begin(), types.end(), type) == types.end())
    t.unsupported("no such combination of types");
}

Layouts take_layouts(Translation& t) {
  std::vector<bool> by_column;
  for (const std::string_view m : t.mnemonic().modifiers)
    if ((m == "row" || m == "col") && t.take(m)) by_column.push_back(m == "col");
  if (by_column.size() != 2) t.unsupported("two layouts are expected, `.row` or `.col`");
  return {by_column[0], by_column[1]};
}

std::vector<Place> take_registers(Translation& t, uint32_t operand, Type type, uint32_t count) {
  return take_parts(t, operand, count, [&](const ptx::Operand& o) { return t.source(o, type); });
}

std::vector<Place> take_destinations(Translation& t, uint32_t operand, Type type, uint32_t count) {
  return take_parts(t, operand, count, [&](const ptx::Operand& o) { return t.destination(o, type); });
}

void emit_product(Translation& t, const MatrixShape& shape, const ProductTypes& types, bool saturate,
                  const ProductForm& form) {
  RegisterProduct product = take_product(t, shape, types, form);
  product.saturate = saturate;
  if (types.d == Type::F64) product.rounding = take_rounding(t, FE_TONEAREST);
  emit(t, std::move(product));
}

void emit_bit_product(Translation& t, const MatrixShape& shape) {
  const int operation = t.take_one_of({"and", "xor"});
  if (operation < 0 || !t.take("popc")) t.unsupported("`.and.popc` or `.xor.popc` is missing");
  RegisterProduct product = take_product(t, shape, {Type::S32, Type::B1, Type::B1, Type::S32}, {});
  product.exclusive = operation == 1;
  emit(t, std::move(product));
}

}  // namespace simt::functional
