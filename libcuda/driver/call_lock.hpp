#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace simt::driver {

/// A recursive lock that threads get in the order in which they ask for it. The program's calls hold it, and,
/// between them, what simt does in the background.
class CallLock {
 public:
  void lock() { lock(false); }
  void lock_in_background() { lock(true); }
  void unlock();
  /// Does not wait for calls of other threads.
  bool try_lock();
  /// Whether other threads wait for it.
  bool contended();
  /// Lets the threads that wait for it go first. Whether there were any.
  bool yield();
  /// In a process forked from this one, where no other thread is left.
  void after_fork();

 private:
  void lock(bool background);
  void take_turn(std::unique_lock<std::mutex>& guard);

  std::mutex mutex_;
  std::condition_variable turn_;
  std::atomic<std::thread::id> owner_{};
  unsigned depth_ = 0;  ///< of the owner's locking
  bool in_background_ = false;
  uint64_t next_ = 0, served_ = 0;  ///< turns given out, and the one that holds the lock or gets it next
};

}  // namespace simt::driver
