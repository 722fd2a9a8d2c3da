#include "run_ahead.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <thread>
#include <vector>

#include "process.hpp"

namespace simt::driver {
namespace {

using namespace std::chrono_literals;
using Duration = std::chrono::milliseconds;

/// Without a call, before work may run ahead; once it has, the program is known to talk with its kernels.
constexpr Duration longest_patience = 100ms, shortest_patience = 2ms;
/// How long accesses to a page are waited for, and in how many such times in a row it must be accessed to be
/// one that the program polls. Programs may sleep in between: the time doubles until that is found.
constexpr Duration shortest_window = 5ms, longest_window = 1280ms;
constexpr int windows = 6;
/// Bits of an entry of /proc/PID/pagemap (Linux, Documentation/admin-guide/mm/pagemap.rst).
constexpr uint64_t page_present = uint64_t{1} << 63, page_shared = uint64_t{1} << 61;

std::atomic<bool> thread_started{false};

/// Holds the lock in the background.
class Background {
 public:
  Background() { process_.lock.lock_in_background(); }
  ~Background() { process_.lock.unlock(); }
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

 private:
  Process& process_ = Process::get();
};

/// The pages of memory that the program shares with kernels.
class SharedPages {
 public:
  SharedPages() : file_(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)) {}
  ~SharedPages() {
    if (file_ >= 0) close(file_);
  }
  SharedPages(const SharedPages&) = delete;
  SharedPages& operator=(const SharedPages&) = delete;

  bool can_watch() const { return file_ >= 0; }

  /// Makes the pages absent from the program's page table; what they hold does not change. Holds the lock:
  /// memory must not be freed meanwhile.
  void clear() {
    ranges_.clear();
    for (const auto& device : Process::get().devices) {
      if (!device) continue;
      for (const auto& [address, allocation] : device->allocations) {
        if (allocation.origin == Origin::Pinned || allocation.origin == Origin::Managed)
          add(address, allocation.size);
        else if (allocation.origin == Origin::Registered)
          add(allocation.host, allocation.size);
      }
    }
    for (const Range& range : ranges_)
      each_run(range, [&](uint64_t first, uint64_t pages) {
        madvise(reinterpret_cast<void*>(first * page_), pages * page_, MADV_DONTNEED);
      });
  }
  /// The pages that have been accessed since, in order.
  std::vector<uint64_t> accessed() {
    std::vector<uint64_t> found;
    for (const Range& range : ranges_)
      each_run(range, [&](uint64_t first, uint64_t pages) {
        for (uint64_t k = 0; k < pages; ++k) found.push_back(first + k);
      });
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
  }

 private:
  struct Range {
    uint64_t first, pages;
  };

  void add(uint64_t address, uint64_t size) {
    const uint64_t first = address / page_, end = (address + size + page_ - 1) / page_;
    ranges_.push_back({first, end - first});
  }
  /// Calls `act` with each run of present pages: first, and how many. Only shared ones: what a program that
  /// has freed registered memory has there is its own.
  template <class Act>
  void each_run(const Range& range, const Act& act) {
    constexpr uint64_t at_once = 4096;
    std::vector<uint64_t> entries;
    for (uint64_t done = 0; done < range.pages; done += at_once) {
      const uint64_t first = range.first + done, count = std::min(at_once, range.pages - done);
      entries.assign(count, 0);
      if (pread(file_, entries.data(), count * sizeof(uint64_t),
                static_cast<off_t>(first * sizeof(uint64_t))) <= 0)
        continue;
      for (uint64_t k = 0; k < count;) {
        const auto counts = [&](uint64_t i) {
          return i < count && (entries[i] & page_present) && (entries[i] & page_shared);
        };
        const uint64_t begin = k;
        while (counts(k)) ++k;
        if (k > begin) act(first + begin, k - begin);
        while (k < count && !counts(k)) ++k;
      }
    }
  }

  const uint64_t page_ = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  int file_;
  std::vector<Range> ranges_;
};

class Ahead {
 public:
  [[noreturn]] void run() {
    for (;;) {
      activity_ = process_.activity;
      std::this_thread::sleep_for(patience_);
      is_polling_ = false;
      if (is_idle() && any_left() && (any_awaited() || is_polling())) run_ahead();
    }
  }

 private:
  /// Whether the program has neither submitted work nor waited since.
  bool is_idle() const { return process_.waiting == 0 && process_.activity == activity_; }

  template <class Predicate>
  bool any_device(const Predicate& holds) {
    const Background lock;
    return std::any_of(process_.devices.begin(), process_.devices.end(),
                       [&](const auto& device) { return device && !device->idle && holds(*device); });
  }
  bool any_left() {
    return any_device([](const Device&) { return true; });
  }
  /// Whether there is work that does not take simulated time, or that a host function follows.
  bool any_awaited() { return any_device(is_awaited); }
  static bool is_awaited(const Device& device) { return device.functional || !device.host_calls.empty(); }

  /// Whether the program polls memory that kernels access. Waits until it does, or makes a call.
  bool is_polling() {
    Duration window = shortest_window;
    while (is_idle() && !is_polling_) {
      is_polling_ = !pages_.can_watch() || polls(window);
      window = std::min(2 * window, longest_window);
    }
    return is_polling_;
  }
  bool polls(Duration window) {
    std::vector<uint64_t> polled;
    for (int k = 0; k < windows; ++k) {
      {
        const Background lock;
        if (!is_idle()) return false;
        pages_.clear();
      }
      std::this_thread::sleep_for(window);
      const std::vector<uint64_t> accessed = pages_.accessed();
      std::vector<uint64_t> both;
      std::set_intersection(polled.begin(), polled.end(), accessed.begin(), accessed.end(),
                            std::back_inserter(both));
      polled = k == 0 ? accessed : both;
      if (polled.empty()) return false;
    }
    return is_idle();
  }

  void run_ahead() {
    patience_ = shortest_patience;
    for (bool any_left = true; any_left;) {
      const Background lock;
      any_left = false;
      for (const auto& device : process_.devices) {
        if (!is_idle()) return;
        if (!device || device->idle || !(is_polling_ || is_awaited(*device))) continue;
        if (!advance(*device)) any_left = true;
      }
    }
  }

  Process& process_ = Process::get();
  uint64_t activity_ = 0;
  Duration patience_ = longest_patience;
  bool is_polling_ = false;  ///< the program, since its last call
  SharedPages pages_;
};

}  // namespace

void run_ahead_when_idle() {
  if (thread_started.exchange(true)) return;
  sigset_t all, before;  // the program's signals are for its own threads
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([] {
    try {
      Ahead().run();
    } catch (const Failure&) {  // simt has ended
    } catch (const std::exception& error) {
      say(error.what());
    }
  }).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

bool runs_ahead() {
  return thread_started;
}

}  // namespace simt::driver
