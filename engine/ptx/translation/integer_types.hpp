#pragma once
#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "operations/integers.hpp"
#include "ptx/translation/translator.hpp"

/// Shared by the families of integer instructions: handlers by type.
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

}  // namespace simt::functional
