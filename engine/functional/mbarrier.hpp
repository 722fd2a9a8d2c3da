#pragma once
#include <cstdint>
#include <cstring>
#include <string>

#include "functional/access.hpp"

namespace simt::functional {

/// An mbarrier object: 64 bits of shared memory, in our own layout. Bits 0-19: pending arrivals; 20-39:
/// arrivals expected in each phase; 40-61: bytes still outstanding from transactions (signed); 62: parity of
/// the current phase; 63: set while the object is initialised.
class Mbarrier {
 public:
  static constexpr uint32_t max_count = (1u << 20) - 1;

  /// The object at `address` in `space`. Throws Fault if that is not valid memory.
  Mbarrier(Context& c, AccessSpace space, uint64_t address, int lane)
      : lane_(lane), address_(address), at_(host_address(c, space, address, 8, lane)) {
    if (address % 8) misaligned(address, 8, lane);
    std::memcpy(&word_, at_, 8);
  }

  void initialise(uint32_t count) {
    if (count == 0 || count > max_count) fail("is initialised for " + std::to_string(count) + " arrivals");
    word_ = valid | uint64_t{count} << 20 | count;
    store();
  }
  void invalidate() {
    check();
    word_ = 0;
    store();
  }
  /// The value of a state token: the object as it was before an arrival.
  uint64_t word() const { return word_; }
  static uint32_t pending(uint64_t word) { return static_cast<uint32_t>(word & max_count); }
  static uint32_t parity(uint64_t word) { return static_cast<uint32_t>(word >> 62 & 1); }

  bool completed(uint32_t of_parity) {
    check();
    return parity(word_) != of_parity;
  }
  void arrive(uint32_t count) {
    check();
    if (count == 0 || count > pending(word_))
      fail("gets " + std::to_string(count) + " arrivals where " + std::to_string(pending(word_)) +
           " are pending");
    word_ -= count;
    finish();
  }
  /// Later phases expect `count` fewer arrivals.
  void drop(uint32_t count) {
    check();
    const uint32_t expected = static_cast<uint32_t>(word_ >> 20 & max_count);
    if (count > expected) fail("loses more arrivals than it expects");
    word_ -= uint64_t{count} << 20;
  }
  /// The current phase expects `bytes` more; negative: that many have arrived.
  void expect(int64_t bytes) {
    check();
    const int64_t now = transactions() + bytes;
    if (now > int64_t{max_count} || now < -int64_t{max_count})
      fail("waits for " + std::to_string(now) + " bytes, which is out of range");
    word_ = (word_ & ~(transaction_mask << 40)) | (static_cast<uint64_t>(now) & transaction_mask) << 40;
    finish();
  }

 private:
  static constexpr uint64_t valid = uint64_t{1} << 63;
  static constexpr uint64_t transaction_mask = (uint64_t{1} << 22) - 1;

  int64_t transactions() const { return static_cast<int64_t>(word_ << 2) >> 42; }
  void finish() {
    if (pending(word_) == 0 && transactions() == 0) {
      word_ ^= uint64_t{1} << 62;
      word_ |= word_ >> 20 & max_count;
    }
    store();
  }
  void store() { std::memcpy(at_, &word_, 8); }
  void check() const {
    if (!(word_ & valid)) fail("has not been initialised");
  }
  [[noreturn]] void fail(const std::string& what) const {
    Fault fault("mbarrier", "the mbarrier at " + std::to_string(address_) + " of shared memory " + what,
                lane_);
    fault.address = address_;
    fault.has_address = true;
    throw fault;
  }

  int lane_;
  uint64_t address_;
  std::byte* at_;
  uint64_t word_ = 0;
};

}  // namespace simt::functional
