#pragma once
#include <cstdint>

#include "timing/base/registry.hpp"

namespace simt {

/// The slices over which a slice hash distributes addresses.
struct SliceCount {
  uint32_t channels, slices_per_channel;
  uint32_t slices;       ///< of all channels
  uint32_t channels_up;  ///< the number of channels, rounded up to a power of two
  uint32_t odd;          ///< odd factor of the number of channels
  uint32_t slice_shift;  ///< lowest address bit of a contiguous slice number
  /// SliceHash::of_address.
  int32_t (*of_address)(uint64_t address, int32_t slices);
};

/// The parts of an address that determine its slice before hashing.
struct SliceAddress {
  uint64_t whole;
  uint64_t high;     ///< bits above the channel number (and the slice's, if the number of channels is a power
                     ///< of two)
  uint32_t channel;  ///< low: which of the channel's slices
  uint32_t low;
};

/// A hash from address to L2 slice that a specification can choose. Each has a file in timing/memory/hashes.
struct SliceHash : PolicyText {
  static constexpr const char* kind = "slice_hash";

  /// Below `count.slices`, of which it is taken modulo.
  uint32_t (*slice_of)(const SliceCount& count, const SliceAddress& address);
  bool power_of_two_channels = false;  ///< requires a power of two of channels
  uint32_t exact_slices = 0;           ///< the only number of slices it is defined for; 0: any
  uint32_t most_slices = 0;            ///< with channels rounded up to a power of two; 0: any
  /// Over a power of two of channels, each bit of the slice's number is the parity of some of the address's.
  bool linear = false;
  /// Of a policy that is a function of the whole address, for its slice_of.
  int32_t (*of_address)(uint64_t address, int32_t slices) = nullptr;
};

/// A hash from address to cache set that a specification can choose. Each has a file in timing/memory/hashes.
struct SetIndex : PolicyText {
  static constexpr const char* kind = "set_index";

  /// line: the number of the address's line. `sets` is a power of two, of which the result is taken modulo.
  /// Each bit of the set's number must be the parity of some of the address's.
  uint32_t (*set_of)(uint64_t address, uint64_t line, uint32_t sets);
  uint32_t most_sets = 0;  ///< 0: any
};

}  // namespace simt
