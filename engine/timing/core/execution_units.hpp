#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "timing/memory/request.hpp"
#include "timing/spec.hpp"

namespace simt {

/// Tracks when the SM's execution units can accept their next instruction, and the result bus they share.
class ExecutionUnits {
 public:
  explicit ExecutionUnits(const SmSpec& spec) : bus_width_(spec.register_file.write_back_width) {
    for (size_t u = 0; u < units_.size(); ++u) units_[u].resize(spec.units[u].count);
  }

  uint32_t count(Unit unit) const { return static_cast<uint32_t>(units_[static_cast<size_t>(unit)].size()); }
  bool accepts(Unit unit, uint32_t k, Cycle now) const {
    return units_[static_cast<size_t>(unit)][k].free_at <= now;
  }
  Cycle free_at(Unit unit, uint32_t k) const { return units_[static_cast<size_t>(unit)][k].free_at; }
  /// Occupies the unit's entry for `interval` cycles.
  void start(Unit unit, uint32_t k, Cycle now, uint32_t interval) {
    units_[static_cast<size_t>(unit)][k].free_at = now + interval;
  }

  /// Whether the unit's last stage and a slot of the result bus are free `latency` cycles from now; reserves
  /// them if so.
  bool reserve_result(Unit unit, uint32_t k, Cycle now, uint32_t latency) {
    One& one = units_[static_cast<size_t>(unit)][k];
    const Cycle elapsed = now - one.stage_base;
    one.stages = elapsed >= 64 ? 0 : one.stages >> elapsed;
    one.stage_base = now;
    const uint64_t stage = latency < 64 ? uint64_t{1} << latency : 0;
    if (one.stages & stage) return false;
    uint64_t& slot = bus_[(now + latency) % bus_.size()];
    if (slot >> bus_bits != now + latency) slot = (now + latency) << bus_bits;
    if ((slot & ((uint64_t{1} << bus_bits) - 1)) >= bus_width_) return false;
    ++slot;
    one.stages |= stage;
    return true;
  }

 private:
  struct One {
    Cycle free_at = 0;
    Cycle stage_base = 0;
    uint64_t stages = 0;  // bit i: a result leaves the unit i cycles after stage_base
  };
  std::array<std::vector<One>, static_cast<size_t>(Unit::Count)> units_;
  // A cycle, and in the low bits how many results leave in it.
  static constexpr uint32_t bus_bits = 16;
  std::array<uint64_t, 512> bus_{};
  uint32_t bus_width_;
};

}  // namespace simt
