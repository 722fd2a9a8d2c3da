/// Floating-point arithmetic.
#include <cmath>

#include "functional/arithmetic.hpp"
#include "functional/instructions.hpp"
#include "functional/lanes.hpp"

namespace simt::functional {
namespace {

using ptx::Type;

/// Results that are not numbers are always the same one.
inline float canonical(float v) {
  return v != v ? std::bit_cast<float>(0x7fffffffu) : v;
}

void run_fma_f32(Context& c, const Op& op) {
  map_lanes<float, float, float, float>(
      c, op.destination, [](float a, float b, float d) { return canonical(std::fma(a, b, d)); }, op.a, op.b,
      op.c);
}
void run_add_f32(Context& c, const Op& op) {
  map_lanes<float, float, float>(
      c, op.destination, [](float a, float b) { return canonical(a + b); }, op.a, op.b);
}
void run_mul_f32(Context& c, const Op& op) {
  map_lanes<float, float, float>(
      c, op.destination, [](float a, float b) { return canonical(a * b); }, op.a, op.b);
}

}  // namespace

void translate_float(Translation& t, Arithmetic operation) {
  t.take("rn");
  const Type type = t.take_type();
  if (type != Type::F32) t.unsupported("not yet");
  switch (operation) {
    case Arithmetic::Fma:
      emit_ternary(t, run_fma_f32, type);
      return;
    case Arithmetic::Add:
      emit_binary(t, run_add_f32, type);
      return;
    case Arithmetic::Mul:
      emit_binary(t, run_mul_f32, type);
      return;
    default:
      t.unsupported("not yet");
  }
}

void register_float(Registry&) {}

}  // namespace simt::functional
