#include "operations/fragments.hpp"

#include <cstring>

#include "operations/floats.hpp"
#include "operations/small_floats.hpp"

namespace simt::functional {

using ptx::Type;

namespace {

template <uint32_t count, class Number>
void convert(const float* from, Number* to) {
  for (uint32_t i = 0; i < count; ++i) to[i] = from[i];
}

template <class H, class Number>
void expand_halves(const void* tile, Number* numbers) {
  alignas(64) uint16_t halves[64];
  alignas(64) float wide[64];
  std::memcpy(halves, tile, sizeof halves);
  H::template widen<64>(halves, wide);
  convert<64>(wide, numbers);
}

/// The low 13 bits are ignored.
template <class Number>
void expand_tf32(const void* tile, Number* numbers) {
  uint32_t bits[32];
  std::memcpy(bits, tile, sizeof bits);
  alignas(64) float wide[32];
  for (uint32_t i = 0; i < 32; ++i) wide[i] = std::bit_cast<float>(bits[i] & ~0x1fffu);
  convert<32>(wide, numbers);
}

/// Both formats are f16 with bits removed: e5m2 from the fraction, e4m3 also from the exponent.
template <bool e4m3, class Number>
void expand_f8(const void* tile, Number* numbers) {
  uint8_t codes[128];
  std::memcpy(codes, tile, sizeof codes);
  alignas(64) uint16_t halves[128];
  for (uint32_t i = 0; i < 128; ++i)
    halves[i] = static_cast<uint16_t>(e4m3 ? (codes[i] & 0x80u) << 8 | (codes[i] & 0x7fu) << 7
                                           : uint32_t{codes[i]} << 8);
  alignas(64) float wide[128];
  Half::widen<128>(halves, wide);
  if constexpr (e4m3)
    for (uint32_t i = 0; i < 128; ++i)
      wide[i] = (codes[i] & 0x7f) == 0x7f ? std::bit_cast<float>(nan_f32) : wide[i] * 256.0f;
  convert<128>(wide, numbers);
}

/// In bytes; those of four bits in the middle of theirs (CUTLASS, mma_traits_sm120.hpp).
template <class Format, class Number>
void expand_small(const void* tile, Number* numbers) {
  constexpr uint32_t shift = Format::bits == 4 ? 2 : 0;
  uint8_t codes[128];
  std::memcpy(codes, tile, sizeof codes);
  for (uint32_t i = 0; i < 128; ++i)
    numbers[i] = static_cast<Number>(small_float<Format>(uint32_t{codes[i]} >> shift));
}

template <class T>
void expand_bytes(const void* tile, double* numbers) {
  T values[128];
  std::memcpy(values, tile, sizeof values);
  for (uint32_t i = 0; i < 128; ++i) numbers[i] = values[i];
}

template <bool is_signed>
void expand_nibbles(const void* tile, double* numbers) {
  uint8_t bytes[128];
  std::memcpy(bytes, tile, sizeof bytes);
  for (uint32_t i = 0; i < 256; ++i) {
    const int nibble = bytes[i / 2] >> 4 * (i % 2) & 15;
    numbers[i] = is_signed ? (nibble ^ 8) - 8 : nibble;
  }
}

void expand_doubles(const void* tile, double* numbers) {
  std::memcpy(numbers, tile, 32 * sizeof(double));
}

}  // namespace

uint32_t element_bits(Type type) {
  switch (type) {
    case Type::B1:
      return 1;
    case Type::S4:
    case Type::U4:
      return 4;
    default:
      return 8 * ptx::bytes(type);
  }
}

Expand expansion(Type type) {
  switch (type) {
    case Type::F16:
      return {expand_halves<Half, double>, expand_halves<Half, float>};
    case Type::BF16:
      return {expand_halves<Bfloat, double>, expand_halves<Bfloat, float>};
    case Type::TF32:
      return {expand_tf32<double>, expand_tf32<float>};
    case Type::E4M3:
      return {expand_f8<true, double>, expand_f8<true, float>};
    case Type::E5M2:
      return {expand_f8<false, double>, expand_f8<false, float>};
    case Type::E3M2:
      return {expand_small<E3m2, double>, expand_small<E3m2, float>};
    case Type::E2M3:
      return {expand_small<E2m3, double>, expand_small<E2m3, float>};
    case Type::E2M1:
      return {expand_small<E2m1, double>, expand_small<E2m1, float>};
    case Type::S8:
      return {expand_bytes<int8_t>};
    case Type::U8:
      return {expand_bytes<uint8_t>};
    case Type::S4:
      return {expand_nibbles<true>};
    case Type::U4:
      return {expand_nibbles<false>};
    default:
      return {expand_doubles};
  }
}

}  // namespace simt::functional
