/// Matrix products and fragments.
#include <algorithm>
#include <cstdio>
#include <string>

#include "ptx/lowering/rules.hpp"

namespace simt::functional {

using ptx::Type;

namespace {

struct Shape {
  uint32_t m = 0, n = 0, k = 0;

  uint32_t work() const { return m * n * k; }
};

Shape shape_of(const Lowerer& l) {
  Shape shape;
  for (const std::string_view m : l.mnemonic().modifiers)
    if (m.size() > 3 && m[0] == 'm' && m.find('n') != m.npos && m.find('k') != m.npos)
      std::sscanf(std::string(m).c_str(), "m%un%uk%u", &shape.m, &shape.n, &shape.k);
  return shape;
}

/// Appends work / each instructions, at least one.
void multiply(Lowerer& l, uint32_t work, uint32_t each, std::string_view sass) {
  for (uint32_t k = 0; k < std::max(1u, work / each); ++k) l.one(sass);
}

void multiply_bytes(Lowerer& l, const Shape& shape) {
  if (l.sm() < 80 || shape.m == 8)
    l.repeat(std::max(1u, shape.work() / 1024), "IMMA.8816.S8.S8");
  else if (shape.m == 16 && shape.n == 16)
    l.repeat(2, "IMMA.16816.S8.S8");
  else
    l.one(shape.k == 16 ? "IMMA.16816.S8.S8" : "IMMA.16832.S8.S8");
}

void multiply_halves(Lowerer& l, const Shape& shape, Type a, bool wide) {
  // Volta: four steps for 8x8x4, sixteen HMMA for a 16x16x16 tile.
  if (l.sm() < 75)
    return l.repeat(std::max(1u, shape.work() / 256), wide ? "HMMA.884.F32.F32" : "HMMA.884.F16.F16");
  const std::string tail = std::string(wide ? ".F32" : ".F16") + (a == Type::BF16 ? ".BF16" : "");
  if (l.sm() < 80 || shape.work() <= 1024)
    multiply(l, shape.work(), 1024, "HMMA.1688" + tail);
  else
    multiply(l, shape.work(), 2048, "HMMA.16816" + tail);
}

void access_fragment(Lowerer& l, const char* shared, const char* global) {
  const auto registers = static_cast<uint32_t>(std::max(l.reads().size(), l.writes().size()));
  for (uint32_t k = 1; k < std::max(1u, registers / 4); ++k) l.one("IADD3");
  l.memory(l.has("shared") ? shared : global, 8);
}

}  // namespace

void lower_matrix_product(Lowerer& l) {
  const Shape shape = shape_of(l);
  const Type d = l.type(0);
  const Type a = l.type(1) != Type::None ? l.type(1) : d != Type::None ? d : Type::F16;
  if (l.has("block_scale") || l.has("kind::f8f6f4")) {
    const std::string types = std::string(d == Type::F32 ? ".F32" : ".F16") + ".E4M3.E4M3";
    if (l.has("kind::mxf4") || l.has("kind::mxf4nvf4"))
      l.one(shape.k == 128 ? "OMMA.SF.SP.168128.F32.E2M1.E2M1" : "OMMA.SF.16864.F32.E2M1.E2M1");
    else
      l.one((shape.k == 32 ? "QMMA.16832" : "QMMA.SP.16864") + types);
    return;
  }
  switch (a) {
    case Type::F64:
      l.one("DMMA.884");
      break;
    case Type::U8:
    case Type::S8:
      multiply_bytes(l, shape);
      break;
    case Type::U4:
    case Type::S4:
      l.one(shape.k == 32 ? "IMMA.8832.S4.S4" : "IMMA.16864.S4.S4");
      break;
    case Type::B1:
      l.one("BMMA.168256.XOR.POPC");
      break;
    case Type::TF32:
      l.one(shape.k == 4 ? "HMMA.1684.F32.TF32" : "HMMA.1688.F32.TF32");
      break;
    default:
      multiply_halves(l, shape, a, d == Type::F32);
  }
}

void lower_fragment_load(Lowerer& l) {
  access_fragment(l, "LDS.64", "LDG.E.64");
}
void lower_fragment_store(Lowerer& l) {
  access_fragment(l, "STS.64", "STG.E.64");
}

void lower_warpgroup_product(Lowerer& l) {
  const Shape s = shape_of(l);
  const Type a = l.type(1);
  const bool whole = a == Type::S8 || a == Type::U8, small = a == Type::E4M3 || a == Type::E5M2;
  const std::string shape = std::to_string(s.m) + "x" + std::to_string(s.n) + "x" + std::to_string(s.k);
  // Machine code has descriptors in uniform registers, which are not tracked.
  for (uint32_t operand = 1; operand <= 2; ++operand) l.omit_read(operand);
  if (a == Type::B1)
    l.one("BGMMA." + shape + ".AND.POPC");
  else
    l.one((whole   ? "IGMMA."
           : small ? "QGMMA."
                   : "HGMMA.") +
          std::string(l.has("sp") ? "SP." : "") + shape + (whole ? ".S32" : ".F32") +
          (a == Type::TF32 ? ".TF32" : ""));
}

}  // namespace simt::functional
