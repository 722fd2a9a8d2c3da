#include "operations/element_reduction.hpp"

#include <cstring>

#include "operations/reductions.hpp"

namespace simt::functional {
namespace {

using ptx::Type;

template <class F>
void combine(std::byte* to, const std::byte* from, size_t count) {
  using T = typename F::Value;
  for (size_t k = 0; k < count; ++k) {
    T old, b;
    std::memcpy(&old, to + k * sizeof(T), sizeof(T));
    std::memcpy(&b, from + k * sizeof(T), sizeof(T));
    old = F::apply(old, b);
    std::memcpy(to + k * sizeof(T), &old, sizeof(T));
  }
}
template <class F>
ElementReduction of() {
  return {combine<F>, sizeof(typename F::Value)};
}

template <class U, class S>
ElementReduction integer(std::string_view operation, Type type) {
  namespace r = reduction;
  const bool bits = type == Type::B32 || type == Type::B64;
  if (operation == "and") return of<r::And<U>>();
  if (operation == "or") return of<r::Or<U>>();
  if (operation == "xor") return of<r::Xor<U>>();
  if (bits) return {};
  if (operation == "add") return of<r::Add<U>>();
  if (operation == "min") return ptx::is_signed(type) ? of<r::Min<S>>() : of<r::Min<U>>();
  if (operation == "max") return ptx::is_signed(type) ? of<r::Max<S>>() : of<r::Max<U>>();
  if (type == Type::U32 && operation == "inc") return of<r::Increment<U>>();
  if (type == Type::U32 && operation == "dec") return of<r::Decrement<U>>();
  return {};
}

template <class Format>
ElementReduction half(std::string_view operation) {
  namespace r = reduction;
  if (operation == "add") return of<r::Add16<Format>>();
  if (operation == "min") return of<r::Min16<Format>>();
  if (operation == "max") return of<r::Max16<Format>>();
  return {};
}

}  // namespace

ElementReduction element_reduction(std::string_view operation, Type type) {
  switch (type) {
    case Type::B32:
    case Type::U32:
    case Type::S32:
      return integer<uint32_t, int32_t>(operation, type);
    case Type::B64:
    case Type::U64:
    case Type::S64:
      return integer<uint64_t, int64_t>(operation, type);
    case Type::F16:
      return half<Half>(operation);
    case Type::BF16:
      return half<Bfloat>(operation);
    case Type::F32:
      return operation == "add" ? of<reduction::AddF32<true>>() : ElementReduction{};
    case Type::F64:
      return operation == "add" ? of<reduction::AddF64>() : ElementReduction{};
    default:
      return {};
  }
}

}  // namespace simt::functional
