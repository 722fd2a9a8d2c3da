#include "timing/memory/hash.hpp"
#include "timing/memory/hashes/ipoly.hpp"

namespace simt {
namespace {

uint32_t skewed_slice(const SliceCount& n, const SliceAddress& a) {
  const uint32_t two = a.channel / n.odd;  // the power-of-two part of the channel number
  const uint32_t hashed = ipoly_hash(a.high, two * n.slices_per_channel + a.low, n.slices / n.odd);
  // Skewed storage: each block of all slices starts at a different one, by multiples of the golden ratio.
  const auto start = static_cast<uint32_t>((a.high * 0x9e3779b97f4a7c15ull >> 32) * uint64_t{n.odd} >> 32);
  const uint32_t odd = (a.channel % n.odd + start) % n.odd;
  return (hashed / n.slices_per_channel * n.odd + odd) * n.slices_per_channel + hashed % n.slices_per_channel;
}

const Registered<SliceHash> ipoly_skewed_slices{
    {{"ipoly_skewed",
      "ipoly over the power of two in the slices' number, and skewed storage over its odd factor.", "simt"},
     skewed_slice,
     /*power_of_two_channels=*/false,
     /*exact_slices=*/0,
     most_ipoly}};

}  // namespace
}  // namespace simt
