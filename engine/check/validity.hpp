#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

namespace simt::check {

/// Which bytes of a small memory hold a value.
class ByteSet {
 public:
  void reset(uint64_t bytes) { words_.assign(bytes / 64 + 2, 0); }
  bool empty() const { return words_.empty(); }
  uint64_t size() const { return 64 * words_.size() - 64; }
  /// Whether the bytes hold a value, from now on. At most 64.
  void set(uint64_t at, uint64_t bytes, uint64_t holds) {
    const uint64_t mask = bytes < 64 ? (uint64_t{1} << bytes) - 1 : ~uint64_t{0};
    const uint64_t shift = at % 64;
    uint64_t& low = words_[at / 64];
    low = (low & ~(mask << shift)) | (holds & mask) << shift;
    if (shift == 0 || shift + bytes <= 64) return;
    uint64_t& high = words_[at / 64 + 1];
    high = (high & ~(mask >> (64 - shift))) | (holds & mask) >> (64 - shift);
  }
  /// A bit for each byte that holds no value. At most 64.
  uint64_t missing(uint64_t at, uint64_t bytes) const {
    const uint64_t mask = bytes < 64 ? (uint64_t{1} << bytes) - 1 : ~uint64_t{0}, shift = at % 64;
    uint64_t holds = words_[at / 64] >> shift;
    if (shift) holds |= words_[at / 64 + 1] << (64 - shift);
    return ~holds & mask;
  }
  /// Whether bytes [at, at + bytes) all hold a value; false also if they are too many to tell soon.
  bool holds_all(uint64_t at, uint64_t bytes) const {
    if (bytes > 1024) return false;
    for (uint64_t done = 0; done < bytes; done += 64)
      if (missing(at + done, std::min<uint64_t>(64, bytes - done))) return false;
    return true;
  }
  /// Bytes [at, at + bytes), however many.
  void fill(uint64_t at, uint64_t bytes) {
    for (uint64_t done = 0; done < bytes; done += 64)
      set(at + done, std::min<uint64_t>(64, bytes - done), ~uint64_t{0});
  }

 private:
  std::vector<uint64_t> words_;
};

/// Which bytes of device memory hold a value: all but those of allocations that nobody has written to yet.
class Validity {
 public:
  /// An allocation that holds nothing.
  void begin(uint64_t address, uint64_t bytes);
  /// It is freed, or its contents no longer matter.
  void end(uint64_t address);
  void fill(uint64_t address, uint64_t bytes);
  void set(uint64_t address, uint64_t bytes, uint64_t holds);
  uint64_t missing(uint64_t address, uint64_t bytes);
  /// Whether all hold a value; false also if that takes long to tell.
  bool holds_all(uint64_t address, uint64_t bytes);

 private:
  struct Fresh {
    uint64_t end = 0;
    ByteSet bytes;
  };
  /// The fresh allocation that contains an address; nullptr if there is none.
  Fresh* find(uint64_t address, uint64_t& begin);

  std::map<uint64_t, Fresh> fresh_;
  // Between which addresses what was found last is the answer.
  uint64_t low_ = 1, high_ = 0, begin_ = 0;
  Fresh* found_ = nullptr;
};

}  // namespace simt::check
