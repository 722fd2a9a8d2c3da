#pragma once
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace simt {

/// Runs numbered, independent tasks on a fixed set of threads, the caller's among them. Which thread runs a
/// task has no influence on results.
class WorkerPool {
 public:
  explicit WorkerPool(uint32_t threads);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  uint32_t threads() const { return static_cast<uint32_t>(workers_.size()) + 1; }
  /// Calls task(i) for every i below `count`; returns when all are done. An exception of a task is thrown
  /// here.
  void run(uint32_t count, const std::function<void(uint32_t)>& task);

 private:
  void work(std::stop_token stop);
  void take_tasks();

  std::vector<std::jthread> workers_;
  const std::function<void(uint32_t)>* task_ = nullptr;
  uint32_t count_ = 0;
  std::atomic<uint32_t> next_{0};
  std::atomic<uint64_t> generation_{0};
  std::atomic<uint32_t> working_{0};
  std::mutex error_mutex_;
  std::exception_ptr error_;
};

}  // namespace simt
