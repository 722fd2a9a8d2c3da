#pragma once
#include <cstdint>
#include <utility>
#include <vector>

namespace simt::check {

/// Whose accesses a clock counts: those of a CTA, of a warp, or of a lane.
using Party = uint64_t;
inline Party party(uint64_t cta) {
  return cta << 13;
}
inline Party party(uint64_t cta, uint32_t warp) {
  return cta << 13 | uint64_t{warp + 1} << 6;
}
inline Party party(uint64_t cta, uint32_t warp, uint32_t lane) {
  return party(cta, warp) | (lane + 1);
}

/// A sparse vector clock: up to which clock the accesses of parties are known to have happened.
class Knowledge {
 public:
  bool empty() const { return clocks_.empty(); }
  void clear() { clocks_.clear(); }
  uint32_t of(Party who) const;
  void raise(Party who, uint32_t clock);
  void join(const Knowledge& other);

 private:
  std::vector<std::pair<Party, uint32_t>> clocks_;  ///< by party, ascending
};

}  // namespace simt::check
