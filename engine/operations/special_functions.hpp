#pragma once
#include "machine/code.hpp"

/// Approximate functions, for PTX and machine code. docs/functional/float.md lists NVIDIA's bounds and those
/// of these functions.
namespace simt::functional {

/// The sine and cosine of turns: of the argument times 2 pi.
enum class SpecialFunction : uint8_t {
  Reciprocal,
  InverseRoot,
  Root,
  Exp2,
  Log2,
  SineOfTurns,
  CosineOfTurns,
  Tanh,
  Sine,
  Cosine
};

/// Of f32. ftz: subnormal arguments and results are zeros.
Handler special_function_handler(SpecialFunction function, bool ftz);
/// Exp2 or Tanh of f16 or bf16, or of a pair of them.
Handler half_function_handler(SpecialFunction function, bool bfloat, bool packed, bool ftz);
/// InverseRoot of f64, rounded.
void run_inverse_root_f64(Context& c, const Op& op);

/// Reciprocal or InverseRoot of f64, of whose upper word it depends alone; the lower word of the result is 0.
Handler coarse_function_handler(SpecialFunction function);
/// The same from upper word to upper word.
Handler upper_word_handler(SpecialFunction function);

}  // namespace simt::functional
