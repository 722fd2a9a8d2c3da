#include "timing/memory/eviction.hpp"

#include <algorithm>

namespace simt {
namespace {

/// By the primary policy's number in a descriptor.
constexpr Eviction primary[] = {Eviction::Default, Eviction::First, Eviction::Last, Eviction::Normal};

}  // namespace

Eviction eviction_of(uint32_t policy, uint64_t address) {
  constexpr uint32_t interleaved = 2, block = 3;
  const Eviction on = primary[policy >> 25 & 3];
  const Eviction off = policy >> 24 & 1 ? Eviction::First : Eviction::Default;
  const uint32_t parameter = policy >> 20 & 15;
  switch (policy >> 27 & 3) {
    case interleaved:  // the fraction less one sixteenth
      return AccessWindow::line_hash(address) >> 28 <= parameter ? on : off;
    case block: {
      const uint64_t number = address >> (12 + parameter);
      const uint32_t first = policy >> 12 & 127, count = policy >> 5 & 127;
      return ((number - first) & 127) < count ? on : off;
    }
    default:
      return Eviction::Default;
  }
}

}  // namespace simt
