#pragma once
#include <array>
#include <string_view>

#include "machine/address.hpp"
#include "operations/tensor_map.hpp"

/// Bulk copies through tensor maps, for PTX and machine code.
namespace simt::functional {

struct TensorCopy : Detail {
  enum class Move : uint8_t { Load, Store, Reduce, Prefetch };

  Move move = Move::Load;
  TensorMap::Pixels pixels = TensorMap::Pixels::None;
  bool multicast = false;
  bool four_rows = false;  ///< gather4, scatter4: coordinates are a column, and four rows
  bool pair = false;       ///< cta_group::2: a copy to several CTAs signals those of the mbarrier's parity
  uint32_t rank = 0;
  Address shared, map, mbarrier;
  std::array<Place, 5> coordinates{};
  /// Of im2col, with none for zero; or of ::w and ::w::128 the halo and the offset along W.
  std::array<Place, 3> offsets{place::none, place::none, place::none};
  Place cta_mask = place::none;
  /// Instead of these, in machine code: offsets in the low half, which they share evenly, and the CTA mask.
  Place packed = place::none;
  std::string_view operation;  ///< for reductions
};

Handler tensor_copy_handler();

}  // namespace simt::functional
