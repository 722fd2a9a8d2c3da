#pragma once

namespace simt::driver {

/// Starts, once, the thread that runs submitted work ahead while the program makes no call: when the program
/// keeps accessing memory that kernels can access as well, when a host function is queued, or when nothing is
/// timed.
void run_ahead_when_idle();
/// Whether there is that thread.
bool runs_ahead();

}  // namespace simt::driver
