#include <array>
#include <bit>
#include <vector>

#include "timing/memory/hash.hpp"
#include "timing/memory/hashes/bit_mask.hpp"
#include "timing/memory/xor_table.hpp"

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

// Irreducible polynomials over GF(2) by degree, without their leading term.
constexpr std::array<uint32_t, 13> irreducible = {0x0, 0x1,  0x3,  0x3, 0x3, 0x5, 0x3,
                                                  0x3, 0x1b, 0x11, 0x9, 0x5, 0x53};

static_assert(most_ipoly == 1u << (irreducible.size() - 1));

/// Remainders of words, without the index.
using Remainders = XorTable<uint16_t>;

template <size_t N>
Remainders remainders_of(const std::array<uint64_t, N>& rows) {
  return Remainders([&](uint32_t bit) {
    uint32_t remainder = 0;
    for (size_t i = 0; i < N; ++i) remainder |= static_cast<uint32_t>(rows[i] >> bit & 1) << i;
    return remainder;
  });
}

Remainders remainders_of(uint32_t degree) {
  std::array<uint32_t, 64> powers{};
  for (uint32_t power = 1; uint32_t& each : powers) {
    each = power;
    power <<= 1;
    if (power >> degree & 1) power ^= 1u << degree | irreducible[degree];
  }
  return Remainders([&](uint32_t bit) { return powers[bit]; });
}

/// By degree.
std::vector<Remainders> all_remainders() {
  std::vector<Remainders> all;
  for (uint32_t degree = 0; degree < irreducible.size(); ++degree) {
    if (degree == 4)
      all.push_back(remainders_of(ipoly16));
    else if (degree == 5)
      all.push_back(remainders_of(ipoly32));
    else if (degree == 6)
      all.push_back(remainders_of(ipoly64));
    else
      all.push_back(remainders_of(degree));
  }
  return all;
}

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

uint32_t ipoly_hash(uint64_t high, uint32_t index, uint32_t n) {
  static const std::vector<Remainders> remainders = all_remainders();
  const auto degree = static_cast<size_t>(std::bit_width(n) - 1);
  return degree == 0 || degree >= remainders.size() ? index : index ^ remainders[degree](high);
}

}  // namespace simt
