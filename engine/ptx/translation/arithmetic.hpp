#pragma once
#include "ptx/translation/translator.hpp"

/// Opcodes that PTX shares between integers and floating-point numbers. arithmetic.cpp looks at the type
/// and passes the instruction to one of the two families.
namespace simt::functional {

enum class Arithmetic : uint8_t { Add, Sub, Mul, Mad, Fma, Div, Rem, Abs, Neg, Min, Max };

/// Translate one instruction whose modifiers have not been taken yet.
void translate_integer(Translation& t, Arithmetic operation);  // integer.cpp
void translate_float(Translation& t, Arithmetic operation);    // float.cpp
/// rcp.approx.ftz.f64, whose modifiers have already been taken.
void emit_coarse_reciprocal(Translation& t, bool ftz);  // transcendental.cpp

/// d = h(a, b), all of the same type.
Op& emit_binary(Translation& t, Handler handler, ptx::Type type);
/// d = h(a), both of the same type.
Op& emit_unary(Translation& t, Handler handler, ptx::Type type);
/// d = h(a, b, c), all of the same type.
Op& emit_ternary(Translation& t, Handler handler, ptx::Type type);

}  // namespace simt::functional
