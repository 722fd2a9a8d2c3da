#pragma once
#include <array>

#include "functional/access.hpp"

/// Moves of 8 x 8 tiles of 16-bit elements between shared memory and registers, for PTX and machine code.
namespace simt::functional {

struct TilesDetail : Detail {
  static constexpr uint32_t max_tiles = 4;
  static constexpr uint32_t row_bytes = 16;

  Address::Base base = Address::Base::Wide;
  AccessSpace space = AccessSpace::Generic;
  bool transposed = false;
  uint32_t count = 1;
  std::array<Place, max_tiles> places{};
};

/// They need a TilesDetail.
Handler load_tiles_handler();
Handler store_tiles_handler();
/// Op::destination = the transpose of the tile at Op::a.
Handler transpose_tile_handler();

}  // namespace simt::functional
