/// ldmatrix, stmatrix, movmatrix: move tiles of 8 x 8 16-bit elements between shared memory and registers,
/// and transpose them.
#include "functional/fragments.hpp"
#include "functional/instructions.hpp"
#include "functional/tiles.hpp"

namespace simt::functional {
namespace {

using ptx::Type;

constexpr uint32_t row_bytes = TilesDetail::row_bytes;

/// An 8 x 8 tile: 32 lanes of two elements, or 8 rows of eight.
using Tile = std::array<uint16_t, 64>;

Tile transposed(const Tile& tile) {
  Tile result;
  for (uint32_t i = 0; i < tile_rows; ++i)
    for (uint32_t j = 0; j < tile_rows; ++j) result[j * tile_rows + i] = tile[i * tile_rows + j];
  return result;
}

/// Host addresses of the tiles' rows, given by the first 8 * count lanes.
void row_addresses(Context& c, const Op& op, std::byte** rows) {
  need_whole_warp(c);
  const auto& d = op.details<TilesDetail>();
  alignas(64) uint64_t address[warp_lanes];
  lane_addresses(c, op, d.base, address);
  const uint32_t lanes = d.count * tile_rows, all = c.mask;
  c.mask = lanes == warp_lanes ? full_mask : (1u << lanes) - 1;
  record_access(c, d.space, address);
  check_alignment(c, address, row_bytes);
  uint64_t most = 0;
  for (uint32_t i = 0; i < lanes; ++i) most = std::max(most, address[i]);
  if (d.space == AccessSpace::Shared && most <= window::own_shared &&
      most + row_bytes <= c.cta->shared_bytes())
    for (uint32_t i = 0; i < lanes; ++i) rows[i] = c.cta->shared() + address[i];
  else
    for (uint32_t i = 0; i < lanes; ++i)
      rows[i] = host_address(c, d.space, address[i], row_bytes, static_cast<int>(i));
  c.mask = all;
}

void run_ldmatrix(Context& c, const Op& op) {
  const auto& d = op.details<TilesDetail>();
  std::byte* rows[warp_lanes];
  row_addresses(c, op, rows);
  for (uint32_t t = 0; t < d.count; ++t) {
    Tile tile;
    for (uint32_t i = 0; i < tile_rows; ++i)
      std::memcpy(tile.data() + i * tile_rows, rows[t * tile_rows + i], row_bytes);
    if (d.transposed) tile = transposed(tile);
    std::memcpy(c.lanes<uint32_t>(d.places[t]), tile.data(), sizeof tile);
  }
}

void run_stmatrix(Context& c, const Op& op) {
  const auto& d = op.details<TilesDetail>();
  std::byte* rows[warp_lanes];
  row_addresses(c, op, rows);
  for (uint32_t t = 0; t < d.count; ++t) {
    Tile tile;
    std::memcpy(tile.data(), c.lanes<const uint32_t>(d.places[t]), sizeof tile);
    if (d.transposed) tile = transposed(tile);
    for (uint32_t i = 0; i < tile_rows; ++i)
      std::memcpy(rows[t * tile_rows + i], tile.data() + i * tile_rows, row_bytes);
  }
}

void run_movmatrix(Context& c, const Op& op) {
  need_whole_warp(c);
  Tile tile;
  std::memcpy(tile.data(), c.lanes<const uint32_t>(op.a), sizeof tile);
  tile = transposed(tile);
  std::memcpy(c.lanes<uint32_t>(op.destination), tile.data(), sizeof tile);
}

/// The only shape and type of sm_75 to sm_90.
void take_tile(Translation& t) {
  t.take("sync");
  t.take("aligned");
  if (!t.take("m8n8")) t.unsupported("`.m8n8` is the only shape that is supported");
}

template <bool load>
void translate_tiles(Translation& t) {
  take_tile(t);
  if (t.take_type() != Type::B16) t.unsupported("`.b16` is the only type that is supported");
  TilesDetail d;
  const int count = t.take_one_of({"x1", "x2", "x4"});
  if (count < 0) t.unsupported("the number of matrices is missing");
  d.count = 1u << count;
  d.transposed = t.take("trans");
  d.space = take_space(t);
  if (d.space != AccessSpace::Shared && d.space != AccessSpace::Generic)
    t.unsupported("shared memory is expected");
  const Address address = t.address(t.operand(load ? 1 : 0));
  d.base = address.base;
  const auto places =
      load ? take_destinations(t, 0, Type::B32, d.count) : take_registers(t, 1, Type::B32, d.count);
  std::copy(places.begin(), places.end(), d.places.begin());
  Op& op = t.emit(load ? run_ldmatrix : run_stmatrix, Control::Collective);
  set_address(op, address);
  if (load) op.destination = d.places[0];
  t.detail<TilesDetail>() = d;
}

}  // namespace

Handler load_tiles_handler() {
  return run_ldmatrix;
}
Handler store_tiles_handler() {
  return run_stmatrix;
}
Handler transpose_tile_handler() {
  return run_movmatrix;
}

void translate_movmatrix(Translation& t) {
  take_tile(t);
  if (!t.take("trans") || t.take_type() != Type::B16) t.unsupported("`.trans.b16` is expected");
  const Place d = t.destination(0, Type::B32), a = t.source(1, Type::B32);
  Op& op = t.emit(run_movmatrix, Control::Collective);
  op.destination = d;
  op.a = a;
}

void translate_ldmatrix(Translation& t) {
  translate_tiles<true>(t);
}
void translate_stmatrix(Translation& t) {
  translate_tiles<false>(t);
}

}  // namespace simt::functional
