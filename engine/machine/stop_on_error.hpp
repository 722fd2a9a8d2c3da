#pragma once
#include <exception>
#include <functional>
#include <mutex>
#include <utility>

namespace simt::functional {

/// What stops a Grid that runs without timing: a function that throws. The grid ends its threads first;
/// `rethrow` then throws the same.
class StopOnError {
 public:
  explicit StopOnError(std::function<void()> poll) : poll_(std::move(poll)) {}

  /// For `Grid::run`; empty if nothing is to be polled.
  std::function<bool()> question() {
    if (!poll_) return nullptr;
    return [this] {
      const std::lock_guard lock(mutex_);
      if (!error_) try {
          poll_();
        } catch (...) {
          error_ = std::current_exception();
        }
      return error_ != nullptr;
    };
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::function<void()> poll_;
  std::mutex mutex_;
  std::exception_ptr error_;
};

}  // namespace simt::functional
