#pragma once
#include <array>

#include "machine/access.hpp"

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

/// Between the rows whose addresses the first 8 lanes of each tile have and TilesDetail::places. They need a
/// TilesDetail.
void run_load_tiles(Context& c, const Op& op);
void run_store_tiles(Context& c, const Op& op);
/// Op::destination = the transpose of the tile at Op::a.
void run_transpose_tile(Context& c, const Op& op);

}  // namespace simt::functional
