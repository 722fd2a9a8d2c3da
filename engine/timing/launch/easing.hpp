#pragma once
#include <vector>

namespace simt {

/// Cycles until the last of the warps sharing an SM ends, if each gets faster as others end.
///
/// left: for each warp, the cycles it would need with `resident` warps, in ascending order. The shared
/// resource is fully used, so with fewer warps each is faster by the ratio of their numbers, up to `fastest`,
/// where there is no contention. in_turn: the scheduler prefers some warps, which run at `fastest` while
/// others wait.
double eased_cycles(std::vector<double>& left, double resident, double fastest, bool in_turn);

}  // namespace simt
