/// Opcodes of integers and floating-point numbers alike: to the family that the type asks for.
#include "functional/arithmetic.hpp"
#include "functional/instructions.hpp"

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

void register_arithmetic(Registry& r) {
  r.add("add", translate<Arithmetic::Add>);
  r.add("sub", translate<Arithmetic::Sub>);
  r.add("mul", translate<Arithmetic::Mul>);
  r.add("mad", translate<Arithmetic::Mad>);
  r.add("fma", translate<Arithmetic::Fma>);
  r.add("div", translate<Arithmetic::Div>);
  r.add("rem", translate<Arithmetic::Rem>);
  r.add("abs", translate<Arithmetic::Abs>);
  r.add("neg", translate<Arithmetic::Neg>);
  r.add("min", translate<Arithmetic::Min>);
  r.add("max", translate<Arithmetic::Max>);
}

}  // namespace simt::functional
