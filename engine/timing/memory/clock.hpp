#pragma once
#include <cstdint>

namespace simt {

__extension__ using Wide = unsigned __int128;

/// Relates the ticks of two clock domains exactly. Tick i of a domain of f kHz occurs at time i / f; both
/// start at 0.
struct ClockRatio {
  uint64_t from_khz = 1, to_khz = 1;

  /// First tick of `to` not before tick `i` of `from`.
  uint64_t at_or_after(uint64_t i) const {
    if (from_khz == to_khz) return i;
    if (i < exact) return (i * to_khz + from_khz - 1) / from_khz;
    return static_cast<uint64_t>((static_cast<Wide>(i) * to_khz + from_khz - 1) / from_khz);
  }
  /// First tick of `to` after tick `i` of `from`.
  uint64_t after(uint64_t i) const {
    if (from_khz == to_khz) return i + 1;
    if (i < exact) return i * to_khz / from_khz + 1;
    return static_cast<uint64_t>(static_cast<Wide>(i) * to_khz / from_khz + 1);
  }

 private:
  /// Below, products with at most 100 GHz fit 64 bits, whose division takes the host a fraction of the time.
  static constexpr uint64_t exact = uint64_t{1} << 36;
};

}  // namespace simt
