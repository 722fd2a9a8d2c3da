#pragma once
#include <cstdint>
#include <vector>

#include "timing/control/controller.hpp"
#include "timing/core/warp_observer.hpp"
#include "timing/launch/launch_record.hpp"

namespace simt {

/// Predicts how long CTAs take that are not simulated, from a controller's times per warp or per basic block.
/// In the latter case it executes the CTAs without timing, to count their blocks.
class CtaPrediction {
 public:
  /// `executed` accumulates the instructions executed; both must outlive this.
  CtaPrediction(InstructionSource& source, uint64_t ctas, uint32_t warps_per_cta, uint32_t threads,
                Sampled& executed)
      : source_(source),
        executed_sum_(executed),
        ctas_(ctas),
        warps_per_cta_(warps_per_cta),
        threads_(threads) {}

  /// CTAs from this one on are predicted; ~0 if none.
  uint64_t first() const { return first_; }
  bool begun() const { return first_ != none; }
  void begin(uint64_t first) { first_ = executed_ = first_counted_ = first; }
  /// Sets the times of warps or `blocks` to use from now on.
  void use(Decision times, const BasicBlocks* blocks, size_t sms);
  const Decision& times() const { return times_; }

  /// Core cycles that a CTA takes. Ordinals must ascend.
  double cycles(uint64_t cta);
  /// Core cycles left for each warp of a CTA dropped at `now`, the `index`-th of the dropped CTAs. `rest`
  /// counts the blocks that the dropped CTAs had not begun.
  std::vector<double> left_of(const DroppedCta& cta, const BlockCounts& rest, size_t index, Cycle now) const;

  /// Predicted CTAs below this ordinal have been executed.
  uint64_t executed() const { return executed_; }
  /// CTAs from executed() on have been executed together with `dropped` CTAs, which come first in `counts`.
  void executed_with(BlockCounts counts, size_t dropped);
  void executed_all() { executed_ = ctas_; }
  /// Executes the predicted CTAs not yet executed.
  void execute_rest();

  /// Whether warps get faster as others on their SM end.
  bool eases() const { return !ends_.empty(); }
  /// A warp of that SM is predicted to end at this cycle.
  void add_end(uint32_t sm, double cycle) {
    if (eases()) ends_[sm].push_back(cycle);
  }
  /// By SM: when the last of its predicted warps ends, if no ended CTA is replaced from `cycle` on. Empty if
  /// contention does not ease.
  std::vector<Cycle> eased_ends(Cycle cycle) const;

 private:
  static constexpr uint64_t none = ~uint64_t{0};
  void execute(uint64_t end, const BasicBlocks* blocks);

  InstructionSource& source_;
  Sampled& executed_sum_;
  uint64_t ctas_;
  uint32_t warps_per_cta_, threads_;
  uint64_t first_ = none, executed_ = 0;
  Decision times_;
  const BasicBlocks* blocks_ = nullptr;
  BlockCounts counts_;  // of CTAs from first_counted_ on
  uint64_t first_counted_ = 0;
  std::vector<std::vector<double>> ends_;  // of warps, by SM
};

}  // namespace simt
