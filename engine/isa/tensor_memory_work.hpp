#pragma once
#include <cstdint>

namespace simt {

/// What decides the time of a product into tensor memory (tcgen05.mma), or of a copy there (tcgen05.cp). As a
/// single number, executed ones carry it in place of an address, also in a recorded trace.
struct TensorMemoryWork {
  uint32_t columns = 0;  ///< of D, in each lane that it has; 0: it is a copy
  uint32_t ctas = 1;
  bool split = false;          ///< D's columns are in two groups of lanes
  uint32_t row_bytes = 0;      ///< bytes of A's containers from shared memory: what its first row waits for
  uint32_t operand_bytes = 0;  ///< that a CTA reads from shared memory
  bool swizzled = false;       ///< an operand in shared memory is

  constexpr uint64_t packed() const {
    return columns | uint64_t{ctas} << 12 | uint64_t{split} << 15 | uint64_t{row_bytes} << 16 |
           uint64_t{swizzled} << 39 | uint64_t{operand_bytes} << 40;
  }
  static constexpr TensorMemoryWork unpacked(uint64_t word) {
    return {static_cast<uint32_t>(word & 0xfff),
            static_cast<uint32_t>(word >> 12 & 7),
            (word >> 15 & 1) != 0,
            static_cast<uint32_t>(word >> 16 & 0x7fffff),
            static_cast<uint32_t>(word >> 40),
            (word >> 39 & 1) != 0};
  }
};

}  // namespace simt
