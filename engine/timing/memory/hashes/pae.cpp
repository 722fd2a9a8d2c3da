#include <array>
#include <bit>

#include "timing/memory/hash.hpp"
#include "timing/memory/hashes/bit_mask.hpp"

namespace simt {
namespace {

// Page address entropy (Liu et al., ISCA 2018) for 32 slices, with GPGPU-Sim's coefficients.
constexpr std::array<uint64_t, 5> pae_high = {bit_mask({13, 10, 9, 5, 0}), bit_mask({12, 11, 6, 1}),
                                              bit_mask({14, 9, 8, 7, 2}), bit_mask({11, 10, 8, 3}),
                                              bit_mask({12, 9, 8, 5, 4})};
constexpr std::array<uint64_t, 5> pae_index = {bit_mask({3}), bit_mask({3, 2}), bit_mask({2, 1}),
                                               bit_mask({2}), bit_mask({4, 1, 0})};

uint32_t pae_hash(uint64_t high, uint32_t index) {
  uint32_t hashed = 0;
  for (size_t i = 0; i < pae_high.size(); ++i)
    hashed |=
        static_cast<uint32_t>((std::popcount(high & pae_high[i]) ^ std::popcount(index & pae_index[i])) & 1)
        << i;
  return hashed;
}

const Registered<SliceHash> pae_slices{
    {{"pae", "Page address entropy: XOR of address bits that vary in GPU programs.", "Liu et al., ISCA 2018"},
     [](const SliceCount& n, const SliceAddress& a) {
       return pae_hash(a.high, a.channel * n.slices_per_channel + a.low) % n.slices;
     },
     /*power_of_two_channels=*/false,
     /*exact_slices=*/32}};

}  // namespace
}  // namespace simt
