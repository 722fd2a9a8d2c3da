#include "timing/launch/easing.hpp"

#include <algorithm>
#include <functional>

namespace simt {

double eased_cycles(std::vector<double>& left, double resident, double fastest, bool in_turn) {
  std::sort(left.begin(), left.end());
  if (in_turn) {
    // Warps with the least work left are preferred: as many run as can at once, and another begins whenever
    // one ends.
    std::vector<double> ends(static_cast<size_t>(std::max(1.0, resident / fastest)));
    for (const double each : left) {
      std::pop_heap(ends.begin(), ends.end(), std::greater<>{});
      ends.back() += each / fastest;
      std::push_heap(ends.begin(), ends.end(), std::greater<>{});
    }
    return *std::max_element(ends.begin(), ends.end());
  }
  double cycles = 0, before = 0;
  for (size_t i = 0; i < left.size(); ++i) {
    const double together = static_cast<double>(left.size() - i);
    const double rate = std::max(1.0, std::min(resident / together, fastest));
    cycles += (left[i] - before) / rate;
    before = left[i];
  }
  return cycles;
}

}  // namespace simt
