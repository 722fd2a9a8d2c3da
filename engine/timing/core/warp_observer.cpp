#include "timing/core/warp_observer.hpp"

#include <algorithm>

namespace simt {

void WarpObserver::issued(uint32_t w, uint32_t index, Cycle now) {
  WarpTable::Warp& warp = warps_[w];
  const BasicBlocks& blocks = *warp.kernel->observed_blocks;
  if (blocks.begins(warp.last_index, index)) {
    if (warp.last_index != BasicBlocks::none)
      observed_[warp.kernel->slot].blocks.push_back({warp.block, number_of(warp), warp.block_begin, now});
    warp.block = blocks.of(index);
    warp.block_begin = now;
  }
  warp.last_index = index;
}

void WarpObserver::retires(uint32_t w, Cycle now) {
  const WarpTable::Warp& warp = warps_[w];
  if (warp.dropped) return;
  const CtaTable::Cta& cta = ctas_[warp.cta_slot];
  Observed& observed = observed_[warp.kernel->slot];
  if (warp.kernel->observes_warps)
    observed.warps.push_back({cta.ordinal, warp.index_in_cta, cta.begin, now + 1});
  if (warp.kernel->observed_blocks && warp.last_index != BasicBlocks::none)
    observed.blocks.push_back({warp.block, number_of(warp), warp.block_begin, now + 1});
}

void WarpObserver::under_way(uint32_t w, Cycle now, std::vector<BlockUnderWay>& out) const {
  const WarpTable::Warp& warp = warps_[w];
  const BasicBlocks& blocks = *warp.kernel->observed_blocks;
  if (warp.last_index != BasicBlocks::none)
    out.push_back({warp.index_in_cta, warp.block, now - std::min(now, warp.block_begin)});
  uint32_t previous = warp.last_index;
  warps_.for_each_ahead(w, [&](uint32_t index, uint64_t) {
    if (blocks.begins(previous, index)) out.push_back({warp.index_in_cta, blocks.of(index), 0});
    previous = index;
  });
}

}  // namespace simt
