#pragma once
#include <cstdint>
#include <cstring>
#include <string>

#include "machine/access.hpp"
#include "machine/observer.hpp"

namespace simt::functional {

/// An mbarrier object: 64 bits of shared memory, as sm_90 keeps them, since machine code initialises objects
/// and takes states apart. Bit 0: set while the object is initialised (our own); 1-20: minus the arrivals
/// expected in each phase; 21-42: bytes still outstanding from transactions (signed); 43-62: minus the
/// pending arrivals; 63: parity of the current phase.
class Mbarrier {
 public:
  static constexpr uint32_t max_count = (1u << 20) - 1;
  static constexpr uint32_t expected_bit = 1, transactions_bit = 21, pending_bit = 43, parity_bit = 63;

  /// The object at `address` in `space`. Throws Fault if that is not valid memory.
  Mbarrier(Context& c, AccessSpace space, uint64_t address, int lane)
      : context_(c),
        lane_(lane),
        address_(address),
        generic_(generic_address(space, address)),
        at_(host_address(c, space, address, 8, lane)) {
    if (address % 8) misaligned(address, 8, lane);
    std::memcpy(&word_, at_, 8);
  }

  void initialise(uint32_t count) {
    if (count == 0 || count > max_count) fail("is initialised for " + std::to_string(count) + " arrivals");
    word_ = initial(count);
    store();
  }
  static constexpr uint64_t initial(uint32_t count) {
    return valid | negative(count) << expected_bit | negative(count) << pending_bit;
  }
  /// As machine code initialises it: stores a word. Returns what was there.
  uint64_t exchange(uint64_t word) {
    const uint64_t before = word_;
    word_ = word | valid;
    if (expected() == 0 || pending(word_) == 0) fail("is initialised for 0 arrivals");
    store();
    return before;
  }
  void invalidate() {
    check();
    word_ = 0;
    store();
  }
  /// The value of a state token: the object as it was before an arrival.
  uint64_t word() const { return word_; }
  static uint32_t pending(uint64_t word) { return static_cast<uint32_t>(negative(word >> pending_bit)); }
  /// Bytes that a phase still waits for; negative: that many more have arrived than were expected.
  static int64_t bytes(uint64_t word) { return static_cast<int64_t>(word << transactions_bit) >> 42; }
  static uint32_t parity(uint64_t word) { return static_cast<uint32_t>(word >> parity_bit); }

  bool completed(uint32_t of_parity) {
    check();
    const bool done = parity(word_) != of_parity;
    if (done && context_.observer) context_.observer->waited(context_, generic_, lane_);
    return done;
  }
  void arrive(uint32_t count) {
    check();
    if (count == 0 || count > pending(word_))
      fail("gets " + std::to_string(count) + " arrivals where " + std::to_string(pending(word_)) +
           " are pending");
    set_pending(pending(word_) - count);
    finish();
  }
  /// Later phases expect `count` fewer arrivals.
  void drop(uint32_t count) {
    check();
    if (count > expected()) fail("loses more arrivals than it expects");
    const uint64_t rest = negative(expected() - count);
    word_ = (word_ & ~(uint64_t{max_count} << expected_bit)) | rest << expected_bit;
  }
  /// The current phase expects `bytes` more; negative: that many have arrived.
  void expect(int64_t bytes) {
    check();
    const int64_t now = Mbarrier::bytes(word_) + bytes;
    if (now > int64_t{max_count} || now < -int64_t{max_count})
      fail("waits for " + std::to_string(now) + " bytes, which is out of range");
    word_ = (word_ & ~(transaction_mask << transactions_bit)) |
            (static_cast<uint64_t>(now) & transaction_mask) << transactions_bit;
    finish();
  }

 private:
  static constexpr uint64_t valid = 1;
  static constexpr uint64_t transaction_mask = (uint64_t{1} << 22) - 1;

  /// Minus a count, in as many bits as counts have.
  static constexpr uint64_t negative(uint64_t count) { return (0 - count) & max_count; }
  uint32_t expected() const { return static_cast<uint32_t>(negative(word_ >> expected_bit)); }
  void set_pending(uint32_t count) {
    word_ = (word_ & ~(uint64_t{max_count} << pending_bit)) | negative(count) << pending_bit;
  }
  void finish() {
    const bool complete = pending(word_) == 0 && bytes(word_) == 0;
    if (context_.observer) context_.observer->signals(context_, generic_, lane_, complete);
    if (complete) {
      word_ ^= uint64_t{1} << parity_bit;
      set_pending(expected());
    }
    store();
  }
  void store() { std::memcpy(at_, &word_, 8); }
  void check() const {
    // Machine code of sm_100 may initialise an object with an ordinary store.
    const bool is_stored = expected() != 0 && context_.grid->program().is_machine_code();
    if (!(word_ & valid) && !is_stored) fail("has not been initialised");
  }
  [[noreturn]] void fail(const std::string& what) const {
    Fault fault("mbarrier", "the mbarrier at " + std::to_string(address_) + " of shared memory " + what,
                lane_);
    fault.address = address_;
    fault.has_address = true;
    throw fault;
  }

  Context& context_;
  int lane_;
  uint64_t address_, generic_;
  std::byte* at_;
  uint64_t word_ = 0;
};

/// Calls f(mbarrier, lane) for the active lanes, in ascending order. Addresses: Op::a and Op::immediate.
template <class F>
void each_mbarrier(Context& c, const Op& op, Address::Base base, AccessSpace space, F f) {
  uint64_t address[warp_lanes];
  lane_addresses(c, op, base, address);
  record_access(c, space, address);
  each_lane(c, [&](int i) {
    Mbarrier m(c, space, address[i], i);
    f(m, i);
  });
}

}  // namespace simt::functional
