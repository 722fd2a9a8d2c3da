#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "timing/control/controller.hpp"
#include "timing/core/cta_table.hpp"
#include "timing/warps/warp_table.hpp"

namespace simt {

/// An unfinished execution of a basic block.
struct BlockUnderWay {
  uint32_t warp = 0;   ///< in the CTA
  uint32_t block = 0;  ///< begun, or already taken from the stream
  Cycle elapsed = 0;   ///< since it began
};

/// A CTA whose simulation was stopped before its end.
struct DroppedCta {
  uint32_t sm = 0;
  std::shared_ptr<CtaStream> stream;
  uint32_t cta_slot = 0;
  Cycle begin = 0;
  std::vector<BlockUnderWay> blocks;  ///< if they are observed
  InstructionCounts buffered;         ///< taken from the stream, but not issued
};

/// Records what launches' controllers observe about the warps of an SM: finished warps and executed basic
/// blocks, by launch slot.
class WarpObserver {
 public:
  struct Observed {
    std::vector<FinishedWarp> warps;
    std::vector<ExecutedBlock> blocks;
  };

  WarpObserver(WarpTable& warps, const CtaTable& ctas, uint32_t launch_slots)
      : warps_(warps), ctas_(ctas), observed_(launch_slots) {}

  /// A warp of a launch with observed blocks issues a static instruction.
  void issued(uint32_t w, uint32_t index, Cycle now);
  void retires(uint32_t w, Cycle now);
  /// Appends the blocks that a warp has begun, or has taken from its stream. Its launch's blocks must be
  /// observed.
  void under_way(uint32_t w, Cycle now, std::vector<BlockUnderWay>& out) const;

  Observed& observed(uint16_t slot) { return observed_[slot]; }

 private:
  uint64_t number_of(const WarpTable::Warp& warp) const {
    return ctas_[warp.cta_slot].ordinal * warp.kernel->warps_per_cta + warp.index_in_cta;
  }

  WarpTable& warps_;
  const CtaTable& ctas_;
  std::vector<Observed> observed_;
};

}  // namespace simt
