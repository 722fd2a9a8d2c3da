#pragma once
#include "functional/translator.hpp"

/// Opcodes that PTX gives to integers and to floating-point numbers alike. ops_arithmetic.cpp looks at the
/// type and hands the instruction to one of the two families.
namespace simt::functional {

enum class Arithmetic : uint8_t { Add, Sub, Mul, Mad, Fma, Div, Rem, Abs, Neg, Min, Max };

/// Translate one instruction; its modifiers have not been taken yet.
void translate_integer(Translation& t, Arithmetic operation);  // ops_integer.cpp
void translate_float(Translation& t, Arithmetic operation);    // ops_float.cpp
/// rcp.approx.ftz.f64, whose modifiers were taken.
void emit_coarse_reciprocal(Translation& t, bool ftz);  // ops_transcendental.cpp

/// d = h(a, b), all of one type.
Op& emit_binary(Translation& t, Handler handler, ptx::Type type);
/// d = h(a), both of one type.
Op& emit_unary(Translation& t, Handler handler, ptx::Type type);
/// d = h(a, b, c), all of one type.
Op& emit_ternary(Translation& t, Handler handler, ptx::Type type);

}  // namespace simt::functional
