#pragma once
#include <optional>
#include <string_view>

#include "functional/context.hpp"

/// Handlers that machine code shares with PTX. Operands and results of 32 bits are where both have them.
namespace simt::functional {

/// 0 up, 1 down, 2 butterfly, 3 index: of a by b within c. Needs CollectiveOperands.
Handler shuffle_handler(int mode);
/// 0 add, 1 min, 2 max, 3 and, 4 or, 5 xor; the result is the same in all lanes of the mask.
Handler reduction_handler(int operation, bool is_signed);
/// match.any of 32 bits, or 64.
Handler match_any_handler(bool wide);
/// match.all of 32 bits, or 64. Needs CollectiveOperands.
Handler match_all_handler(bool wide);

/// Approximations of f32 functions; subnormal arguments and results are zeros.
enum class SpecialFunction : uint8_t { Reciprocal, InverseRoot, Root, Exp2, Log2, Sine, Cosine, Tanh };
/// Sine and Cosine: of the argument times 2 pi.
Handler special_function_handler(SpecialFunction function);
/// Exp2 or Tanh of f16 or bf16, as PTX has them.
Handler half_function_handler(SpecialFunction function, bool bfloat);
/// The upper word of the reciprocal, or its root, of a double of which only the upper word is given.
uint32_t coarse_reciprocal(uint32_t upper);
uint32_t coarse_inverse_root(uint32_t upper);

/// A conversion between numbers of any size; 64-bit values are where PTX has them.
struct Conversion {
  ptx::Type to = ptx::Type::F32, from = ptx::Type::F32;
  uint8_t rounding = 0;      ///< 0 nearest, 1 to zero, 2 down, 3 up
  bool to_integral = false;  ///< between equal types: rounds to an integer
  bool ftz = false, saturates = false, relu = false;
  bool finite = false;  ///< to half precision or tf32: the largest number instead of infinities
};
struct ConversionHandler {
  Handler run;
  int64_t immediate;
};
/// Nothing if there is no such conversion. Two f32 numbers to a pair of f8: Op::a is the upper one, Op::b the
/// lower one.
std::optional<ConversionHandler> conversion_handler(const Conversion& conversion);

/// A special register, by its name in PTX, such as "ctaid.x".
struct SpecialRegister {
  int64_t number;  ///< Op::immediate
  bool is_clock;
};
std::optional<SpecialRegister> special_register(std::string_view name);
/// The value of a register that is no clock, the same for all lanes of a CTA.
uint64_t special_register_value(const Context& c, int64_t number);
/// What a clock shows in cycle `now`.
uint64_t clock_register_value(const Context& c, int64_t number, uint64_t now);

}  // namespace simt::functional
