#pragma once
#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "machine/grid.hpp"

namespace simt::functional {

/// The execution of part of a grid without timing, which can pause.
class GridRun {
 public:
  GridRun(Grid& grid, Grid::Part part, uint32_t threads);
  ~GridRun();
  GridRun(const GridRun&) = delete;
  GridRun& operator=(const GridRun&) = delete;

  /// Runs all CTAs, on several host threads, or in turns where their order can matter. Polls `stop`, which
  /// ends it. Pauses after the turn in which a host thread has executed `most` warp instructions. Throws
  /// ProgramFault.
  ///
  /// False if it has paused, and goes on when called again.
  bool advance(const std::function<bool()>& stop, uint64_t most = UINT64_MAX);
  /// What has been executed so far.
  Grid::Counts counts() const;
  /// At a pause: whether no warp has been in a new state at many of the last pauses. Unless memory is changed
  /// from outside, they will then repeat the same instructions for ever.
  bool repeats();
  /// Reports such warps. Throws ProgramFault.
  [[noreturn]] void report_endless_wait();

 private:
  struct RunningCluster;
  struct Worker;

  /// Runs CTAs whose order does not matter, on several host threads.
  bool run_unordered(const std::function<bool()>& stop, uint64_t most);
  /// Runs CTAs in turns, as many at once as the machine holds.
  bool run_in_turns(const std::function<bool()>& stop, uint64_t most);
  bool run_turn(Worker& worker, RunningCluster& cluster, uint64_t turn);
  std::vector<Cta*> begun_ctas();
  /// Identifies what a warp does next, if memory does not change.
  uint64_t state_of(const Warp& warp) const;
  uint64_t clusters() const { return part_.begun.size() + part_.count; }

  Grid& grid_;
  Grid::Part part_;
  bool complete_ = true;  ///< false: stopped, or given up
  std::vector<std::unique_ptr<Worker>> workers_;
  std::atomic<uint64_t> next_{0};      ///< cluster to begin
  std::atomic<uint64_t> finished_{0};  ///< clusters
  uint64_t finished_before_ = 0;       ///< at the last question whether warps repeat themselves
  std::unordered_map<const Warp*, std::unordered_set<uint64_t>> states_;  ///< of warps at pauses
  uint32_t repetitions_ = 0;                                              ///< pauses without a new state

  // Of CTAs whose order does not matter.
  std::mutex mutex_;
  std::atomic<uint64_t> first_error_{UINT64_MAX};
  std::exception_ptr error_;

  // Of CTAs that run in turns.
  std::vector<RunningCluster> active_;
  uint64_t last_finished_ = 0;
  uint64_t turn_, of_round_ = 0;
};

}  // namespace simt::functional
