#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <unordered_set>
#include <vector>

#include "check/finding.hpp"

namespace simt::check {

/// Bytes that work has touched, and by which threads of a warp last: those in between took them in turn.
struct Touch {
  uint64_t begin = 0, end = 0;
  uint32_t by = 0;  ///< index into the accesses of its part
  bool is_strong = false;
  std::array<uint32_t, 3> block{};
  uint32_t first_thread = 0, last_thread = 0;
};

/// What work has touched, in the order of addresses.
struct Touched {
  std::vector<Touch> reads, writes;
  std::vector<Access> accesses;  ///< without threads and memory
  std::array<uint32_t, 3> block_size{1, 1, 1};
};

/// Which launches, copies and fills may run at the same time, and what they have touched. Work has numbers,
/// which grow in the order of submission.
class Concurrency {
 public:
  /// Two accesses that nothing orders: of the work that was submitted first, and of the other.
  using Report = std::function<void(Access first, Access second)>;

  /// others: work submitted before that may run at the same time. kept: later work may as well.
  void begin(uint64_t number, const std::vector<uint64_t>& others, bool kept);
  /// Whether anybody needs to know what the work touches.
  bool needs(uint64_t number) const;
  /// Work, or a part of it, has been executed.
  void touched(uint64_t number, Touched part, const Report& report);
  /// No later work runs at the same time as this.
  void forget(uint64_t number) { all_.erase(number); }
  /// The bytes are allocated anew, or freed.
  void forget_memory(uint64_t begin, uint64_t end);

 private:
  struct Work {
    std::unordered_set<uint64_t> others;
    bool kept = false;
    std::vector<Touched> parts;
  };
  std::map<uint64_t, Work> all_;
};

}  // namespace simt::check
