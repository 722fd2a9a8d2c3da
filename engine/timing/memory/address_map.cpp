#include "timing/memory/address_map.hpp"

#include <array>
#include <bit>

namespace simt {
namespace {

// Rows of the remainder maps: output bit i is the parity of `high & rows[i]`, plus index bit i. The
// coefficients are GPGPU-Sim's.
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

// Page address entropy (Liu et al., ISCA 2018) for 32 slices, with GPGPU-Sim's coefficients.
constexpr std::array<uint64_t, 5> pae_high = {bits({13, 10, 9, 5, 0}), bits({12, 11, 6, 1}),
                                              bits({14, 9, 8, 7, 2}), bits({11, 10, 8, 3}),
                                              bits({12, 9, 8, 5, 4})};
constexpr std::array<uint64_t, 5> pae_index = {bits({3}), bits({3, 2}), bits({2, 1}), bits({2}),
                                               bits({4, 1, 0})};

uint32_t pae_hash(uint64_t high, uint32_t index) {
  uint32_t hashed = 0;
  for (size_t i = 0; i < pae_high.size(); ++i)
    hashed |=
        static_cast<uint32_t>((std::popcount(high & pae_high[i]) ^ std::popcount(index & pae_index[i])) & 1)
        << i;
  return hashed;
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
  for (auto i = static_cast<uint32_t>(std::bit_width(high)); i-- > 0;) {
    const uint32_t out = remainder >> (degree - 1) & 1;
    remainder = (remainder << 1 | static_cast<uint32_t>(high >> i & 1)) & (n - 1);
    if (out) remainder ^= irreducible[degree];
  }
  return remainder ^ index;
}

AddressMap::BitGather::BitGather(uint64_t mask) {
  for (uint32_t to = 0; mask;) {
    const auto from = static_cast<uint32_t>(std::countr_zero(mask));
    const auto length = static_cast<uint32_t>(std::countr_one(mask >> from));
    const uint64_t ones = length >= 64 ? ~uint64_t{0} : (uint64_t{1} << length) - 1;
    runs_.push_back({ones, from, to});
    mask &= ~(ones << from);
    to += length;
  }
}

AddressMap::AddressMap(const AddressMapSpec& spec, const DramSpec& dram, SliceHashFunction custom)
    : spec_(spec),
      custom_(custom),
      slices_(spec.channels * spec.slices_per_channel),
      power_of_two_(std::has_single_bit(spec.channels)),
      odd_(spec.channels >> std::countr_zero(spec.channels)),
      channel_bits_(static_cast<uint32_t>(std::bit_width(spec.channels) - 1)),
      slice_bits_(static_cast<uint32_t>(std::bit_width(spec.slices_per_channel) - 1)),
      bank_xor_(dram.bank_xor),
      banks_(dram.banks) {
  uint32_t position = 0;
  for (char c : spec.layout) position += c == 'R' || c == 'B' || c == 'C' || c == 'S' || c == '0';
  uint64_t banks = 0, rows = 0, columns = 0;
  for (char c : spec.layout) {
    if (c != 'R' && c != 'B' && c != 'C' && c != 'S' && c != '0') continue;
    const uint64_t bit = uint64_t{1} << --position;
    if (c == 'R') rows |= bit;
    if (c == 'B') banks |= bit;
    if (c == 'C' || c == 'S') columns |= bit;
  }
  bank_ = BitGather(banks);
  row_ = BitGather(rows);
  column_ = BitGather(columns);
  // The lowest bank bits choose the slice of a channel.
  uint64_t chooses_slice = 0;
  for (uint32_t i = 0; i < slice_bits_; ++i, banks &= banks - 1) chooses_slice |= banks & (~banks + 1);
  slice_bits_of_ = BitGather(chooses_slice);
  without_slice_ = BitGather(~chooses_slice);
}

uint32_t AddressMap::slice_of(uint64_t address) const {
  const uint64_t above = address >> spec_.channel_bit;
  const auto channel =
      static_cast<uint32_t>(power_of_two_ ? above & (spec_.channels - 1) : above % spec_.channels);
  const auto low = static_cast<uint32_t>(slice_bits_of_.extract(without_channel(address)));
  const uint32_t slice = channel * spec_.slices_per_channel + low;
  // Address bits above channel and slice numbers.
  const uint64_t high = power_of_two_ ? above >> (channel_bits_ + slice_bits_) : above_channel(address);
  const uint32_t channels_up = std::bit_ceil(spec_.channels);
  switch (spec_.hash) {
    case SliceHash::Linear:
      return slice;
    case SliceHash::Xor:
      return ((channel ^ static_cast<uint32_t>(high)) & (channels_up - 1)) % spec_.channels *
                 spec_.slices_per_channel +
             low;
    case SliceHash::Ipoly:
    case SliceHash::IpolyModulo:
      return ipoly_hash(high, slice, channels_up * spec_.slices_per_channel) % slices_;
    case SliceHash::IpolySkewed: {
      const uint32_t two = channel / odd_;  // the channel number's part that counts a power of two
      const uint32_t hashed = ipoly_hash(high, two * spec_.slices_per_channel + low, slices_ / odd_);
      // Skewed storage: each block of all slices starts elsewhere, by a multiple of the golden section.
      const uint32_t start =
          static_cast<uint32_t>((high * 0x9e3779b97f4a7c15ull >> 32) * uint64_t{odd_} >> 32);
      const uint32_t odd = (channel % odd_ + start) % odd_;
      return (hashed / spec_.slices_per_channel * odd_ + odd) * spec_.slices_per_channel +
             hashed % spec_.slices_per_channel;
    }
    case SliceHash::Pae:
      return pae_hash(high, slice) % slices_;
    case SliceHash::Random:
      return static_cast<uint32_t>(mix(address >> (spec_.channel_bit - slice_bits_)) % slices_);
    case SliceHash::Custom: {
      const int32_t chosen =
          custom_ ? custom_(address, static_cast<int32_t>(slices_)) : static_cast<int32_t>(slice);
      return static_cast<uint32_t>(chosen < 0 ? 0 : chosen) % slices_;
    }
  }
  return slice;
}

MemoryLocation AddressMap::locate(uint64_t address) const {
  const uint64_t rest = without_channel(address);
  MemoryLocation where;
  where.slice = slice_of(address);
  where.channel = where.slice / spec_.slices_per_channel;
  where.bank = static_cast<uint32_t>(bank_.extract(rest));
  where.row = static_cast<uint32_t>(row_.extract(rest));
  where.column = static_cast<uint32_t>(column_.extract(rest));
  where.local = without_slice_.extract(rest);
  if (bank_xor_) where.bank ^= where.row;
  where.bank &= banks_ - 1;
  return where;
}

}  // namespace simt
