/// wmma.load, wmma.mma, wmma.store. Fragments have the layout of mma.sync with the same types
/// (fragments.hpp), whatever layout they are loaded from; PTX leaves the layout undefined.
#include "machine/access.hpp"
#include "operations/matrix_product.hpp"
#include "ptx/translation/instructions.hpp"
#include "ptx/translation/matrix_operands.hpp"
#include "ptx/translation/operands.hpp"

namespace simt::functional {
namespace {

using ptx::Type;

/// PTX gives A and B of f16 eight registers in every shape; unneeded ones are copies.
constexpr uint32_t half_registers = 8;

void check(Translation& t, const MatrixShape& shape, Type type) {
  switch (type) {
    case Type::F16:
    case Type::BF16:
    case Type::S8:
    case Type::U8:
      return expect_shape(t, shape, {{16, 16, 16}, {32, 8, 16}, {8, 32, 16}});
    case Type::TF32:
      return expect_shape(t, shape, {{16, 16, 8}});
    case Type::F64:
      return expect_shape(t, shape, {{8, 8, 4}});
    case Type::S4:
    case Type::U4:
      return expect_shape(t, shape, {{8, 8, 32}});
    case Type::B1:
      return expect_shape(t, shape, {{8, 8, 128}});
    default:
      t.unsupported("no such type of A and B");
  }
}

enum class Part : uint8_t { A, B, Accumulator };

struct FragmentDetail : Detail {
  Address::Base base = Address::Base::Wide;
  AccessSpace space = AccessSpace::Generic;
  Part part = Part::A;
  uint32_t bits = 16;      ///< of an element
  uint32_t width = 8;      ///< elements in a row of a tile
  bool along_rows = true;  ///< neighbours in memory are in one row of a tile (for B: of its transpose)
  uint32_t rows = 0, columns = 0;  ///< in tiles; for B, of its transpose
  Place stride = place::none;      ///< elements; none if the matrix is dense
  std::vector<Place> places;
};

/// A matrix in memory, seen in tiles.
class Lines {
 public:
  Lines(Context& c, const Op& op, const FragmentDetail& d) : c_(c), d_(d) {
    alignas(64) uint64_t address[warp_lanes];
    lane_addresses(c, op, d.base, address);
    const int lane = c.first_lane();
    base_ = address[lane];
    stride_ = d.stride != place::none ? c.lanes<const uint32_t>(d.stride)[lane]
              : d.along_rows          ? d.columns * d.width
                                      : d.rows * tile_rows;
    if (c.record) {
      // The first element of each lane.
      const uint32_t per_lane = std::max(1u, d.width / 4);
      for (uint32_t i = 0; i < warp_lanes; ++i) {
        const uint64_t row = i / 4, column = i % 4 * per_lane;
        address[i] = base_ + (d.along_rows ? offset(row, column) : offset(column, row));
      }
      record_access(c, d.space, address);
    }
    const uint32_t bytes = std::max(1u, d.bits / 8);
    if (base_ % bytes) misaligned(base_, bytes, lane);
  }

  /// Host address of `count` elements of a line, starting at `first`.
  std::byte* at(uint64_t line, uint64_t first, uint32_t count) {
    if (c_.observer)
      c_.observer->touches(c_, generic_address(d_.space, base_ + offset(line, first)), count * d_.bits / 8,
                           c_.first_lane(), false);
    return host_address(c_, d_.space, base_ + offset(line, first), count * d_.bits / 8, c_.first_lane());
  }

 private:
  uint64_t offset(uint64_t line, uint64_t element) const { return (line * stride_ + element) * d_.bits / 8; }

  Context& c_;
  const FragmentDetail& d_;
  uint64_t base_ = 0, stride_ = 0;
};

/// Calls visit(host address, tile, row, column, count) for each run of `count` contiguous elements in memory.
/// In the tile, the run begins at (row, column) and extends along a row or a column, as along_rows says.
template <class Visit>
void visit_lines(Context& c, const Op& op, Visit visit) {
  const auto& d = op.details<FragmentDetail>();
  Lines lines(c, op, d);
  const uint32_t width = d.width;
  for (uint32_t row = 0; row < d.rows; ++row) {
    for (uint32_t column = 0; column < d.columns; ++column) {
      const uint32_t tile =
          d.part == Part::B ? row * d.columns + column : band_tile(d.rows, d.columns, row, column);
      if (d.along_rows)
        for (uint32_t i = 0; i < tile_rows; ++i)
          visit(lines.at(row * tile_rows + i, column * width, width), tile, i, 0u, width);
      else
        for (uint32_t i = 0; i < width; ++i)
          visit(lines.at(column * width + i, row * tile_rows, tile_rows), tile, 0u, i, tile_rows);
    }
  }
}

/// Address of an element of a tile: A, B and f16 accumulators row by row; other accumulators in two planes.
template <class T>
T* element(const Context& c, const FragmentDetail& d, uint32_t tile, uint32_t row, uint32_t column) {
  if (d.part == Part::Accumulator && sizeof(T) > 2)
    return c.lanes<T>(d.places[2 * tile + column % 2]) + row * 4 + column / 2;
  return c.lanes<T>(d.places[tile]) + row * d.width + column;
}

template <class T>
void run_wmma_load(Context& c, const Op& op) {
  need_whole_warp(c);
  const auto& d = op.details<FragmentDetail>();
  visit_lines(
      c, op, [&](const std::byte* from, uint32_t tile, uint32_t row, uint32_t column, uint32_t count) {
        for (uint32_t i = 0; i < count; ++i)
          std::memcpy(
              element<T>(c, d, tile, d.along_rows ? row : row + i, d.along_rows ? column + i : column),
              from + i * sizeof(T), sizeof(T));
      });
  const size_t tiles = d.rows * d.columns;
  if (d.part == Part::Accumulator) return;
  for (size_t i = tiles; i < d.places.size(); ++i)
    std::memcpy(c.lanes<std::byte>(d.places[i]), c.lanes<std::byte>(d.places[i % tiles]),
                place::register_bytes);
}

/// For types below a byte: whole rows of tiles.
void run_wmma_load_packed(Context& c, const Op& op) {
  need_whole_warp(c);
  const auto& d = op.details<FragmentDetail>();
  visit_lines(c, op, [&](const std::byte* from, uint32_t tile, uint32_t row, uint32_t, uint32_t) {
    std::memcpy(c.lanes<uint32_t>(d.places[tile]) + row * 4, from, 16);
  });
}

template <class T>
void run_wmma_store(Context& c, const Op& op) {
  need_whole_warp(c);
  const auto& d = op.details<FragmentDetail>();
  visit_lines(c, op, [&](std::byte* to, uint32_t tile, uint32_t row, uint32_t column, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i)
      std::memcpy(to + i * sizeof(T),
                  element<T>(c, d, tile, d.along_rows ? row : row + i, d.along_rows ? column + i : column),
                  sizeof(T));
  });
}

template <bool load>
Handler handler_for(Type type) {
  switch (element_bits(type)) {
    case 8:
      return load ? run_wmma_load<uint8_t> : run_wmma_store<uint8_t>;
    case 16:
      return load ? run_wmma_load<uint16_t> : run_wmma_store<uint16_t>;
    case 32:
      return load ? run_wmma_load<uint32_t> : run_wmma_store<uint32_t>;
    case 64:
      return load ? run_wmma_load<uint64_t> : run_wmma_store<uint64_t>;
    default:
      return run_wmma_load_packed;
  }
}

template <bool load>
void translate_access(Translation& t) {
  FragmentDetail d;
  const int part = load ? t.take_one_of({"a", "b", "c"}) : t.take("d") ? 2 : -1;
  if (part < 0) t.unsupported("the matrix modifier (.a, .b, .c or .d) is missing");
  d.part = static_cast<Part>(part);
  const int layout = t.take_one_of({"row", "col"});
  if (layout < 0) t.unsupported("the layout is missing");
  const MatrixShape shape = take_shape(t);
  d.space = take_space(t);
  if (d.space == AccessSpace::Local) t.unsupported("local memory");
  const Type type = t.take_type();
  d.bits = element_bits(type);
  uint32_t registers = 0;
  if (d.part == Part::Accumulator) {
    expect_type(t, type, {Type::F16, Type::F32, Type::F64, Type::S32});
    d.width = tile_rows;
    d.rows = shape.m / tile_rows;
    d.columns = shape.n / tile_rows;
    registers = accumulator_registers(type, shape);
  } else {
    check(t, shape, type);
    d.rows = (d.part == Part::A ? shape.m : shape.n) / tile_rows;
    d.width = tile_columns(type);
    d.columns = shape.k / d.width;
    registers = type == Type::F16 ? half_registers : d.rows * d.columns;
  }
  d.along_rows = (layout == 0) == (d.part != Part::B);
  if (d.bits < 8 && !d.along_rows) t.unsupported("A by rows and B by columns are expected");
  const Address address = t.address(t.operand(load ? 1 : 0));
  d.base = address.base;
  d.places = load ? take_destinations(t, 0, fragment_register(type), registers)
                  : take_registers(t, 1, fragment_register(type), registers);
  if (t.operand_count() > 2) d.stride = t.source(2, Type::B32);
  Op& op = t.emit(handler_for<load>(type), Control::Collective);
  set_address(op, address);
  if (load) op.destination = d.places[0];
  t.detail<FragmentDetail>() = std::move(d);
}

void translate_product(Translation& t) {
  // Registers hold the same fragments whatever their layout in memory.
  const Layouts layouts = take_layouts(t);
  const MatrixShape shape = take_shape(t);
  const bool saturate = t.take("satfinite");
  ProductTypes types{t.take_type(), Type::F16, Type::F16, t.take_type()};
  if (const auto next = t.take_type_if_any()) {
    types.a = types.c;
    types.b = *next;
    types.c = t.take_type();
  }
  check(t, shape, types.a);
  switch (types.a) {
    case Type::F16:
      expect_type(t, types.d, {Type::F16, Type::F32});
      expect_type(t, types.c, {Type::F16, Type::F32});
      break;
    case Type::BF16:
    case Type::TF32:
      expect_type(t, types.d, {Type::F32});
      expect_type(t, types.c, {Type::F32});
      break;
    case Type::F64:
      expect_type(t, types.d, {Type::F64});
      expect_type(t, types.c, {Type::F64});
      break;
    default:
      expect_type(t, types.d, {Type::S32});
      expect_type(t, types.c, {Type::S32});
      if (element_bits(types.a) < 8 && (layouts.a_by_column || !layouts.b_by_column))
        t.unsupported("A by rows and B by columns are expected");
  }
  expect_type(t, types.b, {types.a});
  if (types.a == Type::B1) return emit_bit_product(t, shape);
  if (saturate && types.a != Type::F16 && types.d != Type::S32)
    t.unsupported("`.satfinite` is for f16 and integers");
  const uint32_t registers = types.a == Type::F16 ? half_registers : 0;
  // Every generation multiplies with HMMA.1684.
  const uint32_t step = types.a == Type::TF32 ? 4 : UINT32_MAX;
  emit_product(t, shape, types, saturate, {.registers_a = registers, .registers_b = registers, .step = step});
}

void take_step(Translation& t, std::string_view step) {
  t.take(step);
  t.take("sync");
  t.take("aligned");
}

}  // namespace

void translate_wmma_load(Translation& t) {
  take_step(t, "load");
  translate_access<true>(t);
}
void translate_wmma_store(Translation& t) {
  take_step(t, "store");
  translate_access<false>(t);
}
void translate_wmma_mma(Translation& t) {
  take_step(t, "mma");
  translate_product(t);
}

}  // namespace simt::functional
