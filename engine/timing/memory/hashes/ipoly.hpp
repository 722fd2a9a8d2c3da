#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "timing/memory/hashes/bit_mask.hpp"
#include "timing/memory/xor_table.hpp"

namespace simt {
namespace ipoly {

// Rows of the remainder maps: output bit i is the parity of `high & rows[i]`, plus index bit i. The
// coefficients are GPGPU-Sim's.
inline constexpr std::array<uint64_t, 4> ipoly16 = {
    bit_mask({11, 10, 9, 8, 6, 4, 3, 0}), bit_mask({12, 8, 7, 6, 5, 3, 1, 0}),
    bit_mask({9, 8, 7, 6, 4, 2, 1}), bit_mask({10, 9, 8, 7, 5, 3, 2})};
inline constexpr std::array<uint64_t, 5> ipoly32 = {
    bit_mask({13, 12, 11, 10, 9, 6, 5, 3, 0}), bit_mask({14, 13, 12, 11, 10, 7, 6, 4, 1}),
    bit_mask({14, 10, 9, 8, 7, 6, 3, 2, 0}), bit_mask({11, 10, 9, 8, 7, 4, 3, 1}),
    bit_mask({12, 11, 10, 9, 8, 5, 4, 2})};
inline constexpr std::array<uint64_t, 6> ipoly64 = {
    bit_mask({18, 17, 16, 15, 12, 10, 6, 5, 0}), bit_mask({15, 13, 12, 11, 10, 7, 5, 1, 0}),
    bit_mask({16, 14, 13, 12, 11, 8, 6, 2, 1}),  bit_mask({17, 15, 14, 13, 12, 9, 7, 3, 2}),
    bit_mask({18, 16, 15, 14, 13, 10, 8, 4, 3}), bit_mask({17, 16, 15, 14, 11, 9, 5, 4})};

// Irreducible polynomials over GF(2) by degree, without their leading term.
inline constexpr std::array<uint32_t, 13> irreducible = {0x0, 0x1,  0x3,  0x3, 0x3, 0x5, 0x3,
                                                         0x3, 0x1b, 0x11, 0x9, 0x5, 0x53};

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

inline Remainders remainders_of(uint32_t degree) {
  std::array<uint32_t, 64> powers{};
  for (uint32_t power = 1; uint32_t& each : powers) {
    each = power;
    power <<= 1;
    if (power >> degree & 1) power ^= 1u << degree | irreducible[degree];
  }
  return Remainders([&](uint32_t bit) { return powers[bit]; });
}

/// By degree.
inline std::vector<Remainders> all_remainders() {
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

}  // namespace ipoly

inline constexpr uint32_t most_ipoly = 1u << (ipoly::irreducible.size() - 1);

/// Permutes `index` (0 to n - 1, n a power of two up to most_ipoly) by the remainder of the polynomial `high`
/// over GF(2), so that every power-of-two stride spreads over all n (Rau, ISCA 1991). n = 16, 32 and 64 use
/// GPGPU-Sim's polynomials; other n an irreducible polynomial of the corresponding degree.
inline uint32_t ipoly_hash(uint64_t high, uint32_t index, uint32_t n) {
  static const std::vector<ipoly::Remainders> remainders = ipoly::all_remainders();
  const auto degree = static_cast<size_t>(std::bit_width(n) - 1);
  return degree == 0 || degree >= remainders.size() ? index : index ^ remainders[degree](high);
}

}  // namespace simt
