#pragma once
#include <concepts>
#include <cstddef>

namespace simt {

/// A member without a default: a row of a table that leaves it out, or gives nullptr, does not compile.
template <class T>
struct Required {
  T value;
  template <std::convertible_to<T> Given>
    requires(!std::same_as<Given, std::nullptr_t>)
  constexpr Required(Given given) : value(given) {}
  constexpr operator const T&() const { return value; }
};

}  // namespace simt
