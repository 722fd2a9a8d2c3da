#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "timing/core/coalescer.hpp"

namespace simt {

/// shared_memory_passes() of one SM's accesses. The result of each static instruction's last access is kept:
/// words that are all as far from the earlier ones lie in banks that are turned by that distance, and collide
/// as those did.
class SharedPasses {
 public:
  SharedPasses(uint32_t banks, bool by_width) : banks_(banks), by_width_(by_width) {}

  uint32_t of(uint32_t static_index, const uint64_t* addresses, uint64_t mask, uint32_t bytes,
              SharedAccess access) {
    const auto count = static_cast<uint32_t>(std::popcount(mask));
    if (kept_.empty()) kept_.resize(places);
    Kept& kept = kept_[static_index % places];
    if (kept.mask != mask || kept.bytes != bytes || kept.access != access ||
        !turned(kept, addresses, count)) {
      kept.passes = shared_memory_passes(addresses, mask, bytes, banks_, by_width_, access);
      kept.mask = mask;
      kept.bytes = bytes;
      kept.access = access;
      std::copy(addresses, addresses + count, kept.addresses.begin());
    }
    return kept.passes;
  }

 private:
  static constexpr size_t places = 64;
  struct Kept {
    uint64_t mask = 0;  // no access has none
    uint32_t bytes = 0, passes = 0;
    SharedAccess access = SharedAccess::Load;
    std::array<uint64_t, 64> addresses{};
  };

  static bool turned(const Kept& kept, const uint64_t* addresses, uint32_t count) {
    const uint64_t distance = addresses[0] - kept.addresses[0];
    uint64_t differences = distance % 4;
    for (uint32_t i = 1; i < count; ++i) differences |= addresses[i] - kept.addresses[i] - distance;
    return differences == 0;
  }

  uint32_t banks_;
  bool by_width_;
  std::vector<Kept> kept_;  // by static instruction, modulo its size; empty before the first access
};

}  // namespace simt
