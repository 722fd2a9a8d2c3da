/// Approximate functions: ex2, lg2, sin, cos, tanh, rsqrt, and the coarse rcp and rsqrt of f64.
#include "operations/special_functions.hpp"
#include "ptx/translation/arithmetic.hpp"
#include "ptx/translation/instructions.hpp"

namespace simt::functional {
namespace {

using ptx::Type;

Handler half_handler(Translation& t, SpecialFunction function, Type type, bool ftz) {
  if (type != Type::F16 && type != Type::F16x2 && type != Type::BF16 && type != Type::BF16x2)
    t.unsupported("this type");
  const bool bfloat = type == Type::BF16 || type == Type::BF16x2;
  const bool packed = type == Type::F16x2 || type == Type::BF16x2;
  return half_function_handler(function, bfloat, packed, ftz);
}

bool take_modes(Translation& t) {
  if (!t.take("approx")) t.unsupported(".approx is missing");
  return t.take("ftz");
}

/// ex2 and tanh: f32 and half precision.
void translate_any(Translation& t, SpecialFunction function) {
  const bool ftz = take_modes(t);
  const Type type = t.take_type();
  emit_unary(
      t, type == Type::F32 ? special_function_handler(function, ftz) : half_handler(t, function, type, ftz),
      type);
}

void translate_f32(Translation& t, SpecialFunction function) {
  const bool ftz = take_modes(t);
  const Type type = t.take_type();
  if (type != Type::F32) t.unsupported("this type");
  emit_unary(t, special_function_handler(function, ftz), type);
}

}  // namespace

void emit_coarse_reciprocal(Translation& t, bool ftz) {
  if (!ftz) t.unsupported("rcp.approx of f64 needs .ftz");
  emit_unary(t, coarse_function_handler(SpecialFunction::Reciprocal), Type::F64);
}

void translate_rsqrt(Translation& t) {
  const bool ftz = take_modes(t);
  const Type type = t.take_type();
  if (type == Type::F64) {
    emit_unary(t, ftz ? coarse_function_handler(SpecialFunction::InverseRoot) : run_inverse_root_f64, type);
    return;
  }
  if (type != Type::F32) t.unsupported("this type");
  emit_unary(t, special_function_handler(SpecialFunction::InverseRoot, ftz), type);
}

void translate_ex2(Translation& t) {
  translate_any(t, SpecialFunction::Exp2);
}
void translate_tanh(Translation& t) {
  translate_any(t, SpecialFunction::Tanh);
}
void translate_lg2(Translation& t) {
  translate_f32(t, SpecialFunction::Log2);
}
void translate_sin(Translation& t) {
  translate_f32(t, SpecialFunction::Sine);
}
void translate_cos(Translation& t) {
  translate_f32(t, SpecialFunction::Cosine);
}

}  // namespace simt::functional
