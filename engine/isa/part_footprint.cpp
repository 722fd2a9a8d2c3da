#include "isa/part_footprint.hpp"

#include <algorithm>
#include <vector>

namespace simt {

template <class Add>
uint64_t PartFootprint::follow(InstructionSource& source, uint32_t threads, Add add) {
  std::vector<Footprint> footprints;
  uint64_t instructions = 0;
  const uint64_t cluster = source.cluster_size(), at_once = (followed_at_once / cluster + 1) * cluster;
  for (uint64_t first = 0; first < source.cta_count(); first += at_once) {
    const uint64_t end = std::min(first + at_once, source.cta_count());
    instructions += source.execute(first, end, nullptr, threads, &footprints).warp_instructions;
    for (const Footprint& footprint : footprints)
      for (const LineAccess& access : footprint) add(access);
  }
  return instructions;
}

PartFootprint::PartFootprint(InstructionSource& part, InstructionSource& others, uint32_t threads) {
  warp_instructions_ = follow(part, threads, [&](const LineAccess& access) {
    Line& line = lines_[access.line];
    if (access.write && !line.written) leaves_values_ |= part.holds_values(access.line);
    (access.write ? line.written : line.read) |= access.sectors;
  });
  other_warp_instructions_ = follow(others, threads, [&](const LineAccess& access) {
    const auto found = lines_.find(access.line);
    if (found == lines_.end() || found->second.shared) return;
    found->second.shared = true;
    ++shared_;
  });
}

}  // namespace simt
