#include "isa/launch_profiler.hpp"

#include <bit>

namespace simt {

void LaunchProfiler::execute(uint64_t first, uint64_t end, uint32_t threads) {
  std::vector<Footprint> footprints;
  const BlockCounts counts = source_.execute(first, end, &blocks_, threads, &footprints);
  for (size_t i = 0; i < counts.counts.size(); ++i) executions_[i % counts.blocks] += counts.counts[i];
  if (counts.executed) executed_ += *counts.executed;
  accesses_ += counts.accesses;
  for (const Footprint& footprint : footprints) add(footprint);
}

void LaunchProfiler::add(const Footprint& footprint) {
  uint64_t number = ~uint64_t{0};
  Page* page = nullptr;
  for (const LineAccess& access : footprint) {
    l2_sectors_ += static_cast<uint64_t>(std::popcount(access.sectors));
    const uint64_t line = access.line / LineAccess::line_bytes;
    if (line / page_lines != number) {
      number = line / page_lines;
      page = &pages_[number];
      if (page->empty()) page->resize(page_lines);
    }
    (*page)[line % page_lines] |= static_cast<uint8_t>(access.sectors << (access.write ? 4 : 0));
  }
}

uint64_t LaunchProfiler::different(int half) const {
  uint64_t sum = 0;
  for (const auto& [number, page] : pages_)
    for (const uint8_t bits : page)
      sum += static_cast<uint64_t>(std::popcount(uint32_t{bits} >> 4 * half & 15));
  return sum;
}

}  // namespace simt
