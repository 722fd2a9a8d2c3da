#include "isa/instruction_source.hpp"

#include <algorithm>

namespace simt {
namespace {

constexpr uint64_t ctas_searched = 8;  ///< for leaders

/// Calls `see(warp, previous, index)` for each record of a CTA that is replayed.
template <class See>
void walk(CtaStream& stream, See see) {
  DynamicRecord record;
  for (uint32_t warp = 0; warp < stream.warps(); ++warp) {
    uint32_t previous = BasicBlocks::none;
    while (stream.next(warp, record, 0) == CtaStream::Next::Record) {
      see(warp, previous, record.static_index);
      previous = record.static_index;
    }
  }
}

}  // namespace

std::vector<uint32_t> InstructionSource::leaders() {
  std::vector<uint8_t> leads(instructions().size());
  const uint64_t searched = std::min(ctas_searched, cta_count());
  for (uint64_t i = 0; i < searched; ++i) {
    // The middles of equal parts of the grid.
    const auto stream = open_cta((2 * i + 1) * cta_count() / (2 * searched));
    walk(*stream, [&](uint32_t, uint32_t previous, uint32_t index) {
      if (index != previous + 1) leads[index] = 1;
    });
  }
  std::vector<uint32_t> result;
  for (uint32_t i = 0; i < leads.size(); ++i)
    if (leads[i]) result.push_back(i);
  return result;
}

BlockCounts InstructionSource::preview(const std::vector<uint64_t>& ordinals, const BasicBlocks& blocks,
                                       uint32_t) {
  BlockCounts result;
  result.blocks = blocks.count();
  std::vector<std::vector<uint32_t>> of_ctas;
  for (const uint64_t ordinal : ordinals) {
    const auto stream = open_cta(ordinal);
    std::vector<uint32_t>& counts = of_ctas.emplace_back(size_t{stream->warps()} * result.blocks);
    walk(*stream, [&](uint32_t warp, uint32_t previous, uint32_t index) {
      if (blocks.begins(previous, index)) ++counts[size_t{warp} * result.blocks + blocks.of(index)];
    });
    result.warps_per_cta = std::max(result.warps_per_cta, stream->warps());
  }
  const size_t of_cta = size_t{result.warps_per_cta} * result.blocks;
  result.counts.resize(of_cta * ordinals.size());
  for (size_t i = 0; i < of_ctas.size(); ++i)
    std::copy(of_ctas[i].begin(), of_ctas[i].end(),
              result.counts.begin() + static_cast<std::ptrdiff_t>(i * of_cta));
  return result;
}

BlockCounts InstructionSource::execute(uint64_t first, uint64_t end, const BasicBlocks* blocks,
                                       uint32_t threads) {
  if (!blocks) return {};
  std::vector<uint64_t> ordinals(end - first);
  for (uint64_t i = first; i < end; ++i) ordinals[i - first] = i;
  return preview(ordinals, *blocks, threads);
}

void InstructionSource::finish(const std::vector<std::shared_ptr<CtaStream>>&, uint64_t, uint32_t) {}

}  // namespace simt
