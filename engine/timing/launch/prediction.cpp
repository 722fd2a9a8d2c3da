#include "timing/launch/prediction.hpp"

#include <algorithm>
#include <cmath>

#include "timing/launch/easing.hpp"

namespace simt {
namespace {

constexpr uint64_t counted_at_once = 1024;  // CTAs whose blocks are counted ahead of their dispatch

}  // namespace

void CtaPrediction::use(Decision times, const BasicBlocks* blocks, size_t sms) {
  times_ = std::move(times);
  blocks_ = blocks;
  ends_.resize(times_.sm_warps.empty() ? 0 : sms);
}

void CtaPrediction::execute(uint64_t end, const BasicBlocks* blocks) {
  counts_ = source_.execute(executed_, end, blocks, threads_, nullptr);
  executed_sum_.add_executed(counts_);
  first_counted_ = executed_;
  executed_ = end;
}

void CtaPrediction::execute_rest() {
  if (first_ < ctas_ && executed_ < ctas_) execute(ctas_, nullptr);
}

void CtaPrediction::executed_with(BlockCounts counts, size_t dropped) {
  const size_t of_dropped = dropped * counts.warps_per_cta * counts.blocks;
  counts.counts.erase(counts.counts.begin(), counts.counts.begin() + static_cast<std::ptrdiff_t>(of_dropped));
  counts_ = std::move(counts);
  first_counted_ = executed_;
  executed_ = ctas_;
}

double CtaPrediction::cycles(uint64_t cta) {
  const std::vector<double>& cycles = times_.block_cycles;
  if (cycles.empty()) return times_.warp_cycles;
  if (cta >= executed_) {
    const uint64_t cluster = source_.cluster_size();
    execute(std::min(ctas_, cta + (counted_at_once / cluster + 1) * cluster), blocks_);
  }
  double longest = 0;
  for (uint32_t w = 0; w < counts_.warps_per_cta; ++w) {
    const uint32_t* counts =
        counts_.counts.data() + ((cta - first_counted_) * counts_.warps_per_cta + w) * counts_.blocks;
    double sum = 0;
    for (uint32_t b = 0; b < counts_.blocks; ++b) sum += counts[b] * cycles[b];
    longest = std::max(longest, sum);
  }
  return longest;
}

std::vector<double> CtaPrediction::left_of(const DroppedCta& cta, const BlockCounts& rest, size_t index,
                                           Cycle now) const {
  const std::vector<double>& cycles = times_.block_cycles;
  std::vector<double> left(warps_per_cta_);
  if (cycles.empty()) {
    const double elapsed = static_cast<double>(now - cta.begin);
    std::fill(left.begin(), left.end(), std::max(0.0, times_.warp_cycles - elapsed));
  } else {
    for (const BlockUnderWay& b : cta.blocks)
      left[b.warp] += std::max(0.0, cycles[b.block] - static_cast<double>(b.elapsed));
    for (uint32_t w = 0; w < rest.warps_per_cta; ++w)
      for (uint32_t b = 0; b < rest.blocks; ++b)
        left[w] += rest.counts[(index * rest.warps_per_cta + w) * rest.blocks + b] * cycles[b];
  }
  if (!times_.sm_scale.empty())
    for (double& l : left) l *= times_.sm_scale[cta.sm];
  return left;
}

std::vector<Cycle> CtaPrediction::eased_ends(Cycle cycle) const {
  std::vector<Cycle> ends;
  std::vector<double> left;
  for (size_t sm = 0; sm < ends_.size(); ++sm) {
    left.clear();
    for (const double end : ends_[sm])
      if (end > static_cast<double>(cycle)) left.push_back(end - static_cast<double>(cycle));
    const double cycles =
        eased_cycles(left, times_.sm_warps[sm], std::max(1.0, times_.fastest), times_.in_turn);
    ends.push_back(cycle + static_cast<Cycle>(std::llround(cycles)));
  }
  return ends;
}

}  // namespace simt
