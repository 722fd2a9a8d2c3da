#include <array>
#include <bit>

#include "timing/memory/hash.hpp"
#include "timing/memory/hashes/bit_mask.hpp"

namespace simt {
namespace {

// Rows of the remainder maps: output bit i is the parity of `high & rows[i]`, plus index bit i. The
// coefficients are GPGPU-Sim's.
constexpr std::array<uint64_t, 4> ipoly16 = {
    bit_mask({11, 10, 9, 8, 6, 4, 3, 0}), bit_mask({12, 8, 7, 6, 5, 3, 1, 0}),
    bit_mask({9, 8, 7, 6, 4, 2, 1}), bit_mask({10, 9, 8, 7, 5, 3, 2})};
constexpr std::array<uint64_t, 5> ipoly32 = {
    bit_mask({13, 12, 11, 10, 9, 6, 5, 3, 0}), bit_mask({14, 13, 12, 11, 10, 7, 6, 4, 1}),
    bit_mask({14, 10, 9, 8, 7, 6, 3, 2, 0}), bit_mask({11, 10, 9, 8, 7, 4, 3, 1}),
    bit_mask({12, 11, 10, 9, 8, 5, 4, 2})};
constexpr std::array<uint64_t, 6> ipoly64 = {
    bit_mask({18, 17, 16, 15, 12, 10, 6, 5, 0}), bit_mask({15, 13, 12, 11, 10, 7, 5, 1, 0}),
    bit_mask({16, 14, 13, 12, 11, 8, 6, 2, 1}),  bit_mask({17, 15, 14, 13, 12, 9, 7, 3, 2}),
    bit_mask({18, 16, 15, 14, 13, 10, 8, 4, 3}), bit_mask({17, 16, 15, 14, 11, 9, 5, 4})};

/// The remainders of the addresses' bytes, which add up to that of the address: none of the rows above has a
/// bit beyond the third byte.
struct Remainders {
  std::array<std::array<uint8_t, 256>, 3> of{};
  template <size_t N>
  constexpr explicit Remainders(const std::array<uint64_t, N>& rows) {
    for (uint64_t byte = 0; byte < 3; ++byte)
      for (uint64_t value = 0; value < 256; ++value)
        for (size_t i = 0; i < N; ++i)
          of[byte][value] |= static_cast<uint8_t>((std::popcount(value << 8 * byte & rows[i]) & 1) << i);
  }
  uint32_t hash(uint64_t high, uint32_t index) const {
    return static_cast<uint32_t>(of[0][high & 0xff] ^ of[1][high >> 8 & 0xff] ^ of[2][high >> 16 & 0xff]) ^
           index;
  }
};
constexpr Remainders remainders16(ipoly16), remainders32(ipoly32), remainders64(ipoly64);

// Irreducible polynomials over GF(2) by degree, without their leading term.
constexpr std::array<uint32_t, 13> irreducible = {0x0, 0x1,  0x3,  0x3, 0x3, 0x5, 0x3,
                                                  0x3, 0x1b, 0x11, 0x9, 0x5, 0x53};

static_assert(most_ipoly == 1u << (irreducible.size() - 1));

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
     most_ipoly}};

const Registered<SliceHash> ipoly_slices_modulo{
    {{"ipoly_modulo", "ipoly over the next power of two of slices, modulo the slices.", "Accel-Sim"},
     slice_of,
     /*power_of_two_channels=*/false,
     /*exact_slices=*/0,
     most_ipoly}};

const Registered<SetIndex> ipoly_sets{
    {{"ipoly", "Remainder of the line's number as a polynomial over GF(2).", "Rau, ISCA 1991; GPGPU-Sim"},
     [](uint64_t /*address*/, uint64_t line, uint32_t count) {
       const auto bits = static_cast<uint32_t>(std::bit_width(count) - 1);
       return ipoly_hash(line >> bits, static_cast<uint32_t>(line & (count - 1)), count);
     },
     most_ipoly}};

}  // namespace

uint32_t ipoly_hash(uint64_t high, uint32_t index, uint32_t n) {
  if (n == 16) return remainders16.hash(high, index);
  if (n == 32) return remainders32.hash(high, index);
  if (n == 64) return remainders64.hash(high, index);
  const auto degree = static_cast<uint32_t>(std::bit_width(n) - 1);
  if (degree == 0 || degree >= irreducible.size()) return index;
  uint32_t remainder = 0;
  for (auto i = static_cast<uint32_t>(std::bit_width(high)); i-- > 0;) {
    const uint32_t out = remainder >> (degree - 1) & 1;
    remainder = (remainder << 1 | static_cast<uint32_t>(high >> i & 1)) & (n - 1);
    if (out) remainder ^= irreducible[degree];
  }
  return remainder ^ index;
}

}  // namespace simt
