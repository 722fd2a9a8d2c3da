#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "trace/trace_error.hpp"

/// The trace store's integers: little-endian base 128, with signed values zigzag-encoded.
namespace simt {

inline uint64_t fold_sign(int64_t value) {
  return (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
}
inline int64_t unfold_sign(uint64_t value) {
  return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
}

inline void put_varint(std::string& out, uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

inline void put_string(std::string& out, std::string_view text) {
  put_varint(out, text.size());
  out.append(text);
}

/// Reads coded integers; throws TraceError at the end of the bytes.
class ByteReader {
 public:
  ByteReader() = default;
  ByteReader(const uint8_t* begin, const uint8_t* end) : at_(begin), end_(end) {}

  uint8_t byte() {
    if (at_ == end_) corrupted();
    return *at_++;
  }
  uint64_t varint() {
    uint8_t b = byte();
    if (b < 0x80) return b;
    uint64_t value = b & 0x7f;
    for (int shift = 7; shift < 64; shift += 7) {
      b = byte();
      value |= static_cast<uint64_t>(b & 0x7f) << shift;
      if (b < 0x80) return value;
    }
    corrupted();
  }
  int64_t signed_varint() { return unfold_sign(varint()); }
  /// A count of items, each of which takes at least `bytes_each` of the remaining bytes.
  uint64_t count(uint64_t bytes_each = 1) {
    const uint64_t n = varint();
    if (n > left() / bytes_each) corrupted();
    return n;
  }
  const uint8_t* take(uint64_t bytes) {
    if (bytes > left()) corrupted();
    const uint8_t* start = at_;
    at_ += bytes;
    return start;
  }
  std::string_view string() {
    const uint64_t size = count();
    return {reinterpret_cast<const char*>(take(size)), size};
  }
  uint64_t left() const { return static_cast<uint64_t>(end_ - at_); }
  const uint8_t* position() const { return at_; }
  [[noreturn]] static void corrupted() { throw TraceError("the trace store is corrupted"); }

 private:
  const uint8_t* at_ = nullptr;
  const uint8_t* end_ = nullptr;
};

}  // namespace simt
