#pragma once
#include <cstdint>

namespace simt {

/// What decides the time of a product into tensor memory (tcgen05.mma): as a single number, an executed
/// product carries it in place of an address, also in a recorded trace.
struct TensorMemoryProduct {
  uint32_t m = 0, n = 0;  ///< of the product, by all its CTAs
  uint32_t ctas = 1;
  bool a_in_tensor_memory = false;

  constexpr uint64_t packed() const {
    return n | uint64_t{m} << 16 | uint64_t{ctas} << 32 | uint64_t{a_in_tensor_memory} << 40;
  }
  static constexpr TensorMemoryProduct unpacked(uint64_t word) {
    return {static_cast<uint32_t>(word >> 16 & 0xffff), static_cast<uint32_t>(word & 0xffff),
            static_cast<uint32_t>(word >> 32 & 0xff), (word >> 40 & 1) != 0};
  }
};

}  // namespace simt
