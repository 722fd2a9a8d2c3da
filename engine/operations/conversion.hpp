#pragma once
#include <bit>

#include "machine/code.hpp"

/// Conversions between numbers, for PTX and machine code.
namespace simt::functional {

enum class Rounding : uint8_t {
  Nearest,
  Zero,
  Down,
  Up,
  Away  ///< to nearest, ties away from zero
};

/// How numbers are converted, in Op::immediate.
struct ConversionModes {
  Rounding rounding = Rounding::Nearest;
  bool to_integral = false;  ///< between equal types: rounds to an integer
  bool ftz = false, saturates = false, relu = false;
  bool finite = false;         ///< to half precision or tf32: the largest number instead of infinities
  uint8_t register_bytes = 4;  ///< to integers: of the register, to which a narrower result is extended
  uint8_t unused = 0;

  int64_t packed() const { return std::bit_cast<int64_t>(*this); }
  static ConversionModes of(const Op& op) { return std::bit_cast<ConversionModes>(op.immediate); }
};

struct Conversion {
  ptx::Type to = ptx::Type::F32, from = ptx::Type::F32;
  ConversionModes modes;
};

/// A value has a place as PTX has it: of 64 bits in one array. A pair of f32 numbers (to f16x2, bf16x2,
/// e4m3x2 or e5m2x2): Op::a is the upper one, Op::b the lower one. nullptr if there is no such conversion.
Handler conversion_handler(const Conversion& conversion);

/// Emits a conversion; refuses the instruction if there is none.
Op& emit_conversion(auto& translation, const Conversion& conversion, Place destination, Place source) {
  const Handler handler = conversion_handler(conversion);
  if (!handler) translation.unsupported("this conversion");
  Op& op = translation.emit(handler);
  op.destination = destination;
  op.a = source;
  op.immediate = conversion.modes.packed();
  return op;
}

}  // namespace simt::functional
