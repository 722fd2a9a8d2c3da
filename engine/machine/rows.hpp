#pragma once
#include <cstddef>
#include <cstdint>

namespace simt::functional {

/// A rectangle of memory: `rows` rows of `row_bytes`, `pitch` bytes apart.
struct Rows {
  uint64_t row_bytes = 0, rows = 1, pitch = 0;

  /// From its first byte to its last.
  uint64_t extent() const { return rows == 0 || row_bytes == 0 ? 0 : (rows - 1) * pitch + row_bytes; }
};

/// Copies as many rows of the same size. They may overlap only if there is a single row.
void copy_rows(std::byte* target, const Rows& to, const std::byte* source, const Rows& from);
/// Repeats the low `element_bytes` (1, 2 or 4) of a value; row_bytes is a multiple of element_bytes.
void fill_rows(std::byte* target, const Rows& to, uint32_t value, uint32_t element_bytes);

}  // namespace simt::functional
