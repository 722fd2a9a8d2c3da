#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>

/// Which machine (SASS) instructions an instruction becomes for the timing model, as data.
namespace simt::instructions {

/// The machine instructions for one instruction.
struct MachineCode {
  enum class Shape : uint8_t {
    Nothing,
    Copy,    ///< no instruction: later readers depend on the source
    One,     ///< with the instruction's reads and writes
    Halves,  ///< a pair for the low and high halves of 64-bit registers
    Chain,   ///< each depends on the previous one
    Repeat,  ///< a chain of `count` copies of the first
    Access   ///< as One, with the lanes' addresses, `count` bytes each
  };
  static constexpr uint32_t most = 6;

  Shape shape = Shape::Nothing;
  uint8_t count = 0;
  std::array<const char*, most> opcodes{};
};

constexpr MachineCode nothing{};
constexpr MachineCode copy{MachineCode::Shape::Copy};
constexpr MachineCode one(const char* opcode) {
  return {MachineCode::Shape::One, 1, {opcode}};
}
constexpr MachineCode halves(const char* low, const char* high) {
  return {MachineCode::Shape::Halves, 2, {low, high}};
}
template <class... Opcode>
constexpr MachineCode chain(Opcode... opcode) {
  return {MachineCode::Shape::Chain, sizeof...(opcode), {opcode...}};
}
constexpr MachineCode repeat(uint8_t times, const char* opcode) {
  return {MachineCode::Shape::Repeat, times, {opcode}};
}
constexpr MachineCode access(const char* opcode, uint8_t bytes) {
  return {MachineCode::Shape::Access, bytes, {opcode}};
}

/// Classes of an instruction's last type, one bit each.
using TypeClasses = uint8_t;
constexpr TypeClasses pred = 1, half = 2, f32 = 4, f64 = 8;
constexpr TypeClasses narrow = 16;          ///< integers and bits of up to 32 bits, and no type at all
constexpr TypeClasses wide = 32;            ///< 64-bit integers and bits
constexpr TypeClasses signed_sources = 64;  ///< the second or third type is signed, regardless of the last
                                            ///< one
constexpr TypeClasses f32x2 = 128;          ///< a pair of f32
constexpr TypeClasses any = 255;

/// Code for types of these classes, optionally only with a modifier.
struct MachineCase {
  TypeClasses types;
  MachineCode code;
  const char* modifier;

  constexpr MachineCase(TypeClasses t, MachineCode c) : types(t), code(c), modifier(nullptr) {}
  constexpr MachineCase(TypeClasses t, const char* with, MachineCode c) : types(t), code(c), modifier(with) {}
};

/// The first case that applies is used; `Function` is for what cases cannot express.
template <class Function>
struct Lowering {
  static constexpr uint32_t most = 8;

  std::array<MachineCase, most> cases;
  uint8_t count = 0;
  Function function = nullptr;

  constexpr Lowering(MachineCode code) : Lowering({{any, code}}) {}
  constexpr Lowering(std::initializer_list<MachineCase> list) : cases(filled(list)) {
    count = static_cast<uint8_t>(list.size());
  }
  constexpr Lowering(Function chooses) : Lowering(chooses, nothing) {}
  /// With an argument for the function.
  constexpr Lowering(Function chooses, MachineCode code) : Lowering(code) { function = chooses; }

 private:
  static constexpr std::array<MachineCase, most> filled(std::initializer_list<MachineCase> list) {
    constexpr MachineCase none{0, nothing};
    std::array<MachineCase, most> all{none, none, none, none, none, none, none, none};
    for (uint32_t k = 0; k < list.size(); ++k) all[k] = list.begin()[k];  // too many do not compile
    return all;
  }
};

}  // namespace simt::instructions
