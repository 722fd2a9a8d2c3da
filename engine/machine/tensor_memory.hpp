#pragma once
#include <array>
#include <cstdint>
#include <optional>

namespace simt::functional {

/// The tensor memory of a CTA: 128 lanes of 512 columns of 32 bits, of which it allocates columns (PTX ISA,
/// "Tensor Memory"). An address has the lane in its upper 16 bits and the column in its lower ones.
class TensorMemory {
 public:
  static constexpr uint32_t lane_count = 128, column_count = 512, lane_shift = 16;
  static constexpr uint32_t least_columns = 32;  ///< of an allocation

  struct Place {
    uint32_t lane = 0, column = 0;
  };
  static constexpr Place place(uint32_t address) {
    return {address >> lane_shift, address & ((1u << lane_shift) - 1)};
  }

  /// Address of `columns` columns, allocated at the lowest one that is possible. Throws Fault: the number is
  /// no power of two from 32 to 512, the permit was given up, or there is no room, for which hardware would
  /// wait.
  uint32_t allocate(uint32_t columns);
  /// As `allocate`, in this memory and in another at the same address; none if only the other lacks room.
  std::optional<uint32_t> allocate_in_both(TensorMemory& other, uint32_t columns);
  /// Throws Fault if that is not what `allocate` returned.
  void free(uint32_t address, uint32_t columns);
  /// No more allocations.
  void relinquish() { relinquished_ = true; }
  uint32_t allocated_columns() const;

  /// Throws Fault if a column of [first, first + count) is not allocated. what: for the message.
  void check(uint32_t first, uint32_t count, const char* what) const;
  /// All instructions must be of one CTA, or all of two.
  void use_group(uint32_t ctas);

  uint32_t* row(uint32_t lane) { return words_[lane].data(); }

 private:
  friend struct StateAccess;
  static constexpr uint32_t units = column_count / least_columns;

  /// Whether a unit is part of an allocation.
  bool is_used(uint32_t unit) const;
  bool is_free(uint32_t first, uint32_t count) const;  ///< units

  std::array<std::array<uint32_t, column_count>, lane_count> words_{};
  std::array<uint16_t, units> allocation_{};  ///< columns of the one that begins in a unit
  bool relinquished_ = false;
  uint32_t group_ = 0;
};

}  // namespace simt::functional
