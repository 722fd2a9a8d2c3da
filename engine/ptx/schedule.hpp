#pragma once
#include "ptx/module.hpp"

namespace simt::ptx {

/// Reorders the instructions of each basic block as ptxas would about do it: loads and other slow
/// instructions before what does not need them, so that their latencies overlap. PTX comes unscheduled, and
/// an in-order machine would wait for each load in turn. What a program computes stays the same: dependences
/// through registers and memory are kept, and nothing moves across barriers, atomics, fences, calls, votes
/// and strong accesses.
///
/// List scheduling by the longest path to the block's end (Gibbons and Muchnick, 1986), over a window of the
/// next instructions, which bounds how many more values are live.
void schedule(Function& function, const Module& module);

}  // namespace simt::ptx
