#pragma once
#include <vector>

namespace simt {

/// Cycles until the last of the warps that share an SM ends, when each gets faster as others end.
///
/// left: of each warp, cycles that it would need among as many as `resident`; sorted by this. What they share
/// is used fully, so among fewer each is faster by their ratio, but not by more than `fastest`, at which
/// nothing is waited for. in_turn: the scheduler prefers some, which run at `fastest` while others wait.
double eased_cycles(std::vector<double>& left, double resident, double fastest, bool in_turn);

}  // namespace simt
