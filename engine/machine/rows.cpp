#include "machine/rows.hpp"

#include <algorithm>
#include <cstring>

namespace simt::functional {

void copy_rows(std::byte* target, const Rows& to, const std::byte* source, const Rows& from) {
  if (to.row_bytes == 0) return;
  for (uint64_t row = 0; row < to.rows; ++row)
    std::memmove(target + row * to.pitch, source + row * from.pitch, to.row_bytes);
}

void fill_rows(std::byte* target, const Rows& to, uint32_t value, uint32_t element_bytes) {
  if (to.row_bytes == 0) return;
  for (uint64_t row = 0; row < to.rows; ++row) {
    std::byte* begin = target + row * to.pitch;
    std::memcpy(begin, &value, element_bytes);
    for (uint64_t filled = element_bytes; filled < to.row_bytes; filled *= 2)
      std::memcpy(begin + filled, begin, std::min(filled, to.row_bytes - filled));
  }
}

}  // namespace simt::functional
