#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "check/history.hpp"

namespace simt::check {

/// Who has accessed a word, or a byte, since everything before was ordered.
struct Cell {
  Stamp write = 0, read = 0;
  bool operator==(const Cell&) const = default;
};

/// Cells of a piece of memory: one a word until something smaller than a word is accessed.
class Page {
 public:
  static constexpr uint64_t bytes = 4096;

  explicit Page(uint64_t epoch) : epoch_(epoch), cells_(bytes / 4) {}
  /// Forgets what was accessed before this epoch.
  void renew(uint64_t epoch) {
    if (epoch_ == epoch) return;
    epoch_ = epoch;
    cells_.assign(bytes / 4, {});
    by_byte_ = false;
  }
  /// Calls f for the cells of `size` bytes at `offset`, which lie in the page.
  template <class F>
  void each(uint64_t offset, uint64_t size, F f) {
    if (!by_byte_) {
      if (((offset | size) & 3) == 0) [[likely]] {
        for (uint64_t w = offset / 4; w < (offset + size) / 4; ++w) f(cells_[w]);
        return;
      }
      split();
    }
    for (uint64_t b = offset; b < offset + size; ++b) f(cells_[b]);
  }
  /// The cells, one a word; nullptr once something smaller was accessed.
  Cell* words() { return by_byte_ ? nullptr : cells_.data(); }
  size_t size() const { return cells_.size() * sizeof(Cell); }
  uint64_t epoch() const { return epoch_; }
  /// Calls f(offset, bytes, cell) for cells that were accessed.
  template <class F>
  void each_used(F f) const {
    const uint64_t each = by_byte_ ? 1 : 4;
    for (uint64_t k = 0; k < cells_.size(); ++k)
      if (cells_[k].write || cells_[k].read) f(k * each, each, cells_[k]);
  }

 private:
  void split() {
    std::vector<Cell> all(bytes);
    for (uint64_t b = 0; b < bytes; ++b) all[b] = cells_[b / 4];
    cells_ = std::move(all);
    by_byte_ = true;
  }

  uint64_t epoch_;
  bool by_byte_ = false;
  std::vector<Cell> cells_;
};

/// The cells of a memory, made when they are first accessed.
class Shadow {
 public:
  Page& page(uint64_t address, uint64_t epoch) {
    const uint64_t number = address / Page::bytes;
    Recent& recent = recent_[number % recent_.size()];
    if (recent.number != number || !recent.page) {
      auto& found = pages_[number];
      if (!found) found = std::make_unique<Page>(epoch);
      recent = {number, found.get()};
    }
    recent.page->renew(epoch);
    return *recent.page;
  }
  void forget(uint64_t address, uint64_t size) {
    if (pages_.empty()) return;
    for (uint64_t n = address / Page::bytes; n <= (address + size) / Page::bytes; ++n) {
      pages_.erase(n);
      recent_[n % recent_.size()] = {};
    }
  }
  /// Calls f(address, bytes, cell) for what was accessed in this epoch, in the order of addresses.
  template <class F>
  void each_used(uint64_t epoch, F f) const {
    std::vector<uint64_t> numbers;
    for (const auto& [number, page] : pages_)
      if (page->epoch() == epoch) numbers.push_back(number);
    std::sort(numbers.begin(), numbers.end());
    for (const uint64_t number : numbers)
      pages_.at(number)->each_used([&](uint64_t offset, uint64_t bytes, const Cell& cell) {
        f(number * Page::bytes + offset, bytes, cell);
      });
  }
  uint64_t size() const {
    uint64_t all = 0;
    for (const auto& [number, page] : pages_) all += page->size();
    return all;
  }

 private:
  struct Recent {
    uint64_t number = 0;
    Page* page = nullptr;
  };
  std::unordered_map<uint64_t, std::unique_ptr<Page>> pages_;
  std::array<Recent, 64> recent_{};
};

}  // namespace simt::check
