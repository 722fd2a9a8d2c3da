#include "operations/tiles.hpp"

#include <algorithm>
#include <cstring>

#include "machine/cta.hpp"
#include "operations/fragments.hpp"

namespace simt::functional {
namespace {

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

}  // namespace

void run_load_tiles(Context& c, const Op& op) {
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

void run_store_tiles(Context& c, const Op& op) {
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

void run_transpose_tile(Context& c, const Op& op) {
  need_whole_warp(c);
  Tile tile;
  std::memcpy(tile.data(), c.lanes<const uint32_t>(op.a), sizeof tile);
  tile = transposed(tile);
  std::memcpy(c.lanes<uint32_t>(op.destination), tile.data(), sizeof tile);
}

}  // namespace simt::functional
