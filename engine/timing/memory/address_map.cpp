#include "timing/memory/address_map.hpp"

#include <array>
#include <bit>

namespace simt {
namespace {

// Rows of the remainder maps: output bit i is the parity of `high & rows[i]`, plus index bit i. Coefficients
// as listed in the performance model, section 8.
constexpr uint64_t bits(std::initializer_list<uint32_t> positions) {
  uint64_t mask = 0;
  for (uint32_t p : positions) mask |= uint64_t{1} << p;
  return mask;
}
constexpr std::array<uint64_t, 4> ipoly16 = {bits({11, 10, 9, 8, 6, 4, 3, 0}),
                                             bits({12, 8, 7, 6, 5, 3, 1, 0}), bits({9, 8, 7, 6, 4, 2, 1}),
                                             bits({10, 9, 8, 7, 5, 3, 2})};
constexpr std::array<uint64_t, 5> ipoly32 = {
    bits({13, 12, 11, 10, 9, 6, 5, 3, 0}), bits({14, 13, 12, 11, 10, 7, 6, 4, 1}),
    bits({14, 10, 9, 8, 7, 6, 3, 2, 0}), bits({11, 10, 9, 8, 7, 4, 3, 1}), bits({12, 11, 10, 9, 8, 5, 4, 2})};
constexpr std::array<uint64_t, 6> ipoly64 = {
    bits({18, 17, 16, 15, 12, 10, 6, 5, 0}), bits({15, 13, 12, 11, 10, 7, 5, 1, 0}),
    bits({16, 14, 13, 12, 11, 8, 6, 2, 1}),  bits({17, 15, 14, 13, 12, 9, 7, 3, 2}),
    bits({18, 16, 15, 14, 13, 10, 8, 4, 3}), bits({17, 16, 15, 14, 11, 9, 5, 4})};

template <size_t N>
uint32_t hash_by_rows(const std::array<uint64_t, N>& rows, uint64_t high, uint32_t index) {
  uint32_t hashed = 0;
  for (size_t i = 0; i < N; ++i)
    hashed |= (static_cast<uint32_t>(std::popcount(high & rows[i]) & 1) ^ (index >> i & 1)) << i;
  return hashed;
}

// Irreducible polynomials over GF(2) by degree, without their leading term.
constexpr std::array<uint32_t, 13> irreducible = {0x0, 0x1,  0x3,  0x3, 0x3, 0x5, 0x3,
                                                  0x3, 0x1b, 0x11, 0x9, 0x5, 0x53};

uint64_t extract(uint64_t value, uint64_t mask) {
  uint64_t result = 0;
  for (uint32_t at = 0; mask; mask &= mask - 1, ++at) result |= (value >> std::countr_zero(mask) & 1) << at;
  return result;
}

uint64_t mix(uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdull;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ull;
  return x ^ (x >> 33);
}

}  // namespace

uint32_t ipoly_hash(uint64_t high, uint32_t index, uint32_t n) {
  if (n == 16) return hash_by_rows(ipoly16, high, index);
  if (n == 32) return hash_by_rows(ipoly32, high, index);
  if (n == 64) return hash_by_rows(ipoly64, high, index);
  const auto degree = static_cast<uint32_t>(std::bit_width(n) - 1);
  if (degree == 0 || degree >= irreducible.size()) return index;
  uint32_t remainder = 0;
  for (uint32_t i = 64; i-- > 0;) {
    const uint32_t out = remainder >> (degree - 1) & 1;
    remainder = (remainder << 1 | static_cast<uint32_t>(high >> i & 1)) & (n - 1);
    if (out) remainder ^= irreducible[degree];
  }
  return remainder ^ index;
}

AddressMap::AddressMap(const AddressMapSpec& spec, const DramSpec& dram, SliceHashFunction custom)
    : spec_(spec),
      custom_(custom),
      slices_(spec.channels * spec.slices_per_channel),
      power_of_two_(std::has_single_bit(spec.channels)),
      channel_bits_(static_cast<uint32_t>(std::bit_width(spec.channels) - 1)),
      slice_bits_(static_cast<uint32_t>(std::bit_width(spec.slices_per_channel) - 1)),
      bank_xor_(dram.bank_xor),
      banks_(dram.banks) {
  uint32_t letters = 0;
  for (char c : spec.layout) letters += c == 'R' || c == 'B' || c == 'C' || c == 'S' || c == '0';
  uint32_t position = letters;
  for (char c : spec.layout) {
    if (c != 'R' && c != 'B' && c != 'C' && c != 'S' && c != '0') continue;
    const uint64_t bit = uint64_t{1} << --position;
    if (c == 'R') row_mask_ |= bit;
    if (c == 'B') bank_mask_ |= bit;
    if (c == 'C' || c == 'S') column_mask_ |= bit;
  }
  uint64_t banks = bank_mask_;
  for (uint32_t i = 0; i < slice_bits_; ++i) {
    slice_mask_ |= banks & (~banks + 1);
    banks &= banks - 1;
  }
}

MemoryLocation AddressMap::locate(uint64_t address) const {
  MemoryLocation where;
  const uint64_t above = address >> spec_.channel_bit;
  const uint64_t below = address & ((uint64_t{1} << spec_.channel_bit) - 1);
  uint32_t channel;
  uint64_t quotient;
  if (power_of_two_) {
    channel = static_cast<uint32_t>(above & (spec_.channels - 1));
    quotient = above >> channel_bits_;
  } else {
    channel = static_cast<uint32_t>(above % spec_.channels);
    quotient = above / spec_.channels;
  }
  const uint64_t rest = quotient << spec_.channel_bit | below;  // the address without its channel number
  where.bank = static_cast<uint32_t>(extract(rest, bank_mask_));
  where.row = static_cast<uint32_t>(extract(rest, row_mask_));
  where.column = static_cast<uint32_t>(extract(rest, column_mask_));
  where.local = extract(rest, ~slice_mask_);
  uint32_t slice = channel * spec_.slices_per_channel + (where.bank & (spec_.slices_per_channel - 1));
  // Address bits above channel and slice numbers.
  const uint64_t high =
      power_of_two_ ? address >> (spec_.channel_bit + channel_bits_ + slice_bits_) : quotient;
  switch (spec_.hash) {
    case SliceHash::Linear:
      break;
    case SliceHash::Xor: {
      const uint32_t hashed = (channel ^ static_cast<uint32_t>(high)) & (std::bit_ceil(spec_.channels) - 1);
      slice = hashed % spec_.channels * spec_.slices_per_channel + slice % spec_.slices_per_channel;
      break;
    }
    case SliceHash::Ipoly:
    case SliceHash::IpolyModulo:
      slice = ipoly_hash(high, slice, std::bit_ceil(spec_.channels) * spec_.slices_per_channel) % slices_;
      break;
    case SliceHash::Pae: {
      // Page address entropy: channel bits mixed with row and bank bits (Liu et al., ISCA 2018).
      uint32_t mixed = channel;
      for (uint64_t h = high; h; h >>= channel_bits_ ? channel_bits_ : 1) mixed ^= static_cast<uint32_t>(h);
      mixed = mixed & (std::bit_ceil(spec_.channels) - 1);
      slice = mixed % spec_.channels * spec_.slices_per_channel + slice % spec_.slices_per_channel;
      break;
    }
    case SliceHash::Random:
      slice = static_cast<uint32_t>(mix(address >> (spec_.channel_bit - slice_bits_)) % slices_);
      break;
    case SliceHash::Custom: {
      const int32_t chosen =
          custom_ ? custom_(address, static_cast<int32_t>(slices_)) : static_cast<int32_t>(slice);
      slice = static_cast<uint32_t>(chosen < 0 ? 0 : chosen) % slices_;
      break;
    }
  }
  where.slice = slice;
  where.channel = slice / spec_.slices_per_channel;
  if (bank_xor_) where.bank = (where.bank ^ where.row) & (banks_ - 1);
  where.bank &= banks_ - 1;
  return where;
}

}  // namespace simt
