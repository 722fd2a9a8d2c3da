#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <new>
#include <utility>
#include <vector>

#include "failure.hpp"

// What all objects behind API handles have in common.

namespace simt::driver {

/// Base of all handles, which allows destroyed or foreign ones to be detected.
class Handle {
 public:
  explicit Handle(uint64_t tag) : tag_(tag), serial_(++made) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { *const_cast<volatile uint64_t*>(&tag_) = 0; }
  bool is(uint64_t tag) const { return tag_ == tag; }
  /// Never that of another object, also where it has the memory of a destroyed one.
  uint64_t serial() const { return serial_; }

 private:
  static inline uint64_t made = 0;
  uint64_t tag_, serial_;
};

/// Objects of one kind. Their memory is reused, but never released: reading the tag of a destroyed object is
/// harmless.
template <class T>
class Pool {
 public:
  template <class... Arguments>
  T& make(Arguments&&... arguments) {
    void* place;
    if (free_.empty()) {
      place = storage_.emplace_back().bytes;
    } else {
      place = free_.back();
      free_.pop_back();
    }
    try {
      return *new (place) T(std::forward<Arguments>(arguments)...);
    } catch (...) {
      free_.push_back(place);
      throw;
    }
  }
  void destroy(T& object) {
    object.~T();
    free_.push_back(&object);
  }
  /// Those that exist and for which `is_wanted` is true.
  template <class Condition>
  std::vector<T*> those(const Condition& is_wanted) {
    std::vector<T*> found;
    for (Storage& storage : storage_)
      if (auto* object = reinterpret_cast<T*>(storage.bytes); object->is(T::tag) && is_wanted(*object))
        found.push_back(object);
    return found;
  }

 private:
  struct Storage {
    alignas(T) std::byte bytes[sizeof(T)] = {};
  };
  std::deque<Storage> storage_;
  std::vector<void*> free_;
};

/// All objects of a kind. Never destroyed: other libraries' destructors may still call.
template <class T>
Pool<T>& all() {
  static auto& pool = *new Pool<T>;
  return pool;
}

/// Refers to an object that may be destroyed meanwhile. Using it then throws Failure, also where another
/// object has its memory.
template <class T>
class Ref {
 public:
  Ref() = default;
  Ref(T& object) : object_(&object), serial_(object.serial()) {}
  /// nullptr if it refers to nothing, or to an object that was destroyed.
  T* get() const {
    return object_ && object_->is(T::tag) && object_->serial() == serial_ ? object_ : nullptr;
  }
  T& operator*() const {
    T* const object = get();
    require(object != nullptr, CUDA_ERROR_INVALID_HANDLE);
    return *object;
  }
  T* operator->() const { return &**this; }

 private:
  T* object_ = nullptr;
  uint64_t serial_ = 0;
};

}  // namespace simt::driver
