#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace simt {

/// A function of a word of which each bit is the parity of some of the word's bits: the exclusive or of the
/// functions of its bytes, which are in a table.
template <typename T>
class XorTable {
 public:
  XorTable() = default;
  /// of_bit(i): the function of the word that has bit i alone.
  template <typename OfBit>
  explicit XorTable(OfBit of_bit) {
    for (uint32_t byte = 0; byte < of_.size(); ++byte)
      for (uint32_t value = 1; value < of_[byte].size(); ++value)
        of_[byte][value] = static_cast<T>(of_[byte][value & (value - 1)] ^
                                          of_bit(8 * byte + static_cast<uint32_t>(std::countr_zero(value))));
  }

  T operator()(uint64_t word) const {
    T result = 0;
    for (size_t byte = 0; byte < of_.size(); ++byte)
      result = static_cast<T>(result ^ of_[byte][word >> 8 * byte & 0xff]);
    return result;
  }

 private:
  std::array<std::array<T, 256>, 8> of_{};
};

}  // namespace simt
