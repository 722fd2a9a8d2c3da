#include "timing/worker_pool.hpp"

#include <algorithm>
#include <utility>

namespace simt {
namespace {

// Windows are short, so threads wait for the next one by spinning for a while before they give up the
// processor.
constexpr int spins_before_yield = 4000;

}  // namespace

WorkerPool::WorkerPool(uint32_t threads) {
  for (uint32_t i = 1; i < threads; ++i) workers_.emplace_back([this](std::stop_token stop) { work(stop); });
}

WorkerPool::~WorkerPool() {
  for (std::jthread& worker : workers_) worker.request_stop();
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
}

void WorkerPool::take_tasks() {
  for (;;) {
    const uint32_t i = next_.fetch_add(1, std::memory_order_relaxed);
    if (i >= count_) return;
    try {
      (*task_)(i);
    } catch (...) {
      const std::lock_guard lock(error_mutex_);
      if (!error_) error_ = std::current_exception();
    }
  }
}

void WorkerPool::work(std::stop_token stop) {
  uint64_t seen = 0;
  for (;;) {
    int spins = 0;
    while (generation_.load(std::memory_order_acquire) == seen) {
      if (++spins < spins_before_yield) {
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#endif
      } else {
        generation_.wait(seen, std::memory_order_acquire);
      }
    }
    seen = generation_.load(std::memory_order_acquire);
    if (stop.stop_requested()) return;
    take_tasks();
    working_.fetch_sub(1, std::memory_order_release);
  }
}

void WorkerPool::run(uint32_t count, const std::function<void(uint32_t)>& task) {
  if (workers_.empty()) {
    for (uint32_t i = 0; i < count; ++i) task(i);
    return;
  }
  task_ = &task;
  count_ = count;
  next_.store(0, std::memory_order_relaxed);
  working_.store(static_cast<uint32_t>(workers_.size()), std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  take_tasks();
  int spins = 0;
  while (working_.load(std::memory_order_acquire) != 0)
    if (++spins > spins_before_yield) std::this_thread::yield();
  if (error_) {
    const std::exception_ptr error = std::exchange(error_, nullptr);
    std::rethrow_exception(error);
  }
}

}  // namespace simt
