#include "timing/memory/address_map.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <string>

namespace simt {

namespace {

/// The bits of `value` under the ones of `mask`, side by side.
uint64_t gather(uint64_t value, uint64_t mask) {
  uint64_t gathered = 0;
  for (uint32_t to = 0; mask; mask &= mask - 1, ++to) gathered |= (value >> std::countr_zero(mask) & 1) << to;
  return gathered;
}

}  // namespace

AddressMap::AddressMap(const Spec& spec)
    : spec_(spec.address_map),
      power_of_two_(std::has_single_bit(spec_.channels)),
      linear_(power_of_two_ && spec_.hash->linear),
      channel_bits_(static_cast<uint32_t>(std::bit_width(spec_.channels) - 1)),
      slice_bits_(static_cast<uint32_t>(std::bit_width(spec_.slices_per_channel) - 1)),
      hash_(spec_.hash->slice_of),
      count_{spec_.channels,
             spec_.slices_per_channel,
             spec_.channels * spec_.slices_per_channel,
             std::bit_ceil(spec_.channels),
             spec_.channels >> std::countr_zero(spec_.channels),
             spec_.channel_bit - slice_bits_,
             spec_.hash->of_address} {
  const auto stands_for = [](char c) { return c == 'R' || c == 'B' || c == 'C' || c == 'S' || c == '0'; };
  auto position = static_cast<uint32_t>(std::count_if(spec_.layout.begin(), spec_.layout.end(), stands_for));
  uint64_t banks = 0, rows = 0, columns = 0;
  for (char c : spec_.layout) {
    if (!stands_for(c)) continue;
    const uint64_t bit = uint64_t{1} << --position;
    if (c == 'R') rows |= bit;
    if (c == 'B') banks |= bit;
    if (c == 'C' || c == 'S') columns |= bit;
  }
  // The lowest bank bits choose the slice of a channel.
  uint64_t chooses_slice = 0, rest = banks;
  for (uint32_t i = 0; i < slice_bits_; ++i, rest &= rest - 1) chooses_slice |= rest & (~rest + 1);
  const uint64_t low_bits = mask_of_gathered(chooses_slice);
  const uint64_t bank_bits = mask_of_gathered(banks), row_bits = mask_of_gathered(rows);
  column_bits_ = mask_of_gathered(columns);
  local_bits_ = mask_of_gathered(~chooses_slice);

  const auto low = [&](uint64_t address) { return static_cast<uint32_t>(gather(address, low_bits)); };
  const CacheSpec& cache = spec.l2.slice;
  const auto set_of_local = [&](uint64_t local) {
    const uint32_t set =
        cache.set_index->set_of(local, local >> std::countr_zero(cache.line_bytes), cache.sets);
    return set & (cache.sets - 1);
  };
  home_ = XorTable<uint64_t>([&](uint32_t i) {
    const uint64_t bit = uint64_t{1} << i;
    const uint64_t slice = linear_ ? hashed_slice(bit, low(bit)) : low(bit);
    return slice << 32 | set_of_local(gather(bit, local_bits_));
  });
  for (uint64_t i = 1, address = 0; i <= 64; ++i) {
    address = address * 6364136223846793005u + i;
    if (set_of(address) != set_of_local(local_address(address)))
      throw std::invalid_argument("l2.slice.set_index: found '" + std::string(cache.set_index->name) +
                                  "', expected one whose bits are parities of the address's");
    if (linear_ && slice_of(address) != hashed_slice(address, low(address)))
      throw std::invalid_argument("address_map.hash: '" + std::string(spec_.hash->name) +
                                  "' is called linear, but its bits are not parities of the address's");
  }
  location_ = XorTable<uint64_t>([&](uint32_t i) {
    const uint64_t bit = uint64_t{1} << i;
    const uint64_t row = gather(bit, row_bits);
    const uint64_t bank = gather(bit, bank_bits) ^ (spec.dram.bank_xor ? row : 0);
    return (bank & (spec.dram.banks - 1)) << 32 | static_cast<uint32_t>(row);
  });
}

uint64_t AddressMap::mask_of_gathered(uint64_t mask) const {
  if (!power_of_two_) return mask;
  const uint64_t below = (uint64_t{1} << spec_.channel_bit) - 1;
  return (mask & below) | (mask & ~below) << channel_bits_;
}

uint32_t AddressMap::hashed_slice(uint64_t address, uint32_t low) const {
  const uint64_t above = address >> spec_.channel_bit;
  const auto channel =
      static_cast<uint32_t>(power_of_two_ ? above & (spec_.channels - 1) : above % spec_.channels);
  const uint64_t high = power_of_two_ ? above >> (channel_bits_ + slice_bits_) : above_channel(address);
  const uint32_t slice = hash_(count_, {address, high, channel, low});
  return slice < count_.slices ? slice : slice % count_.slices;
}

uint32_t AddressMap::column(uint64_t address) const {
  return static_cast<uint32_t>(gather(gathered(address), column_bits_));
}

uint64_t AddressMap::local_address(uint64_t address) const {
  return gather(gathered(address), local_bits_);
}

}  // namespace simt
