#pragma once
#include <cstdint>

namespace simt::functional {

inline uint32_t round_up(uint32_t value, uint32_t to) {
  return to <= 1 ? value : (value + to - 1) / to * to;
}

}  // namespace simt::functional
