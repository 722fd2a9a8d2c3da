#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace simt {

/// No program has data in the first page of memory: an access there has no address that a tracer recorded.
constexpr uint64_t first_data_address = 4096;

/// The addresses of one execution: `base`, then either `base + k * stride`, or the sum of the first k
/// differences.
struct AddressList {
  uint64_t base = 0;
  int64_t stride = 0;
  bool strided = true;
  std::vector<int64_t> differences;  ///< from the previous address; unused if strided

  /// Differences that are all equal become a stride.
  void find_stride() {
    stride = differences.empty() ? 0 : differences[0];
    strided = true;
    for (const int64_t d : differences) strided &= d == stride;
  }
};

/// Coded differences: one header byte, then the differences as little-endian two's complement integers of
/// equal width. Header bits 0-2: width - 1 in bytes, bits 3-7: left shift of each difference.
namespace differences {

inline uint8_t width(uint8_t header) {
  return static_cast<uint8_t>((header & 7) + 1);
}
inline uint64_t size(uint8_t header, uint64_t count) {
  return 1 + count * width(header);
}

inline void put(std::string& out, const std::vector<int64_t>& values) {
  uint64_t set_bits = 0;
  uint64_t magnitude = 0;
  for (const int64_t v : values) set_bits |= static_cast<uint64_t>(v);
  const int shift = set_bits ? std::min(std::countr_zero(set_bits), 31) : 0;
  for (const int64_t v : values) {
    const int64_t shifted = v >> shift;
    magnitude |= static_cast<uint64_t>(shifted ^ (shifted >> 63));
  }
  const int bytes =
      (64 - std::countl_zero(magnitude)) / 8 + 1;  // one bit more than the magnitude, for the sign
  out.push_back(static_cast<char>((bytes - 1) | shift << 3));
  for (const int64_t v : values) {
    const int64_t shifted = v >> shift;
    char raw[8];
    std::memcpy(raw, &shifted, 8);
    out.append(raw, static_cast<size_t>(bytes));
  }
}

/// Writes the `count` addresses after `base` to `out`. The caller has checked that all coded bytes are
/// present and that seven more can be read.
inline void expand(const uint8_t* coded, uint64_t base, uint64_t count, uint64_t* out) {
  const int bytes = width(coded[0]);
  const int shift = coded[0] >> 3;
  const int unused = 64 - 8 * bytes;
  const uint8_t* at = coded + 1;
  for (uint64_t i = 0; i < count; ++i, at += bytes) {
    uint64_t raw;
    std::memcpy(&raw, at, 8);
    const int64_t value = static_cast<int64_t>(raw << unused) >> unused;
    base += static_cast<uint64_t>(value) << shift;
    out[i] = base;
  }
}

}  // namespace differences

}  // namespace simt
