#include "timing/memory/address_map.hpp"

#include <bit>

namespace simt {

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
      power_of_two_(std::has_single_bit(spec.channels)),
      channel_bits_(static_cast<uint32_t>(std::bit_width(spec.channels) - 1)),
      slice_bits_(static_cast<uint32_t>(std::bit_width(spec.slices_per_channel) - 1)),
      hash_(spec.hash->slice_of),
      count_{spec.channels,
             spec.slices_per_channel,
             spec.channels * spec.slices_per_channel,
             std::bit_ceil(spec.channels),
             spec.channels >> std::countr_zero(spec.channels),
             spec.channel_bit - slice_bits_,
             custom},
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
  bank_ = gather(banks);
  row_ = gather(rows);
  column_ = gather(columns);
  // The lowest bank bits choose the slice of a channel.
  uint64_t chooses_slice = 0;
  for (uint32_t i = 0; i < slice_bits_; ++i, banks &= banks - 1) chooses_slice |= banks & (~banks + 1);
  slice_bits_of_ = gather(chooses_slice);
  without_slice_ = gather(~chooses_slice);
}

/// mask: of the address without its channel number.
AddressMap::BitGather AddressMap::gather(uint64_t mask) const {
  if (!power_of_two_) return BitGather(mask);
  const uint64_t below = (uint64_t{1} << spec_.channel_bit) - 1;
  return BitGather((mask & below) | (mask & ~below) << channel_bits_);
}

uint32_t AddressMap::slice_of(uint64_t address) const {
  const uint64_t above = address >> spec_.channel_bit;
  const auto channel =
      static_cast<uint32_t>(power_of_two_ ? above & (spec_.channels - 1) : above % spec_.channels);
  const auto low = static_cast<uint32_t>(slice_bits_of_.extract(gathered(address)));
  const uint64_t high = power_of_two_ ? above >> (channel_bits_ + slice_bits_) : above_channel(address);
  return hash_(count_, {address, high, channel, low});
}

DramLocation AddressMap::locate(uint64_t address) const {
  const uint64_t rest = gathered(address);
  DramLocation where;
  where.bank = static_cast<uint32_t>(bank_.extract(rest));
  where.row = static_cast<uint32_t>(row_.extract(rest));
  if (bank_xor_) where.bank ^= where.row;
  where.bank &= banks_ - 1;
  return where;
}

}  // namespace simt
