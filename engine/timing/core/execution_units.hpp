#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "timing/base/request.hpp"
#include "timing/base/spec.hpp"

namespace simt {

/// Tracks when the SM's execution units can accept their next instruction, and the result bus they share.
/// A unit has as many places as the SM has units of the kind, which its users (the schedulers, or the latches
/// in front of it) take in turn.
class ExecutionUnits {
 public:
  explicit ExecutionUnits(const SmSpec& spec) : bus_width_(spec.register_file.write_back_width) {
    for (size_t u = 0; u < unit_count; ++u) {
      counts_[u] = static_cast<uint16_t>(spec.units[u].count);
      first_[u] = static_cast<uint16_t>(all_.size());
      if (counts_[u] == 0) continue;
      for (uint32_t user = 0; user < max_users; ++user)
        places_[u][user] = static_cast<uint16_t>(first_[u] + user % counts_[u]);
      all_.resize(all_.size() + counts_[u]);
    }
  }

  /// The place that a user takes.
  uint32_t place(Unit unit, uint32_t user) const { return places_[static_cast<size_t>(unit)][user]; }
  /// The next place of the unit; after the last, its first.
  uint32_t next(Unit unit, uint32_t place) const {
    const auto u = static_cast<size_t>(unit);
    return place + 1 < first_[u] + counts_[u] ? place + 1 : first_[u];
  }
  uint32_t count(Unit unit) const { return counts_[static_cast<size_t>(unit)]; }
  bool accepts(uint32_t place, Cycle now) const { return all_[place].free_at <= now; }
  Cycle free_at(uint32_t place) const { return all_[place].free_at; }
  /// Occupies a place for `interval` cycles.
  void occupy(uint32_t place, Cycle now, uint32_t interval) { all_[place].free_at = now + interval; }
  /// Occupies a place of the unit for `interval` cycles, during which refused() knows of it.
  void start(Unit unit, uint32_t place, Cycle now, uint32_t interval) {
    const auto u = static_cast<size_t>(unit);
    occupy(place, now, interval);
    busy_ |= 1u << u;
    all_free_at_[u] = std::max(all_free_at_[u], now + interval);
  }
  /// Bit per unit whose place for this user accepts nothing. `now` never decreases.
  uint32_t refused(uint32_t user, Cycle now) {
    uint32_t refused = 0;
    for (uint32_t rest = busy_; rest; rest &= rest - 1) {
      const auto u = static_cast<uint32_t>(std::countr_zero(rest));
      busy_ ^= uint32_t{all_free_at_[u] <= now} << u;
      refused |= uint32_t{!accepts(places_[u][user], now)} << u;
    }
    return refused;
  }

  /// Whether the unit's last stage and a slot of the result bus are free `latency` cycles from now; reserves
  /// them if so.
  bool reserve_result(uint32_t place, Cycle now, uint32_t latency) {
    One& one = all_[place];
    const Cycle elapsed = now - one.stage_base;
    one.stages = elapsed >= 64 ? 0 : one.stages >> elapsed;
    one.stage_base = now;
    const uint64_t stage = latency < 64 ? uint64_t{1} << latency : 0;
    if (one.stages & stage) return false;
    uint64_t& slot = bus_[(now + latency) % bus_.size()];
    const uint64_t empty = (now + latency) << bus_bits;  // more than that of any earlier cycle
    slot = std::max(slot, empty);
    if (slot - empty >= bus_width_) return false;
    ++slot;
    one.stages |= stage;
    return true;
  }

 private:
  static constexpr size_t unit_count = static_cast<size_t>(Unit::Count);
  static constexpr uint32_t max_users = 8;  // sub-cores
  struct One {
    Cycle free_at = 0;
    Cycle stage_base = 0;
    uint64_t stages = 0;  // bit i: a result leaves the unit i cycles after stage_base
  };
  uint32_t busy_ = 0;                            // bit per unit; may be out of date
  std::array<Cycle, unit_count> all_free_at_{};  // of busy units
  std::array<std::array<uint16_t, max_users>, unit_count> places_{};
  std::array<uint16_t, unit_count> first_{}, counts_{};
  std::vector<One> all_;  // unit by unit
  // A cycle, and in the low bits how many results leave in it.
  static constexpr uint32_t bus_bits = 16;
  std::array<uint64_t, 512> bus_{};
  uint32_t bus_width_;
};

}  // namespace simt
