#include <bit>

#include "timing/memory/hash.hpp"
#include "timing/memory/hashes/ipoly.hpp"

namespace simt {
namespace {

constexpr uint32_t page_bit = 12;

/// The bit of the slice's number that comes from the page's lowest becomes the highest one, by which slices
/// belong to the halves of the L2.
uint32_t slice_of_die(const SliceCount& n, const SliceAddress& a) {
  const uint32_t hashed = ipoly_hash(a.high, a.channel * n.slices_per_channel + a.low, n.slices);
  const uint32_t bits = static_cast<uint32_t>(std::bit_width(n.slices) - 1);
  if (page_bit < n.slice_shift || page_bit - n.slice_shift >= bits) return hashed;
  const uint32_t bit = page_bit - n.slice_shift;
  const uint32_t below = hashed & ((1u << bit) - 1), above = hashed >> (bit + 1);
  return below | above << bit | (hashed >> bit & 1) << (bits - 1);
}

const Registered<SliceHash> ipoly_dies_slices{
    {{"ipoly_dies", "ipoly, with an L2 whose two halves have pages of 4 KiB in turn.", "simt"},
     slice_of_die,
     /*power_of_two_channels=*/true,
     /*exact_slices=*/0,
     most_ipoly,
     /*linear=*/true}};

}  // namespace
}  // namespace simt
