#pragma once
#include <array>

#include "machine/access.hpp"

/// Moves of tiles between shared memory and registers, for PTX and machine code: of 8 rows of 16 bytes, which
/// are eight 16-bit elements, or sixteen of 8 bits.
namespace simt::functional {

struct TilesDetail : Detail {
  static constexpr uint32_t max_tiles = 4;
  static constexpr uint32_t row_bytes = 16;

  /// How elements in shared memory become bytes: those of 4 and 6 bits lie packed at the beginning of a row.
  enum class Unpack : uint8_t { None, Four, Six };
  /// A byte of the tiles in registers.
  struct Spot {
    uint32_t tile, lane, byte;
  };

  Address::Base base = Address::Base::Wide;
  AccessSpace space = AccessSpace::Generic;
  bool transposed = false;
  bool of_bytes = false;  ///< if transposed: elements have 8 bits
  bool paired = false;    ///< of bytes: two registers hold a tile of 16 rows
  Unpack unpack = Unpack::None;
  uint32_t count = 1;  ///< registers, and groups of 8 rows
  std::array<Place, max_tiles> places{};

  uint32_t rows() const { return 8 * count; }
  uint32_t bits() const { return unpack == Unpack::Six ? 6 : unpack == Unpack::Four ? 4 : 8; }
  /// The bytes of a row in shared memory, a bit each, that make a byte of it in registers.
  uint32_t sources(uint32_t byte) const {
    return 1u << byte * bits() / 8 | 1u << (byte * bits() + bits() - 1) / 8;
  }
  /// Where a byte is of the row whose address this lane gives. Transposed bytes are where CUTLASS's layouts
  /// (copy_traits_sm100) have them.
  Spot spot(uint32_t row, uint32_t byte) const {
    if (!transposed) return {row / 8, row % 8 * 4 + byte / 4, byte % 4};
    if (!of_bytes) return {row / 8, byte / 2 * 4 + row % 8 / 2, row % 2 * 2 + byte % 2};
    const uint32_t tile = paired ? row / 16 * 2 + row / 2 % 2 : row / 8, column = byte % 8 * 4;
    return {tile, column + (paired ? row % 16 / 4 : row % 8 / 2), row % 2 + byte / 8 * 2};
  }
};

/// Between the rows whose addresses the first 8 lanes of each tile have and TilesDetail::places. They need a
/// TilesDetail.
void run_load_tiles(Context& c, const Op& op);
void run_store_tiles(Context& c, const Op& op);
/// Op::destination = the transpose of the tile at Op::a.
void run_transpose_tile(Context& c, const Op& op);

}  // namespace simt::functional
