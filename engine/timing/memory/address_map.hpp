#pragma once
#include <cstdint>
#include <vector>

#include "timing/policy.hpp"
#include "timing/spec.hpp"

namespace simt {

/// Permutes `index` (0 to n - 1, n a power of two) by the remainder of the polynomial `high` over GF(2), so
/// that every stride of a power of two spreads over all n (Rau, ISCA 1991). For n = 16, 32, 64 the remainder
/// of the polynomials that GPGPU-Sim uses; other n divide by an irreducible polynomial of that degree.
uint32_t ipoly_hash(uint64_t high, uint32_t index, uint32_t n);

/// Where an address lives in the memory system.
struct MemoryLocation {
  uint32_t slice = 0;  ///< L2 slice of the whole GPU; its channel is slice / slices_per_channel
  uint32_t channel = 0;
  uint32_t bank = 0, row = 0, column = 0;
  uint64_t local = 0;  ///< address within the slice: channel and slice bits removed
};

/// Maps addresses to slices and DRAM banks (performance model section 8).
class AddressMap {
 public:
  AddressMap(const AddressMapSpec& spec, const DramSpec& dram, SliceHashFunction custom);

  MemoryLocation locate(uint64_t address) const;
  uint32_t slice_of(uint64_t address) const { return locate(address).slice; }

 private:
  AddressMapSpec spec_;
  SliceHashFunction custom_;
  uint32_t slices_;
  bool power_of_two_;
  uint32_t channel_bits_, slice_bits_;
  bool bank_xor_;
  uint32_t banks_;
  uint64_t bank_mask_ = 0, row_mask_ = 0, column_mask_ = 0;  // of the address without its channel number
  uint64_t slice_mask_ = 0;                                  // the bank bits that choose the slice
};

}  // namespace simt
