/// Opcodes with integer and floating-point forms: dispatch by type.
#include "ptx/translation/arithmetic.hpp"

#include "ptx/translation/instructions.hpp"

namespace simt::functional {
namespace {

template <Arithmetic operation>
void translate(Translation& t) {
  bool floating = false;
  for (const std::string_view m : t.mnemonic().modifiers) floating |= ptx::is_float(ptx::type_named(m));
  if (floating)
    translate_float(t, operation);
  else
    translate_integer(t, operation);
}

}  // namespace

Op& emit_unary(Translation& t, Handler handler, ptx::Type type) {
  const Place d = t.destination(0, type), a = t.source(1, type);
  Op& op = t.emit(handler);
  op.destination = d;
  op.a = a;
  return op;
}

Op& emit_binary(Translation& t, Handler handler, ptx::Type type) {
  const Place d = t.destination(0, type), a = t.source(1, type), b = t.source(2, type);
  Op& op = t.emit(handler);
  op.destination = d;
  op.a = a;
  op.b = b;
  return op;
}

Op& emit_ternary(Translation& t, Handler handler, ptx::Type type) {
  const Place d = t.destination(0, type), a = t.source(1, type), b = t.source(2, type), c = t.source(3, type);
  Op& op = t.emit(handler);
  op.destination = d;
  op.a = a;
  op.b = b;
  op.c = c;
  return op;
}

void translate_add(Translation& t) {
  translate<Arithmetic::Add>(t);
}
void translate_sub(Translation& t) {
  translate<Arithmetic::Sub>(t);
}
void translate_mul(Translation& t) {
  translate<Arithmetic::Mul>(t);
}
void translate_mad(Translation& t) {
  translate<Arithmetic::Mad>(t);
}
void translate_fma(Translation& t) {
  translate<Arithmetic::Fma>(t);
}
void translate_div(Translation& t) {
  translate<Arithmetic::Div>(t);
}
void translate_rem(Translation& t) {
  translate<Arithmetic::Rem>(t);
}
void translate_abs(Translation& t) {
  translate<Arithmetic::Abs>(t);
}
void translate_neg(Translation& t) {
  translate<Arithmetic::Neg>(t);
}
void translate_min(Translation& t) {
  translate<Arithmetic::Min>(t);
}
void translate_max(Translation& t) {
  translate<Arithmetic::Max>(t);
}

}  // namespace simt::functional
