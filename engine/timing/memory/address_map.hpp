#pragma once
#include <cstdint>

#include "timing/base/spec.hpp"
#include "timing/memory/hash.hpp"
#include "timing/memory/xor_table.hpp"

namespace simt {

/// An address's location in the DRAM of its channel.
struct DramLocation {
  uint32_t bank = 0, row = 0;
};

/// Maps addresses to slices, their sets, and DRAM banks, as GPGPU-Sim 4 does (docs/model/l2.md).
class AddressMap {
 public:
  explicit AddressMap(const Spec& spec);

  struct Home {
    uint32_t slice;  ///< of the whole GPU; its channel is slice / slices_per_channel
    uint32_t set;    ///< of the slice's cache
  };
  Home home_of(uint64_t address) const {
    const uint64_t home = home_(gathered(address));
    const auto slice = static_cast<uint32_t>(home >> 32);
    return {linear_ ? slice : hashed_slice(address, slice), static_cast<uint32_t>(home)};
  }
  uint32_t slice_of(uint64_t address) const { return home_of(address).slice; }
  uint32_t set_of(uint64_t address) const { return static_cast<uint32_t>(home_(gathered(address))); }
  DramLocation locate(uint64_t address) const {
    const uint64_t where = location_(gathered(address));
    return {static_cast<uint32_t>(where >> 32), static_cast<uint32_t>(where)};
  }
  /// Within the row.
  uint32_t column(uint64_t address) const;
  /// The address within the slice, without channel and slice bits.
  uint64_t local_address(uint64_t address) const;

 private:
  uint32_t hashed_slice(uint64_t address, uint32_t low) const;
  uint64_t above_channel(uint64_t address) const {
    const uint64_t above = address >> spec_.channel_bit;
    return power_of_two_ ? above >> channel_bits_ : above / spec_.channels;
  }
  /// What the tables take: the address itself if its channel number is in bits of its own, which they then
  /// leave out; otherwise the address with its channel number removed.
  uint64_t gathered(uint64_t address) const {
    if (power_of_two_) return address;
    return above_channel(address) << spec_.channel_bit | (address & ((uint64_t{1} << spec_.channel_bit) - 1));
  }
  /// Of a mask of the address without its channel number.
  uint64_t mask_of_gathered(uint64_t mask) const;

  AddressMapSpec spec_;
  bool power_of_two_;
  bool linear_;  // home_ has the slice
  uint32_t channel_bits_, slice_bits_;
  uint32_t (*hash_)(const SliceCount&, const SliceAddress&);
  SliceCount count_;
  uint64_t column_bits_ = 0, local_bits_ = 0;
  XorTable<uint64_t> home_;      // slice, or which of its channel's slices before hashing; and set
  XorTable<uint64_t> location_;  // bank and row
};

}  // namespace simt
