/// Tensor cores: HMMA, QMMA, IMMA, DMMA, BMMA, those of warpgroups, and moves of tiles: LDSM, STSM, MOVM.
/// Registers hold matrices as in PTX.
#include <algorithm>
#include <tuple>

#include "isa/tensor_shape.hpp"
#include "operations/group_product.hpp"
#include "operations/quad_pairs.hpp"
#include "operations/scaled_product.hpp"
#include "operations/tiles.hpp"
#include "sass/instructions.hpp"
#include "sass/pairs.hpp"
#include "sass/rows.hpp"

namespace simt::sass {

using functional::MatrixShape;
using functional::RegisterProduct;
using functional::TilesDetail;
using ptx::Type;

namespace {

MatrixShape take_shape(Translation& t, std::initializer_list<std::string_view> names) {
  const int which = t.take_one_of(names);
  if (which < 0) t.unsupported("this shape");
  const auto [m, n, k] = product_shape(names.begin()[which]);
  return {m, n, k};
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

/// Takes operands d, a, b, c whose elements have up to 32 bits; with .SP also metadata and selector, and A
/// has half its elements.
void take_registers(Translation& t, RegisterProduct& product) {
  const auto& [shape, types] = std::tie(product.shape, product.types);
  const bool sparse = t.take("SP");
  const uint32_t of_d = functional::accumulator_registers(types.d, shape),
                 of_c = functional::accumulator_registers(types.c, shape);
  product.d = rows_of(t.destination(0, of_d), of_d);
  product.a = sources(t, 1, functional::tile_count(types.a, shape.m, shape.k / (sparse ? 2 : 1)));
  product.b = sources(t, 2, functional::tile_count(types.b, shape.n, shape.k));
  product.c = sources(t, 3, of_c);
  if (!sparse) return;
  const int64_t selector = t.integer(5), selectors = functional::sparsity_selectors(types.a, shape.k);
  // ptxas makes machine code of some that PTX does not have.
  if (selector < 0 || selector >= selectors)
    t.unsupported("sparsity selector " + std::to_string(selector) + ", expected less than " +
                  std::to_string(selectors));
  product.sparsity = functional::sparsity_of(types.a, t.source(4), shape.k, static_cast<uint32_t>(selector));
}

/// Types of A and B with 4 to 8 bits.
std::pair<Type, Type> take_small_types(Translation& t) {
  static constexpr Type types[] = {Type::E4M3, Type::E5M2, Type::E3M2, Type::E2M3, Type::E2M1};
  const auto take = [&] { return t.take_next_of({"E4M3", "E5M2", "E3M2", "E2M3", "E2M1"}); };
  const int a = take(), b = take();
  if (a < 0 || b < 0) t.unsupported("a type is missing");
  return {types[a], types[b]};
}

/// Splits what says in which byte and thread the scale factors of A are, and those of B, as ptxas packs it.
void run_split_selection(Context& c, const Op& op) {
  struct Part {
    uint32_t shift, bits;
  };
  static constexpr Part parts[] = {{0, 2}, {2, 1}, {3, 2}, {5, 2}};
  const uint32_t* word = row(c, op.a);
  for (uint32_t k = 0; k < std::size(parts); ++k)
    map_words(c, op.destination + k * place::register_bytes,
              [=](uint32_t i) { return word[i] >> parts[k].shift & ((1u << parts[k].bits) - 1); });
}

/// QMMA.SF[.SP].16832.F32.type.type.E8, OMMA.SF[.SP].16864.F32.E2M1.E2M1.E8[.4X]|UE4M3.4X d, a, b, c, scale
/// factors of A and of B, UR. With .SP k is twice as large, metadata precede the scale factors of A in a pair
/// of registers, and the selector is the last operand.
void translate_scaled_product(Translation& t, bool packed) {
  functional::ScaledProductDetail p;
  const bool sparse = t.take("SP");
  const std::string_view shape = packed ? (sparse ? "168128" : "16864") : sparse ? "16864" : "16832";
  if (!t.take(shape) || !t.take("F32")) t.unsupported("its shape or type");
  std::tie(p.a, p.b) = take_small_types(t);
  const int factors = t.take_one_of({"E8", "UE4M3"});
  p.exponents_only = factors == 0;
  const bool four = t.take("4X");
  if (factors < 0 || (!four && !p.exponents_only) || (four && !packed)) t.unsupported("its scale factors");
  if (packed && (p.a != Type::E2M1 || p.b != Type::E2M1)) t.unsupported("its types");
  p.packed = packed;
  p.k = (packed ? 64 : 32) * (sparse ? 2 : 1);
  p.scales = four ? 4 : packed ? 2 : 1;
  p.addition = !packed             ? functional::ScaledAddition::Window
               : !p.exponents_only ? functional::ScaledAddition::FineGroups
                                   : functional::ScaledAddition::Groups;
  const auto keep = [](const std::vector<Place>& from, auto& to) {
    std::copy_n(from.begin(), to.size(), to.begin());
  };
  keep(rows_of(t.destination(0, 4), 4), p.d);
  keep(sources(t, 1, 4), p.a_tiles);
  std::ranges::copy(sources(t, 2, sparse ? 4 : 2), p.b_tiles.begin());
  keep(sources(t, 3, 4), p.c);
  const Place selection = t.source(6), split = t.scratch(4);
  Op& parts = t.emit(run_split_selection);
  parts.a = selection;
  parts.destination = split;
  const std::vector<Place> of_a = sources(t, 4, sparse ? 2 : 1);
  if (sparse) {
    p.metadata = of_a[0];
    if (t.integer(7) != 0) t.unsupported("a sparsity selector other than 0");
  }
  p.scale_a = {of_a.back(), split, split + place::register_bytes};
  p.scale_b = {t.source(5), split + 2 * place::register_bytes, split + 3 * place::register_bytes};
  t.emit(functional::run_scaled_product).destination = p.d[0];
  t.detail<functional::ScaledProductDetail>() = p;
}

/// HMMA.884.F32|F16.F32|F16.STEPn d, a, b, c: the n-th two registers of Volta's m8n8k4. Only f32 sums of f16
/// ones take the same registers of c for two steps.
void translate_quad_pairs(Translation& t) {
  const auto halves = [&] {
    const int type = t.take_next_of({"F32", "F16"});
    if (type < 0) t.unsupported("a type is missing");
    return type == 1;
  };
  functional::QuadPairProduct product;
  product.d_pairs = halves();
  product.c_pairs = halves();
  const int step = t.take_one_of({"STEP0", "STEP1", "STEP2", "STEP3"});
  if (step < 0 || (product.d_pairs && (step > 1 || !product.c_pairs))) t.unsupported("this step");
  const auto number = static_cast<uint32_t>(step);
  product.first_d = product.d_pairs ? 4 * number : 2 * number;
  product.first_c = product.c_pairs ? product.first_d / 4 * 4 : product.first_d;
  product.a_by_column = t.operand(1).has("COL");
  product.b_by_column = t.operand(2).has("COL");
  product.d = rows_of(t.destination(0, 2), 2);
  const auto a = sources(t, 1, 2), b = sources(t, 2, 2);
  std::copy_n(a.begin(), 2, product.a.begin());
  std::copy_n(b.begin(), 2, product.b.begin());
  product.c = sources(t, 3, 2);
  const Place to = product.d[0];
  functional::BoundProduct bound = functional::bind_quad_pairs(std::move(product));
  t.emit(bound.run).destination = to;
  t.take_detail(std::move(bound.detail));
}

}  // namespace

/// HMMA[.SP].shape.F32|F16[.BF16|.TF32] d, a, b, c [, metadata, selector].
void translate_hmma(Translation& t) {
  if (t.take("884")) return translate_quad_pairs(t);
  RegisterProduct product;
  product.shape = take_shape(t, {"16832", "16816", "1688", "1684"});
  const Type d = t.take_one_of({"F16", "F32"}, 0) == 1 ? Type::F32 : Type::F16;
  const int input = t.take_one_of({"BF16", "TF32"});
  const Type a = input < 0 ? Type::F16 : input == 0 ? Type::BF16 : Type::TF32;
  product.types = {d, a, a, d};
  take_registers(t, product);
  emit_product(t, std::move(product));
}

/// OMMA.SF
void translate_omma(Translation& t) {
  if (!t.take("SF")) t.unsupported("without scale factors");
  translate_scaled_product(t, true);
}

/// QMMA[.SP].shape.F32|F16.type.type d, a, b, c [, metadata, selector]; QMMA.SF.
void translate_qmma(Translation& t) {
  if (t.take("SF")) return translate_scaled_product(t, false);
  RegisterProduct product;
  product.shape = take_shape(t, {"16816", "16832", "16864"});
  const Type d = t.take_one_of({"F16", "F32"}, 0) == 1 ? Type::F32 : Type::F16;
  const auto [a, b] = take_small_types(t);
  product.types = {d, a, b, d};
  take_registers(t, product);
  emit_product(t, std::move(product));
}

/// IMMA[.SP].shape.type.type[.SAT] d, a, b, c [, metadata, selector].
void translate_imma(Translation& t) {
  static constexpr Type types[] = {Type::U8, Type::S8, Type::U4, Type::S4};
  RegisterProduct product;
  product.shape = take_shape(t, {"8816", "16816", "16832", "8832", "16864", "168128"});
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
  RegisterProduct product;
  product.shape = take_shape(t, {"88128", "168128", "168256"});
  product.exclusive = t.take_one_of({"AND", "XOR"}, 0) == 1;
  t.take("POPC");
  product.types = {Type::S32, Type::B1, Type::B1, Type::S32};
  take_registers(t, product);
  emit_product(t, std::move(product));
}

namespace {

struct NamedType {
  std::string_view name;
  Type type;
};

/// 64xNxK.
MatrixShape take_group_shape(Translation& t) {
  const auto [m, n, k] = product_shape(t.take_next());
  if (m == 0) t.unsupported("its shape is missing");
  return {m, n, k};
}

template <size_t count>
Type take_named(Translation& t, const NamedType (&types)[count], Type otherwise) {
  for (const NamedType& known : types)
    if (t.has(known.name) && t.take(known.name)) return known.type;
  return otherwise;
}

functional::ProductTypes take_group_types(Translation& t) {
  if (t.row().also.elements == Elements::Binary) {
    if (!t.take("AND") || !t.take("POPC")) t.unsupported("this operation");
    return {Type::S32, Type::B1, Type::B1, Type::S32};
  }
  if (t.row().also.elements == Elements::Integer8) {
    static constexpr Type types[] = {Type::S8, Type::U8};
    const int a = t.take_next_of({"S8", "U8"}), b = t.take_next_of({"S8", "U8"});
    if (a < 0 || b < 0) t.unsupported("a type is missing");
    return {Type::S32, types[a], types[b], Type::S32};
  }
  static constexpr NamedType results[] = {{"F32", Type::F32}, {"F16", Type::F16}};
  const Type d = take_named(t, results, Type::None);
  if (t.row().also.elements == Elements::Float8) {
    const auto [a, b] = take_small_types(t);
    return {d, a, b, d};
  }
  static constexpr NamedType inputs[] = {{"BF16", Type::BF16}, {"TF32", Type::TF32}};
  const Type a = take_named(t, inputs, Type::F16);
  return {d, a, a, d};
}

}  // namespace

/// HGMMA, QGMMA, IGMMA, BGMMA[.SP].shape.types d, [a,] gdesc[UR], c [, p] [, metadata [, selector]] [, gsb0]:
/// descriptors of A and B, or only of B in the second pair of the uniform registers; c is d, or RZ. Where p
/// does not hold, c is not added. gsb0 closes a group.
void translate_group_product(Translation& t) {
  functional::GroupProduct product;
  product.sparse = t.take("SP");
  product.shape = take_group_shape(t);
  product.types = take_group_types(t);
  product.saturate = t.take("SAT");
  if (const std::string why = functional::group_product_fault(product); !why.empty()) t.unsupported(why);
  const uint32_t count = functional::group_accumulators(product);
  uint32_t next = 1;
  bool negative = false;
  if (t.is(next, OperandKind::Register)) {
    negative = t.operand(next).negated;
    if (t.operand(next).is_zero()) t.unsupported("a matrix A of zeros");
    product.a = rows_of(t.source(next, 4), 4);
    ++next;
  }
  const Operand& descriptors = t.operand(next++);
  if (descriptors.descriptor == Operand::none) t.unsupported("its descriptors are missing");
  for (const std::string_view suffix : descriptors.suffixes) {
    if (suffix == "negA" || suffix == "negB")
      negative = !negative;
    else if (suffix == "tnspA")
      product.a_transposed = true;
    else if (suffix == "tnspB")
      product.b_transposed = true;
    else
      t.unsupported("the form ." + std::string(suffix) + " of its descriptors");
  }
  product.negative = negative;
  product.in_pairs = true;
  // URZ: both are 0, in the product that ptxas leaves of those whose results nothing reads.
  const bool none = descriptors.descriptor == Operand::zero;
  if (product.a.empty()) product.a_descriptor = t.uniform(descriptors.descriptor, 2);
  product.b_descriptor = t.uniform(descriptors.descriptor + (none ? 0 : 2), 2);
  const Operand& c = t.operand(next++);
  const bool adds = !c.is_zero();
  if (c.kind != OperandKind::Register || (adds && c.index != t.operand(0).index))
    t.unsupported("an accumulator other than its destination");
  if (adds) t.source(next - 1, count);
  product.d = rows_of(t.destination(0, count), count);
  product.keep = {t.constant({adds ? functional::full_mask : 0u}), false};
  if (t.is_predicate(next)) {
    const PredicateOperand keep = t.predicate(next++);
    if (adds) product.keep = keep;
  }
  if (product.sparse) {
    const Type a = product.types.a;
    const Place metadata = t.source(next++);
    const int64_t selectors = functional::sparsity_selectors(a, product.shape.k),
                  selector = selectors > 1 ? t.integer(next++) : 0;
    if (selector < 0 || selector >= selectors)
      t.unsupported("sparsity selector " + std::to_string(selector) + ", expected less than " +
                    std::to_string(selectors));
    product.sparsity = functional::sparsity_of(a, metadata, product.shape.k, static_cast<uint32_t>(selector));
  }
  if (next < t.operand_count()) {
    if (t.operand(next).text != "gsb0") t.unsupported("a further operand");
    t.timed().commits_group = true;
  }
  const Place first = product.d[0], a_at = product.a_descriptor, b_at = product.b_descriptor;
  functional::BoundGroupProduct bound = functional::bind_group_product(std::move(product));
  Op& op = t.emit(bound.run, Control::Collective);
  op.destination = first;
  op.a = a_at;
  op.b = b_at;
  t.take_detail(std::move(bound.detail));
}

/// WARPGROUP.ARRIVE: nothing, since products take effect at once. WARPGROUP.DEPBAR.LE gsb0, count: waits
/// until at most so many groups are not complete.
void translate_warpgroup(Translation& t) {
  if (t.take("ARRIVE")) {
    t.emit([](Context&, const Op&) {});
    return;
  }
  if (!t.take("DEPBAR") || !t.take("LE") || t.operand(0).text != "gsb0") t.unsupported("this form");
  t.timed().immediate = t.integer(1);
  t.emit(functional::wait_for_warpgroup, Control::Barrier);
}

namespace {

/// Sources of f64.
std::vector<Place> doubles(Translation& t, uint32_t index, uint32_t count) {
  const std::vector<Place> rows = sources(t, index, 2 * count);
  std::vector<Place> all;
  for (uint32_t k = 0; k < count; ++k) all.push_back(joined(t, rows[2 * k]));
  return all;
}

}  // namespace

/// DMMA.shape[.rounding] d, a, b, c.
void translate_dmma(Translation& t) {
  // sm_80 to sm_89 have but one, as 884.
  static constexpr int directions[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
  RegisterProduct product;
  product.shape = take_shape(t, {"884", "8x8x4", "16x8x4", "16x8x8", "16x8x16"});
  product.types = {Type::F64, Type::F64, Type::F64, Type::F64};
  product.rounding = directions[t.take_one_of({"RN", "RZ", "RM", "RP"}, 0)];
  const MatrixShape& shape = product.shape;
  const uint32_t of_d = functional::accumulator_registers(Type::F64, shape);
  const Place to = t.destination(0, 2 * of_d);
  product.a = doubles(t, 1, functional::tile_count(Type::F64, shape.m, shape.k));
  product.b = doubles(t, 2, functional::tile_count(Type::F64, shape.n, shape.k));
  product.c = doubles(t, 3, of_d);
  for (uint32_t k = 0; k < of_d; ++k) product.d.push_back(t.scratch(2));
  const std::vector<Place> results = product.d;
  emit_product(t, std::move(product));
  for (uint32_t k = 0; k < of_d; ++k) split(t, to + 2 * k * place::register_bytes, results[k]);
}

namespace {

/// LDSM.16.M88[.count] d, address; STSM.16.M88[.count] address, a. MT88: transposed. From sm_100 on, M816,
/// MT1616 and MT168 of bytes, to which LDSM may widen elements of 6 or 4 bits.
void move_tiles(Translation& t, bool load) {
  TilesDetail d;
  const int type = t.take_one_of({"16", "8", "U6x16P32TO8", "U4x16P64TO8"}, 0);
  const int form = t.take_one_of({"M88", "MT88", "M816", "MT1616", "MT168"});
  const bool known = type == 0 ? form == 0 || form == 1
                     : load    ? form == 3 || (form == 2 && type > 1)
                               : form == 4 && type == 1;
  if (!known) t.unsupported("this form");
  if (type > 1) d.unpack = type == 2 ? TilesDetail::Unpack::Six : TilesDetail::Unpack::Four;
  d.transposed = form == 1 || form > 2;
  d.of_bytes = form > 2;
  d.paired = form == 3;
  d.count = (d.paired ? 2u : 1u) << t.take_one_of({"1", "2", "4"}, 0);
  d.space = functional::AccessSpace::Shared;
  const Address address = t.own_address(load ? 1 : 0);
  d.base = address.base;
  const Place first = load ? t.destination(0, d.count) : t.source(1, d.count);
  for (uint32_t k = 0; k < d.count; ++k) d.places[k] = first + k * place::register_bytes;
  Op& op = t.emit(load ? functional::run_load_tiles : functional::run_store_tiles);
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

namespace {

/// The lanes of a row hold its 32 elements of 4 bits in order, 8 each; as bytes, 4 each of either half.
void run_widen_tile(Context& c, const Op& op) {
  functional::need_whole_warp(c);
  constexpr uint32_t row_lanes = 4, half_elements = 16;
  const uint32_t* a = row(c, op.a);
  std::array<std::array<uint32_t, warp_lanes>, 2> halves{};
  for (uint32_t half = 0; half < 2; ++half)
    for (uint32_t i = 0; i < warp_lanes; ++i)
      for (uint32_t k = 0; k < 4; ++k) {
        const uint32_t element = half * half_elements + i % row_lanes * 4 + k;
        const uint32_t from = i / row_lanes * row_lanes + element / 8;
        halves[half][i] |= (a[from] >> 4 * (element % 8) & 15) << 8 * k;
      }
  std::memcpy(c.lanes<uint32_t>(op.destination), halves.data(), sizeof halves);
}

}  // namespace

/// MOVM.16.MT88 d, a: transposes a tile. MOVM.U4TO8.M832 d, a: widens a tile's elements.
void translate_movm(Translation& t) {
  t.take("16");
  const bool widens = t.take("U4TO8");
  if (!t.take(widens ? "M832" : "MT88")) t.unsupported("this form");
  const Place to = t.destination(0, widens ? 2 : 1), a = t.source(1);
  Op& op = t.emit(widens ? run_widen_tile : functional::run_transpose_tile);
  op.destination = to;
  op.a = a;
}

}  // namespace simt::sass
