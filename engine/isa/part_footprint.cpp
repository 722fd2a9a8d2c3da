#include "isa/part_footprint.hpp"

#include <algorithm>
#include <utility>
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
    for (const Footprint& footprint : footprints) {
      ++ctas_;
      for (const LineAccess& access : footprint) add(access);
    }
  }
  return instructions;
}

PartFootprint::PartFootprint(InstructionSource& part, const std::vector<Others>& others, uint32_t threads) {
  warp_instructions_ = follow(part, threads, [&](const LineAccess& access) {
    Line& line = lines_[access.line];
    if (access.write && !line.written) leaves_values_ |= part.holds_values(access.line);
    (access.write ? line.written : line.read) |= access.sectors;
    if (std::exchange(line.last, ctas_) != ctas_) ++line.own;
  });
  for (const Others& some : others)
    other_warp_instructions_ += follow(*some.source, threads, [&](const LineAccess& access) {
      const auto found = lines_.find(access.line);
      if (found != lines_.end() && std::exchange(found->second.last, ctas_) != ctas_)
        found->second.others += some.each;
    });
}

uint64_t PartFootprint::shared() const {
  return static_cast<uint64_t>(
      std::ranges::count_if(lines_, [](const auto& line) { return line.second.others > 0; }));
}

double PartFootprint::of_others() const {
  double lines = 0;
  for (const auto& [_, line] : lines_) lines += 1 - line.share();
  return lines;
}

}  // namespace simt
