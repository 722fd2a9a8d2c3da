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

/// The ticks of one clock domain in turn, each with the first tick of another domain not before it, without a
/// division for each.
class TickSequence {
 public:
  TickSequence(uint64_t from_khz, uint64_t to_khz) : from_khz_(from_khz), to_khz_(to_khz) { move_to(0); }

  uint64_t tick() const { return tick_; }
  uint64_t due() const { return due_; }
  void advance() {
    ++tick_;
    due_ += whole_;
    rest_ += part_;
    if (rest_ < from_khz_) return;
    rest_ -= from_khz_;
    ++due_;
  }
  /// To the first tick, from the present one on, that is due at `due` or later.
  void skip_to_due(uint64_t due) {
    constexpr uint32_t near = 16;  // fewer steps than a division takes
    for (uint32_t i = 0; i < near && due_ < due; ++i) advance();
    if (due_ < due) move_to(ClockRatio{to_khz_, from_khz_}.after(due - 1));
  }

 private:
  void move_to(uint64_t tick) {
    tick_ = tick;
    due_ = ClockRatio{from_khz_, to_khz_}.at_or_after(tick);
    rest_ = tick * to_khz_ + from_khz_ - 1 - due_ * from_khz_;  // exact, though the terms may overflow
  }

  uint64_t from_khz_, to_khz_;
  uint64_t whole_ = to_khz_ / from_khz_, part_ = to_khz_ % from_khz_;
  uint64_t tick_ = 0, due_ = 0, rest_ = 0;
};

}  // namespace simt
