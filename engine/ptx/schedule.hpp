#pragma once
#include "ptx/module.hpp"

namespace simt::ptx {

/// Reorders the instructions of each basic block roughly as ptxas would: loads and other slow instructions
/// before those independent of them, so that their latencies overlap. PTX comes unscheduled, and an in-order
/// machine would wait for each load in turn. Results do not change: dependences through registers and memory
/// are kept, and nothing moves across barriers, atomics, fences, calls, votes and strong accesses.
///
/// List scheduling by the longest path to the end of the block (Gibbons and Muchnick, 1986), over a window of
/// the next instructions, which limits how many additional values are live.
void schedule(Function& function, const Module& module);

}  // namespace simt::ptx
