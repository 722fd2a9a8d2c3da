#pragma once
#include <cstdint>
#include <vector>

#include "timing/memory/hash.hpp"
#include "timing/spec.hpp"

namespace simt {

/// An address's location in the DRAM of its channel.
struct DramLocation {
  uint32_t bank = 0, row = 0;
};

/// Maps addresses to slices and DRAM banks, as GPGPU-Sim 4 does (docs/model/l2.md).
class AddressMap {
 public:
  AddressMap(const AddressMapSpec& spec, const DramSpec& dram, SliceHashFunction custom);

  DramLocation locate(uint64_t address) const;
  /// Within the row.
  uint32_t column(uint64_t address) const {
    return static_cast<uint32_t>(column_.extract(gathered(address)));
  }
  /// L2 slice of the whole GPU; its channel is slice / slices_per_channel.
  uint32_t slice_of(uint64_t address) const;
  /// The address within the slice, without channel and slice bits.
  uint64_t local_address(uint64_t address) const { return without_slice_.extract(gathered(address)); }

 private:
  /// Gathers the bits of a mask, run by run.
  class BitGather {
   public:
    explicit BitGather(uint64_t mask = 0);
    uint64_t extract(uint64_t value) const {
      uint64_t result = 0;
      for (const Run& run : runs_) result |= (value >> run.from & run.mask) << run.to;
      return result;
    }

   private:
    struct Run {
      uint64_t mask;  // of the run's length, at bit 0
      uint32_t from, to;
    };
    std::vector<Run> runs_;
  };

  uint64_t above_channel(uint64_t address) const {
    const uint64_t above = address >> spec_.channel_bit;
    return power_of_two_ ? above >> channel_bits_ : above / spec_.channels;
  }
  /// The address with its channel number removed.
  uint64_t without_channel(uint64_t address) const {
    return above_channel(address) << spec_.channel_bit | (address & ((uint64_t{1} << spec_.channel_bit) - 1));
  }

  /// What the gathers below take: the address itself if its channel number is in bits of its own, which they
  /// then leave out.
  uint64_t gathered(uint64_t address) const { return power_of_two_ ? address : without_channel(address); }
  BitGather gather(uint64_t mask) const;

  AddressMapSpec spec_;
  bool power_of_two_;
  uint32_t channel_bits_, slice_bits_;
  uint32_t (*hash_)(const SliceCount&, const SliceAddress&);
  SliceCount count_;
  bool bank_xor_;
  uint32_t banks_;
  BitGather bank_, row_, column_, slice_bits_of_, without_slice_;
};

}  // namespace simt
