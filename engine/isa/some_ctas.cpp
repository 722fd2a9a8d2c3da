#include "isa/some_ctas.hpp"

#include <iterator>
#include <utility>

namespace simt {
namespace {

/// Adds what other CTAs do to what some do.
void append(BlockCounts& all, BlockCounts more) {
  all.warps_per_cta = more.warps_per_cta;
  all.blocks = more.blocks;
  all.counts.insert(all.counts.end(), more.counts.begin(), more.counts.end());
  all.complete = all.complete && more.complete;
  if (more.executed) {
    if (!all.executed) all.executed.emplace();
    *all.executed += *more.executed;
  }
  all.warp_instructions += more.warp_instructions;
  all.thread_instructions += more.thread_instructions;
  all.accesses += more.accesses;
}

}  // namespace

SomeCtas::SomeCtas(const std::shared_ptr<InstructionSource>& source, std::vector<uint64_t> ordinals)
    : source_(source->without_effect()), ordinals_(std::move(ordinals)) {
  if (!source_) source_ = source;
}

BlockCounts SomeCtas::preview(const std::vector<uint64_t>& ordinals, const BasicBlocks& blocks,
                              uint32_t threads) {
  std::vector<uint64_t> of_source;
  of_source.reserve(ordinals.size());
  for (const uint64_t ordinal : ordinals) of_source.push_back(ordinals_[ordinal]);
  return source_->preview(of_source, blocks, threads);
}

BlockCounts SomeCtas::execute(uint64_t first, uint64_t end, const BasicBlocks* blocks, uint32_t threads,
                              std::vector<Footprint>* footprints) {
  BlockCounts all;
  std::vector<Footprint> some;
  if (footprints) footprints->clear();
  while (first < end) {
    uint64_t next = first + 1;
    while (next < end && ordinals_[next] == ordinals_[next - 1] + 1) ++next;
    append(all, source_->execute(ordinals_[first], ordinals_[next - 1] + 1, blocks, threads,
                                 footprints ? &some : nullptr));
    if (footprints) std::move(some.begin(), some.end(), std::back_inserter(*footprints));
    first = next;
  }
  return all;
}

BlockCounts SomeCtas::finish(const std::vector<std::shared_ptr<CtaStream>>& begun, uint64_t first,
                             const BasicBlocks* blocks, uint32_t threads) {
  BlockCounts all = source_->finish(begun, source_->cta_count(), blocks, threads);
  append(all, execute(first, cta_count(), blocks, threads, nullptr));
  return all;
}

}  // namespace simt
