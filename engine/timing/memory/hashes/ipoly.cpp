#include "timing/memory/hashes/ipoly.hpp"

#include <bit>

#include "timing/memory/hash.hpp"

namespace simt {
namespace {

uint32_t slice_of(const SliceCount& n, const SliceAddress& a) {
  const uint32_t slice = a.channel * n.slices_per_channel + a.low;
  const uint32_t hashed = ipoly_hash(a.high, slice, n.channels_up * n.slices_per_channel);
  return hashed < n.slices ? hashed : hashed % n.slices;
}

const Registered<SliceHash> ipoly_slices{
    {{"ipoly", "Remainder of the address as a polynomial over GF(2).", "Rau, ISCA 1991; GPGPU-Sim"},
     slice_of,
     /*power_of_two_channels=*/true,
     /*exact_slices=*/0,
     most_ipoly,
     /*linear=*/true}};

const Registered<SliceHash> ipoly_slices_modulo{
    {{"ipoly_modulo", "ipoly over the next power of two of slices, modulo the slices.", "Accel-Sim"},
     slice_of,
     /*power_of_two_channels=*/false,
     /*exact_slices=*/0,
     most_ipoly,
     /*linear=*/true}};

const Registered<SetIndex> ipoly_sets{
    {{"ipoly", "Remainder of the line's number as a polynomial over GF(2).", "Rau, ISCA 1991; GPGPU-Sim"},
     [](uint64_t /*address*/, uint64_t line, uint32_t count) {
       const auto bits = static_cast<uint32_t>(std::bit_width(count) - 1);
       return ipoly_hash(line >> bits, static_cast<uint32_t>(line & (count - 1)), count);
     },
     most_ipoly}};

}  // namespace
}  // namespace simt
