#include "timing/gpu/worker_pool.hpp"

#include <algorithm>
#include <ctime>
#include <utility>

namespace simt {
namespace {

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Windows are short, so threads spin for a while before they give up the processor.
constexpr int spins_before_sleep = 2000;

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

WorkerPool::WorkerPool(uint32_t threads, bool rehearses) : threads_(threads) {
  if (rehearses) {
    constexpr int looks = 1000;
    const double begin = processor_seconds();
    for (int i = 1; i < looks; ++i) processor_seconds();
    clock_seconds_ = (processor_seconds() - begin) / looks;
    return;
  }
  for (uint32_t i = 1; i < threads; ++i)
    workers_.emplace_back([this](const std::stop_token& stop) { work(stop); });
}

WorkerPool::~WorkerPool() {
  for (std::jthread& worker : workers_) worker.request_stop();
  ticket_.fetch_add(uint64_t{1} << call_shift, std::memory_order_release);
  ticket_.notify_all();
}

void WorkerPool::take_tasks() {
  uint64_t ticket = ticket_.load(std::memory_order_acquire);
  while (next_of(ticket) < count_of(ticket)) {
    if (!ticket_.compare_exchange_weak(ticket, ticket + 1, std::memory_order_acq_rel)) continue;
    // The call cannot end before this task does, so task_ belongs to it.
    run_task(next_of(ticket));
    unfinished_.fetch_sub(1, std::memory_order_release);
    ticket = ticket_.load(std::memory_order_acquire);
  }
}

void WorkerPool::run_task(uint32_t number) {
  try {
    (*task_)(number);
  } catch (...) {
    const std::lock_guard lock(error_mutex_);
    if (error_ && error_task_ < number) return;
    error_ = std::current_exception();
    error_task_ = number;
  }
}

void WorkerPool::work(const std::stop_token& stop) {
  uint64_t seen = 0;
  for (;;) {
    uint64_t ticket = ticket_.load(std::memory_order_acquire);
    for (int spins = 0; call_of(ticket) == seen; ticket = ticket_.load(std::memory_order_acquire)) {
      if (++spins < spins_before_sleep)
        pause();
      else
        ticket_.wait(ticket, std::memory_order_acquire);
    }
    seen = call_of(ticket);
    if (stop.stop_requested()) return;
    take_tasks();
  }
}

void WorkerPool::rehearse(uint32_t count) {
  std::vector<double> busy(threads_);  // until, of each thread
  double before = processor_seconds();
  for (uint32_t i = 0; i < count; ++i) {
    run_task(i);
    const double after = processor_seconds(), taken = std::max(0.0, after - before - clock_seconds_);
    *std::min_element(busy.begin(), busy.end()) += taken;
    rehearsal_.tasks += taken;
    rehearsal_.clock += after - before - taken;
    before = after;
  }
  rehearsal_.threads += *std::max_element(busy.begin(), busy.end());
}

void WorkerPool::run(uint32_t count, const std::function<void(uint32_t)>& task) {
  task_ = &task;
  if (workers_.empty() || count <= 1) {
    if (clock_seconds_ > 0)
      rehearse(count);
    else
      for (uint32_t i = 0; i < count; ++i) run_task(i);
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
    return;
  }
  unfinished_.store(count, std::memory_order_relaxed);
  const uint64_t call = (call_of(ticket_.load(std::memory_order_relaxed)) + 1) & (~uint64_t{0} >> call_shift);
  ticket_.store(call << call_shift | uint64_t{count} << count_shift, std::memory_order_release);
  ticket_.notify_all();
  take_tasks();
  for (int spins = 0; unfinished_.load(std::memory_order_acquire) != 0;) {
    if (++spins < spins_before_sleep)
      pause();
    else
      std::this_thread::yield();
  }
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

}  // namespace simt
