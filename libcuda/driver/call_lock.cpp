#include "call_lock.hpp"

#include <new>

namespace simt::driver {

void CallLock::lock(bool background) {
  if (owner_ == std::this_thread::get_id()) {
    ++depth_;
    return;
  }
  std::unique_lock guard(mutex_);
  take_turn(guard);
  in_background_ = background;
  depth_ = 1;
}

void CallLock::take_turn(std::unique_lock<std::mutex>& guard) {
  const uint64_t mine = next_++;
  turn_.wait(guard, [&] { return served_ == mine; });
  owner_ = std::this_thread::get_id();
}

void CallLock::unlock() {
  if (--depth_ > 0) return;
  const std::lock_guard guard(mutex_);
  owner_ = std::thread::id();
  if (++served_ != next_) turn_.notify_all();
}

bool CallLock::try_lock() {
  if (owner_ != std::this_thread::get_id()) {
    const std::lock_guard guard(mutex_);
    if (served_ != next_ && !in_background_) return false;
  }
  lock();
  return true;
}

bool CallLock::contended() {
  const std::lock_guard guard(mutex_);
  return next_ - served_ > 1;
}

bool CallLock::yield() {
  std::unique_lock guard(mutex_);
  if (next_ - served_ == 1) return false;
  const unsigned depth = depth_;
  const bool background = in_background_;
  owner_ = std::thread::id();
  ++served_;
  turn_.notify_all();
  take_turn(guard);
  depth_ = depth;
  in_background_ = background;
  return true;
}

void CallLock::after_fork() {
  const bool mine = owner_ == std::this_thread::get_id();
  const unsigned depth = depth_;
  new (this) CallLock;
  if (!mine) return;
  lock();
  depth_ = depth;
}

}  // namespace simt::driver
