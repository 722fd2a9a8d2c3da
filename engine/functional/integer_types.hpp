#pragma once
#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "functional/lanes.hpp"
#include "functional/translator.hpp"

/// Shared by the families of integer instructions: handlers by type, packed halves.
namespace simt::functional {

/// The next type among the modifiers, which must be one of `types`.
inline ptx::Type take_type_of(Translation& t, std::initializer_list<ptx::Type> types) {
  const ptx::Type type = t.take_type();
  if (std::find(types.begin(), types.end(), type) == types.end())
    t.unsupported("it does not exist for the type ." + std::string(ptx::name(type)));
  return type;
}

/// make(T{}) for the integer type T that `type` denotes; untyped bits count as unsigned.
template <class F>
Handler by_integer_type(Translation& t, ptx::Type type, F make) {
  using ptx::Type;
  switch (type) {
    case Type::B16:
    case Type::U16:
      return make(uint16_t{});
    case Type::S16:
      return make(int16_t{});
    case Type::B32:
    case Type::U32:
      return make(uint32_t{});
    case Type::S32:
      return make(int32_t{});
    case Type::B64:
    case Type::U64:
      return make(uint64_t{});
    case Type::S64:
      return make(int64_t{});
    default:
      t.unsupported("it does not exist for the type ." + std::string(ptx::name(type)));
  }
}

/// make(T{}) for the unsigned type of the same size, for operations that do not depend on signedness.
template <class F>
Handler by_size(Translation& t, ptx::Type type, F make) {
  switch (ptx::bytes(type)) {
    case 2:
      return make(uint16_t{});
    case 4:
      return make(uint32_t{});
    case 8:
      return make(uint64_t{});
    default:
      t.unsupported("it does not exist for the type ." + std::string(ptx::name(type)));
  }
}

/// d = F(a), F(a, b) or F(a, b, c), all of type T.
template <class F, class T>
void run_unary(Context& c, const Op& op) {
  map_lanes<T, T>(c, op.destination, F{}, op.a);
}
template <class F, class T>
void run_binary(Context& c, const Op& op) {
  map_lanes<T, T, T>(c, op.destination, F{}, op.a, op.b);
}
template <class F, class T>
void run_ternary(Context& c, const Op& op) {
  map_lanes<T, T, T, T>(c, op.destination, F{}, op.a, op.b, op.c);
}

/// Applies F to each 16-bit half, of type H.
template <class F, class H>
struct Halves {
  uint32_t operator()(uint32_t a, uint32_t b) const {
    const auto low = static_cast<uint16_t>(F{}(static_cast<H>(a), static_cast<H>(b)));
    const auto high = static_cast<uint16_t>(F{}(static_cast<H>(a >> 16), static_cast<H>(b >> 16)));
    return low | uint32_t{high} << 16;
  }
};

/// An unsigned type wide enough that its arithmetic wraps and is never promoted to int.
template <class T>
using Wrapping = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

}  // namespace simt::functional
