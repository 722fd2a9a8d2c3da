#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>

#include "timing/base/request.hpp"
#include "timing/base/spec.hpp"
#include "timing/memory/clock.hpp"

namespace simt {

/// A slice's way to the memory of other devices (docs/model/l2.md): the latency of the link, and an equal
/// share of its bandwidth in each direction. Time is counted in L2 cycles.
class PeerPort {
 public:
  explicit PeerPort(const Spec& spec)
      : latency_(static_cast<uint64_t>(
            ceil(Wide{spec.peer_link.access_latency} * spec.clock.l2_mhz.khz, 1'000'000))) {
    const uint64_t mb_per_s = spec.peer_link.bandwidth ? spec.peer_link.bandwidth : spec.host_link.bandwidth;
    const uint64_t slices = uint64_t{spec.address_map.channels} * spec.address_map.slices_per_channel;
    sector_parts_ = static_cast<uint64_t>(
        ceil(Wide{sector_bytes} * slices * spec.clock.l2_mhz.khz * parts, Wide{mb_per_s} * 1000));
  }

  /// Sends an access to a sector, with data to the other device, from it, or both. Returns the cycle of the
  /// answer; nothing if the link is occupied throughout this cycle.
  std::optional<uint64_t> send(bool to_peer, bool from_peer, uint64_t cycle) {
    const uint64_t now = cycle * parts;
    if ((to_peer && to_free_at_ >= now + parts) || (from_peer && from_free_at_ >= now + parts)) return {};
    uint64_t end = now;
    if (to_peer) end = to_free_at_ = std::max(to_free_at_, now) + sector_parts_;
    // The way there takes all accesses as long, so the way back is reserved by the time of the request.
    if (from_peer) end = std::max(end, from_free_at_ = std::max(from_free_at_, now) + sector_parts_);
    return end / parts + (end % parts != 0) + latency_;
  }

 private:
  static constexpr uint64_t parts = 1024;  // of a cycle
  static constexpr Wide ceil(Wide a, Wide b) { return (a + b - 1) / b; }

  uint64_t latency_;
  uint64_t sector_parts_;  // for which a sector occupies a direction
  uint64_t to_free_at_ = 0, from_free_at_ = 0;
};

}  // namespace simt
