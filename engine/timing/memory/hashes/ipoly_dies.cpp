#include <bit>

#include "timing/memory/hash.hpp"
#include "timing/memory/hashes/bit_mask.hpp"
#include "timing/memory/hashes/ipoly.hpp"

namespace simt {
namespace {

constexpr uint32_t page_bit = 12;
constexpr uint32_t large_page_bit = 21;
/// Of an address within 2 MiB; their parity chooses the die.
constexpr uint64_t die_bits = bit_mask({12, 13, 14, 15, 17, 18, 19, 20});

/// The bit of the slice's number that is the address's at `page_bit` is left out, and the die becomes the
/// highest one, by which slices belong to the halves of the L2. Pages of 2 MiB begin on either.
uint32_t slice_of_die(const SliceCount& n, const SliceAddress& a) {
  const uint32_t hashed = ipoly_hash(a.high, a.channel * n.slices_per_channel + a.low, n.slices);
  const uint32_t bits = static_cast<uint32_t>(std::bit_width(n.slices) - 1);
  if (page_bit < n.slice_shift || page_bit - n.slice_shift >= bits) return hashed;
  const uint32_t bit = page_bit - n.slice_shift;
  const uint32_t below = hashed & ((1u << bit) - 1), above = hashed >> (bit + 1);
  const uint32_t large_page = ipoly_hash(a.whole >> large_page_bit, 0, n.slices) >> bit & 1;
  const uint32_t die = (static_cast<uint32_t>(std::popcount(a.whole & die_bits)) & 1) ^ large_page;
  return below | above << bit | die << (bits - 1);
}

const Registered<SliceHash> ipoly_dies_slices{
    {{"ipoly_dies", "ipoly, with an L2 whose two halves have pages of 4 KiB as the dies of a B200.", "simt"},
     slice_of_die,
     /*power_of_two_channels=*/true,
     /*exact_slices=*/0,
     most_ipoly,
     /*linear=*/true}};

}  // namespace
}  // namespace simt
