/// Tensor cores: HMMA, IMMA, DMMA, BMMA, and moves of their tiles: LDSM, STSM, MOVM. Registers hold matrices
/// as in PTX.
#include "functional/matrix_product.hpp"
#include "functional/tiles.hpp"
#include "sass/instructions.hpp"
#include "sass/rows.hpp"

namespace simt::sass {

using functional::MatrixShape;
using functional::RegisterProduct;
using functional::TilesDetail;
using ptx::Type;

namespace {

struct NamedShape {
  std::string_view name;
  MatrixShape shape;
};

template <size_t count>
MatrixShape take_shape(Translation& t, const NamedShape (&shapes)[count]) {
  for (const NamedShape& known : shapes)
    if (t.take(known.name)) return known.shape;
  t.unsupported("this shape");
}

/// Rows of consecutive registers.
std::vector<Place> rows_of(Place first, uint32_t count) {
  std::vector<Place> all(count);
  for (uint32_t k = 0; k < count; ++k) all[k] = first + k * place::register_bytes;
  return all;
}
/// As many registers as an operand has; RZ is as many zeros.
std::vector<Place> sources(Translation& t, uint32_t index, uint32_t count) {
  const Place first = t.source(index, count);
  if (t.operand(index).is_zero()) return std::vector<Place>(count, first);
  return rows_of(first, count);
}

void emit_product(Translation& t, RegisterProduct product) {
  const int rounding = product.rounding;
  const Place destination = product.d[0];
  functional::BoundProduct bound = functional::bind_product(std::move(product));
  Op& op = t.emit(bound.run);
  op.immediate = rounding;
  op.destination = destination;
  t.take_detail(std::move(bound.detail));
}

/// Takes operands d, a, b, c whose elements have up to 32 bits.
void take_registers(Translation& t, RegisterProduct& product) {
  const auto& [shape, types] = std::tie(product.shape, product.types);
  const uint32_t of_d = functional::accumulator_registers(types.d, shape),
                 of_c = functional::accumulator_registers(types.c, shape);
  product.d = rows_of(t.destination(0, of_d), of_d);
  product.a = sources(t, 1, functional::tile_count(types.a, shape.m, shape.k));
  product.b = sources(t, 2, functional::tile_count(types.b, shape.n, shape.k));
  product.c = sources(t, 3, of_c);
}

}  // namespace

/// HMMA.shape.F32|F16[.BF16|.TF32] d, a, b, c.
void translate_hmma(Translation& t) {
  static constexpr NamedShape shapes[] = {{"16816", {16, 8, 16}}, {"1688", {16, 8, 8}}, {"1684", {16, 8, 4}}};
  RegisterProduct product;
  product.shape = take_shape(t, shapes);
  const Type d = t.take_one_of({"F16", "F32"}, 0) == 1 ? Type::F32 : Type::F16;
  const int input = t.take_one_of({"BF16", "TF32"});
  const Type a = input < 0 ? Type::F16 : input == 0 ? Type::BF16 : Type::TF32;
  product.types = {d, a, a, d};
  take_registers(t, product);
  emit_product(t, std::move(product));
}

/// IMMA.shape.type.type[.SAT] d, a, b, c.
void translate_imma(Translation& t) {
  static constexpr NamedShape shapes[] = {{"8816", {8, 8, 16}},
                                          {"16816", {16, 8, 16}},
                                          {"16832", {16, 8, 32}},
                                          {"8832", {8, 8, 32}},
                                          {"16864", {16, 8, 64}}};
  static constexpr Type types[] = {Type::U8, Type::S8, Type::U4, Type::S4};
  RegisterProduct product;
  product.shape = take_shape(t, shapes);
  const auto input = [&] {
    const int type = t.take_next_of({"U8", "S8", "U4", "S4"});
    if (type < 0) t.unsupported("a type is missing");
    return types[type];
  };
  const Type a = input(), b = input();
  product.types = {Type::S32, a, b, Type::S32};
  product.saturate = t.take("SAT");
  take_registers(t, product);
  emit_product(t, std::move(product));
}

/// BMMA.shape.AND.POPC|XOR.POPC d, a, b, c.
void translate_bmma(Translation& t) {
  static constexpr NamedShape shapes[] = {
      {"88128", {8, 8, 128}}, {"168128", {16, 8, 128}}, {"168256", {16, 8, 256}}};
  RegisterProduct product;
  product.shape = take_shape(t, shapes);
  product.exclusive = t.take_one_of({"AND", "XOR"}, 0) == 1;
  t.take("POPC");
  product.types = {Type::S32, Type::B1, Type::B1, Type::S32};
  take_registers(t, product);
  emit_product(t, std::move(product));
}

namespace {

/// Doubles are in two rows each in registers, and in one array for products.
void run_join(Context& c, const Op& op) {
  const uint32_t* a = row(c, op.a);
  auto* to = c.lanes<uint64_t>(op.destination);
  for (uint32_t i = 0; i < warp_lanes; ++i) to[i] = pair_at(a, i);
}
void run_split(Context& c, const Op& op) {
  const auto* a = c.lanes<const uint64_t>(op.a);
  map_pairs(c, op.destination, [=](uint32_t i) { return a[i]; });
}

std::vector<Place> joined(Translation& t, uint32_t index, uint32_t count) {
  const std::vector<Place> rows = sources(t, index, 2 * count);
  std::vector<Place> all;
  for (uint32_t k = 0; k < count; ++k) {
    all.push_back(t.scratch(2));
    Op& op = t.emit(run_join);
    op.destination = all.back();
    op.a = rows[2 * k];
  }
  return all;
}

}  // namespace

/// DMMA.shape[.rounding] d, a, b, c.
void translate_dmma(Translation& t) {
  static constexpr NamedShape shapes[] = {
      {"8x8x4", {8, 8, 4}}, {"16x8x4", {16, 8, 4}}, {"16x8x8", {16, 8, 8}}, {"16x8x16", {16, 8, 16}}};
  static constexpr int directions[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
  RegisterProduct product;
  product.shape = take_shape(t, shapes);
  product.types = {Type::F64, Type::F64, Type::F64, Type::F64};
  product.rounding = directions[t.take_one_of({"RN", "RZ", "RM", "RP"}, 0)];
  const MatrixShape& shape = product.shape;
  const uint32_t of_d = functional::accumulator_registers(Type::F64, shape);
  const Place to = t.destination(0, 2 * of_d);
  product.a = joined(t, 1, functional::tile_count(Type::F64, shape.m, shape.k));
  product.b = joined(t, 2, functional::tile_count(Type::F64, shape.n, shape.k));
  product.c = joined(t, 3, of_d);
  for (uint32_t k = 0; k < of_d; ++k) product.d.push_back(t.scratch(2));
  const std::vector<Place> results = product.d;
  emit_product(t, std::move(product));
  for (uint32_t k = 0; k < of_d; ++k) {
    Op& op = t.emit(run_split);
    op.destination = to + 2 * k * place::register_bytes;
    op.a = results[k];
  }
}

namespace {

/// LDSM.16.M88[.count] d, address; STSM.16.M88[.count] address, a. MT88: transposed.
void move_tiles(Translation& t, bool load) {
  TilesDetail d;
  t.take("16");
  const int form = t.take_one_of({"M88", "MT88"});
  if (form < 0) t.unsupported("this form");
  d.transposed = form == 1;
  d.count = 1u << t.take_one_of({"1", "2", "4"}, 0);
  d.space = functional::AccessSpace::Shared;
  const Address address = t.address(load ? 1 : 0);
  d.base = address.base;
  const Place first = load ? t.destination(0, d.count) : t.source(1, d.count);
  for (uint32_t k = 0; k < d.count; ++k) d.places[k] = first + k * place::register_bytes;
  Op& op = t.emit(load ? functional::load_tiles_handler() : functional::store_tiles_handler());
  functional::set_address(op, address);
  if (load) op.destination = first;
  t.detail<TilesDetail>() = d;
  t.accesses(TilesDetail::row_bytes);
}

}  // namespace

void translate_ldsm(Translation& t) {
  move_tiles(t, true);
}
void translate_stsm(Translation& t) {
  move_tiles(t, false);
}

/// MOVM.16.MT88 d, a: transposes a tile.
void translate_movm(Translation& t) {
  t.take("16");
  if (!t.take("MT88")) t.unsupported("this form");
  const Place to = t.destination(0), a = t.source(1);
  Op& op = t.emit(functional::transpose_tile_handler());
  op.destination = to;
  op.a = a;
}

}  // namespace simt::sass
