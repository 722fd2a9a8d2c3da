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
  const uint32_t lanes = d.rows(), all = c.mask;
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

/// 16 elements, packed at the beginning of a row, to the lower bits of a byte each.
void unpack(const TilesDetail& d, const std::byte* row, uint8_t* out) {
  if (d.unpack == TilesDetail::Unpack::None) {
    std::memcpy(out, row, row_bytes);
    return;
  }
  const uint32_t bits = d.bits();
  for (uint32_t i = 0; i < row_bytes; ++i) {
    uint16_t two;
    std::memcpy(&two, row + i * bits / 8, sizeof two);
    out[i] = static_cast<uint8_t>(two >> i * bits % 8 & ((1u << bits) - 1));
  }
}

void load_bytes(Context& c, const TilesDetail& d, std::byte* const* rows) {
  uint8_t registers[TilesDetail::max_tiles][warp_lanes * 4];
  for (uint32_t i = 0; i < d.rows(); ++i) {
    uint8_t row[row_bytes];
    unpack(d, rows[i], row);
    for (uint32_t k = 0; k < row_bytes; ++k) {
      const TilesDetail::Spot s = d.spot(i, k);
      registers[s.tile][4 * s.lane + s.byte] = row[k];
    }
  }
  for (uint32_t t = 0; t < d.count; ++t)
    std::memcpy(c.lanes<uint32_t>(d.places[t]), registers[t], sizeof registers[t]);
}

void store_bytes(Context& c, const TilesDetail& d, std::byte* const* rows) {
  for (uint32_t i = 0; i < d.rows(); ++i)
    for (uint32_t k = 0; k < row_bytes; ++k) {
      const TilesDetail::Spot s = d.spot(i, k);
      rows[i][k] = c.lanes<const std::byte>(d.places[s.tile])[4 * s.lane + s.byte];
    }
}

}  // namespace

void run_load_tiles(Context& c, const Op& op) {
  const auto& d = op.details<TilesDetail>();
  std::byte* rows[warp_lanes];
  row_addresses(c, op, rows);
  if (d.of_bytes || d.unpack != TilesDetail::Unpack::None) {
    load_bytes(c, d, rows);
    return;
  }
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
  if (d.of_bytes) {
    store_bytes(c, d, rows);
    return;
  }
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
