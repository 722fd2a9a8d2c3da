#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "isa/prefetch.hpp"

namespace simt {

/// A first-in, first-out queue in one array that grows and never shrinks. Unlike std::deque it allocates
/// nothing once it has been as long as it gets, and asking whether it is empty touches one of the host's
/// cache lines.
template <typename T>
class RingQueue {
 public:
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  T& front() { return items_[head_]; }
  const T& front() const { return items_[head_]; }
  T& back() { return (*this)[size_ - 1]; }
  const T& back() const { return (*this)[size_ - 1]; }
  /// Counted from the front.
  T& operator[](size_t i) { return items_[place(i)]; }
  const T& operator[](size_t i) const { return items_[place(i)]; }

  /// Brings the item at `i` into the host's caches, if there is one.
  void prefetch(size_t i) const {
    const T* item = &items_[place(i)];
    simt::prefetch(item);
    simt::prefetch(reinterpret_cast<const char*>(item + 1) - 1);
  }

  void push_back(T item) { add() = std::move(item); }
  /// An item at the end, whose value is old. To write its members there, one by one, spares the host from
  /// reading them together just after.
  T& add() {
    if (size_ == capacity_) grow();
    return items_[place(size_++)];
  }
  void pop_front() {
    // A queue that runs empty begins again at the first place: the host's caches hold few of a short queue's.
    head_ = --size_ == 0 ? 0 : static_cast<uint32_t>(place(1));
  }
  void pop_back() { --size_; }
  void clear() { head_ = size_ = 0; }
  /// Before the item at `i`.
  void insert(size_t i, T item) {
    push_back(std::move(item));
    for (size_t at = size_ - 1; at > i; --at) std::swap((*this)[at], (*this)[at - 1]);
  }
  void erase(size_t i) {
    for (; i > 0; --i) (*this)[i] = std::move((*this)[i - 1]);
    pop_front();
  }

 private:
  size_t place(size_t i) const { return (head_ + i) & (capacity_ - 1); }
  /// Seldom: kept out of the callers.
  [[gnu::noinline]] void grow() {
    const uint32_t capacity = capacity_ == 0 ? 4 : 2 * capacity_;
    auto larger = std::make_unique<T[]>(capacity);
    for (size_t i = 0; i < size_; ++i) larger[i] = std::move((*this)[i]);
    items_ = std::move(larger);
    capacity_ = capacity;
    head_ = 0;
  }

  std::unique_ptr<T[]> items_;
  uint32_t capacity_ = 0;  // a power of two
  uint32_t head_ = 0, size_ = 0;
};

}  // namespace simt
