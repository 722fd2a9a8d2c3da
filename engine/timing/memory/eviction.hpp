#pragma once
#include <cstdint>

#include "isa/eviction.hpp"

namespace simt {

/// The range of global memory whose accesses by a launch have properties of their own: CUDA's
/// cudaAccessPolicyWindow. The lines for which `hit` holds are chosen by a hash, so that they are the same in
/// each access.
struct AccessWindow {
  uint64_t address = 0, bytes = 0;
  double hit_ratio = 0;  ///< share of its lines with property `hit`
  Eviction hit = Eviction::Default, miss = Eviction::Default;

  Eviction of(uint64_t at) const {
    if (at - address >= bytes) return Eviction::Default;
    return static_cast<double>(line_hash(at)) < hit_ratio * 4294967296.0 ? hit : miss;
  }

  /// Of the line of 128 bytes.
  static uint32_t line_hash(uint64_t at) {
    constexpr uint32_t line_bits = 7;
    return static_cast<uint32_t>((at >> line_bits) * 0x9e3779b97f4a7c15u >> 32);
  }
};

/// What a cache policy says of an address. policy: the upper half of the 64-bit value that createpolicy makes
/// and machine code names as desc[UR]; its fields are those of libcu++ (access_property_encoding.h).
Eviction eviction_of(uint32_t policy, uint64_t address);

}  // namespace simt
