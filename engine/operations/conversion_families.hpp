#pragma once
#include <cfenv>
#include <type_traits>

#include "operations/conversion.hpp"
#include "operations/floats.hpp"

/// The conversions of conversion.hpp by the files that define them; all functions return nullptr if there is
/// no such conversion.
namespace simt::functional {

/// To or from integers, but for those to f16 and bf16; to integral numbers of the same type.
Handler integer_conversion(const Conversion& conversion);
/// Between f16, bf16, f32 and f64, but for those that lose bits to f16 or bf16.
Handler float_conversion(const Conversion& conversion);
/// Of a number to f16 or bf16, or of two to a pair.
Handler half_conversion(const Conversion& conversion);
/// To or from a pair of f8 numbers.
Handler f8_conversion(const Conversion& conversion);
/// Of f32.
Handler tf32_conversion();

/// Calls f with a value of the C++ type for an integer type; returns its result, or nullptr for other types.
template <class F>
Handler with_integer(ptx::Type type, F f) {
  switch (type) {
    case ptx::Type::U8:
      return f(uint8_t{});
    case ptx::Type::S8:
      return f(int8_t{});
    case ptx::Type::U16:
      return f(uint16_t{});
    case ptx::Type::S16:
      return f(int16_t{});
    case ptx::Type::U32:
      return f(uint32_t{});
    case ptx::Type::S32:
      return f(int32_t{});
    case ptx::Type::U64:
      return f(uint64_t{});
    case ptx::Type::S64:
      return f(int64_t{});
    default:
      return nullptr;
  }
}

constexpr int fenv_direction(Rounding r) {
  switch (r) {
    case Rounding::Zero:
      return FE_TOWARDZERO;
    case Rounding::Down:
      return FE_DOWNWARD;
    case Rounding::Up:
      return FE_UPWARD;
    default:
      return FE_TONEAREST;
  }
}

/// v in the host's current rounding direction. Written out for uint64_t: compilers' own conversion gives -0
/// for 0 when rounding down.
template <class T, class S>
T to_float(S v) {
  if constexpr (std::is_same_v<S, uint64_t>) {
    const uint64_t halved = v >> 1 | (v & 1);  // the last bit is sticky
    return v >> 63 ? static_cast<T>(static_cast<int64_t>(halved)) * 2
                   : static_cast<T>(static_cast<int64_t>(v));
  } else {
    return static_cast<T>(v);
  }
}

}  // namespace simt::functional
