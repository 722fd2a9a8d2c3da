#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <initializer_list>
#include <vector>

/// A NumPy array that owns its numbers.
template <class T>
using Numbers = nanobind::ndarray<nanobind::numpy, T>;

template <class T>
Numbers<T> numbers(std::vector<T>&& values, std::initializer_list<size_t> shape) {
  auto* held = new std::vector<T>(std::move(values));
  const nanobind::capsule owner(held, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return Numbers<T>(held->data(), shape, owner);
}
