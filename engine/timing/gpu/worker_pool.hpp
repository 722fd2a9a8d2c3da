#pragma once
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace simt {

/// Processor seconds of a pool that rehearses.
struct Rehearsal {
  double tasks = 0;  ///< of all tasks, one after the other
  double threads =
      0;  ///< what they would take on the pool's threads, if each took the next task when it is free
  double clock = 0;  ///< of the timing itself, which the others leave out
};

/// Runs numbered, independent tasks on a fixed set of threads, including the caller's. Results do not depend
/// on which thread runs a task.
class WorkerPool {
 public:
  /// A pool that rehearses runs its tasks on the caller's thread alone, and times them.
  explicit WorkerPool(uint32_t threads, bool rehearses = false);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  uint32_t threads() const { return threads_; }
  const Rehearsal& rehearsal() const { return rehearsal_; }
  /// Calls task(i) for every i below `count`; returns when all are done. Rethrows the exception of the first
  /// failed task (by number).
  void run(uint32_t count, const std::function<void(uint32_t)>& task);

 private:
  void work(const std::stop_token& stop);
  void take_tasks();
  void run_task(uint32_t number);
  void rehearse(uint32_t count);

  // The current call, in one word so that it is accessed atomically: its number, its number of tasks, and the
  // next task to take. A late thread finds no task left; the call does not wait for it.
  static constexpr uint64_t count_shift = 20, call_shift = 40, field = (uint64_t{1} << 20) - 1;
  static uint64_t call_of(uint64_t ticket) { return ticket >> call_shift; }
  static uint32_t count_of(uint64_t ticket) { return static_cast<uint32_t>(ticket >> count_shift & field); }
  static uint32_t next_of(uint64_t ticket) { return static_cast<uint32_t>(ticket & field); }

  uint32_t threads_;
  double clock_seconds_ = 0;  // that looking at the clock takes; 0: the pool does not rehearse
  Rehearsal rehearsal_;
  std::vector<std::jthread> workers_;
  const std::function<void(uint32_t)>* task_ = nullptr;
  std::atomic<uint64_t> ticket_{0};
  std::atomic<uint32_t> unfinished_{0};
  std::mutex error_mutex_;
  std::exception_ptr error_;
  uint32_t error_task_ = 0;
};

}  // namespace simt
