#include "machine/tensor_memory.hpp"

#include <bit>
#include <numeric>
#include <string>

#include "machine/fault.hpp"

namespace simt::functional {
namespace {

[[noreturn]] void misused(const std::string& what) {
  throw Fault("tensor memory", what);
}

}  // namespace

uint32_t TensorMemory::allocate(uint32_t columns) {
  return *allocate_in_both(*this, columns);
}

std::optional<uint32_t> TensorMemory::allocate_in_both(TensorMemory& other, uint32_t columns) {
  if (relinquished_)
    misused("tcgen05.alloc after tcgen05.relinquish_alloc_permit: the CTA may allocate no more");
  if (columns < least_columns || columns > column_count || !std::has_single_bit(columns))
    misused("tcgen05.alloc of " + std::to_string(columns) +
            " columns, expected a power of two from 32 to 512");
  const uint32_t count = columns / least_columns;
  bool has_room = false;
  for (uint32_t first = 0; first + count <= units; ++first) {
    if (!is_free(first, count)) continue;
    has_room = true;
    if (!other.is_free(first, count)) continue;
    allocation_[first] = other.allocation_[first] = static_cast<uint16_t>(columns);
    return first * least_columns;
  }
  if (has_room) return std::nullopt;
  misused("tcgen05.alloc of " + std::to_string(columns) + " columns would wait for ever: the CTA holds " +
          std::to_string(allocated_columns()) + " of 512; deallocate them first");
}

void TensorMemory::free(uint32_t address, uint32_t columns) {
  const Place at = place(address);
  const uint32_t unit = at.column / least_columns;
  if (at.lane != 0 || at.column % least_columns != 0 || unit >= units || allocation_[unit] == 0)
    misused("tcgen05.dealloc at " + hex(address) + ", where no allocation begins");
  if (allocation_[unit] != columns)
    misused("tcgen05.dealloc of " + std::to_string(columns) + " columns at " + hex(address) + ", where " +
            std::to_string(allocation_[unit]) + " are allocated");
  allocation_[unit] = 0;
}

bool TensorMemory::is_used(uint32_t unit) const {
  for (uint32_t first = 0; first <= unit; ++first)
    if (allocation_[first] > (unit - first) * least_columns) return true;
  return false;
}

bool TensorMemory::is_free(uint32_t first, uint32_t count) const {
  for (uint32_t unit = first; unit < first + count; ++unit)
    if (is_used(unit)) return false;
  return true;
}

uint32_t TensorMemory::allocated_columns() const {
  return std::accumulate(allocation_.begin(), allocation_.end(), uint32_t{0});
}

void TensorMemory::check(uint32_t first, uint32_t count, const char* what) const {
  for (uint32_t column = first; column < first + count; column = (column / least_columns + 1) * least_columns)
    if (column >= column_count || !is_used(column / least_columns))
      misused(std::string(what) + " is in columns " + std::to_string(first) + " to " +
              std::to_string(first + count - 1) + " of tensor memory, of which column " +
              std::to_string(column) + " is not allocated");
}

void TensorMemory::use_group(uint32_t ctas) {
  if (group_ != 0 && group_ != ctas)
    misused("a kernel's tcgen05 instructions have .cta_group::" + std::to_string(group_) +
            " and .cta_group::" + std::to_string(ctas) + "; all must have the same");
  group_ = ctas;
}

}  // namespace simt::functional
