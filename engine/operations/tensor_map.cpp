#include "operations/tensor_map.hpp"

#include <algorithm>
#include <cstring>

namespace simt::functional {

using ptx::Type;

namespace {

/// Some bits of the words in memory.
struct Bits {
  uint32_t byte, first, count;
};
constexpr Bits im2col_flag{0x08, 0, 1}, rank_bits{0x08, 4, 3}, element_code_bits{0x08, 7, 4},
    interleave_bits{0x08, 11, 2}, swizzle_bits{0x08, 13, 2}, fill_bits{0x08, 15, 1}, tf32_bit{0x08, 16, 1},
    atomicity_bits{0x08, 19, 3}, pixel_bits{0x3c, 0, 16};
constexpr uint32_t dim_byte = 0x20, corner_byte = 0x40;
constexpr Bits along_w_bits{0x4c, 0, 2};  // of im2col: 0 for all pixels, 1 for ::w, 2 for ::w::128
/// A stride is stored in units of 16 bytes: its low word, and its upper bits, which share a word.
constexpr Bits stride_low(uint32_t d) {
  return {0x0c + 4 * d, 0, 32};
}
constexpr Bits stride_high(uint32_t d) {
  return {0x1c, 4 * d, 4};
}
constexpr Bits element_stride_bits(uint32_t d) {
  return {0x34, 3 * d, 3};
}
constexpr Bits box_bits(uint32_t d) {
  return d == 0 ? Bits{0x34, 24, 8} : Bits{0x38, 8 * (d - 1), 8};
}

using Element = TensorMap::Element;
/// In memory, TF32 is F32 with a bit of its own, and the elements after it follow BF16.
constexpr auto tf32_distance = static_cast<uint32_t>(Element::TF32) - static_cast<uint32_t>(Element::F32);
constexpr uint32_t tf32_types = 2;
bool is_tf32(Element e) {
  return e == Element::TF32 || e == Element::TF32Ftz;
}
uint32_t element_code(Element e) {
  const auto number = static_cast<uint32_t>(e);
  return is_tf32(e) ? number - tf32_distance : e > Element::TF32Ftz ? number - tf32_types : number;
}
Element element_of(uint32_t code, bool tf32) {
  if (tf32) {
    const auto element = static_cast<Element>(code + tf32_distance);
    return is_tf32(element) ? element : Element::Unknown;
  }
  return static_cast<Element>(code > static_cast<uint32_t>(Element::BF16) ? code + tf32_types : code);
}

uint32_t mask_of(Bits b) {
  return static_cast<uint32_t>((uint64_t{1} << b.count) - 1);
}
uint32_t get(const std::byte* from, Bits b) {
  uint32_t word;
  std::memcpy(&word, from + b.byte, sizeof word);
  return word >> b.first & mask_of(b);
}
void put(std::byte* to, Bits b, uint32_t value) {
  uint32_t word;
  std::memcpy(&word, to + b.byte, sizeof word);
  word = (word & ~(mask_of(b) << b.first)) | (value & mask_of(b)) << b.first;
  std::memcpy(to + b.byte, &word, sizeof word);
}

}  // namespace

std::array<std::byte, TensorMap::memory_bytes> TensorMap::packed() const {
  std::array<std::byte, memory_bytes> bytes{};
  std::byte* const to = bytes.data();
  std::memcpy(to, &address, sizeof address);
  put(to, im2col_flag, im2col());
  put(to, rank_bits, rank_minus_one);
  put(to, element_code_bits, element_code(element));
  put(to, tf32_bit, is_tf32(element));
  put(to, interleave_bits, interleave);
  put(to, swizzle_bits, static_cast<uint32_t>(swizzle));
  put(to, atomicity_bits, static_cast<uint32_t>(atomicity));
  put(to, fill_bits, static_cast<uint32_t>(fill));
  for (uint32_t d = 0; d < 5; ++d) {
    put(to, {dim_byte + 4 * d, 0, 32}, dims[d] - 1);
    put(to, element_stride_bits(d), element_strides[d] - 1u);
    put(to, box_bits(d), box[d] - 1u);
  }
  for (uint32_t d = 0; d < 4; ++d) {
    put(to, stride_low(d), static_cast<uint32_t>(strides[d] >> 4));
    put(to, stride_high(d), static_cast<uint32_t>(strides[d] >> 36));
  }
  if (im2col()) put(to, pixel_bits, box[1]);
  if (im2col()) put(to, along_w_bits, static_cast<uint32_t>(pixels) - 1);
  std::memcpy(to + corner_byte, lower, sizeof lower);
  std::memcpy(to + corner_byte + sizeof lower, upper, sizeof upper);
  return bytes;
}

TensorMap TensorMap::unpacked(const std::byte* from) {
  TensorMap m;
  std::memcpy(&m.address, from, sizeof m.address);
  if (get(from, im2col_flag)) m.pixels = static_cast<Pixels>(get(from, along_w_bits) % 3 + 1);
  m.rank_minus_one = static_cast<uint8_t>(get(from, rank_bits));
  m.element = element_of(get(from, element_code_bits), get(from, tf32_bit) != 0);
  m.interleave = static_cast<uint8_t>(get(from, interleave_bits));
  m.swizzle = static_cast<Swizzle>(get(from, swizzle_bits));
  m.atomicity = static_cast<Atomicity>(get(from, atomicity_bits));
  m.fill = static_cast<Fill>(get(from, fill_bits));
  for (uint32_t d = 0; d < 5; ++d) {
    m.dims[d] = get(from, {dim_byte + 4 * d, 0, 32}) + 1;
    m.element_strides[d] = static_cast<uint8_t>(get(from, element_stride_bits(d)) + 1);
    m.box[d] = static_cast<uint16_t>(get(from, box_bits(d)) + 1);
  }
  for (uint32_t d = 0; d < 4; ++d)
    m.strides[d] = (get(from, stride_low(d)) | uint64_t{get(from, stride_high(d))} << 32) << 4;
  if (m.im2col()) m.box[1] = static_cast<uint16_t>(get(from, pixel_bits));
  std::memcpy(m.lower, from + corner_byte, sizeof m.lower);
  std::memcpy(m.upper, from + corner_byte + sizeof m.lower, sizeof m.upper);
  return m;
}

uint32_t TensorMap::element_bits() const {
  switch (element) {
    case Element::B4x16:
    case Element::B4x16Padded:
      return 4;
    case Element::B6x16Padded:
      return 6;
    case Element::U8:
      return 8;
    case Element::U16:
    case Element::F16:
    case Element::BF16:
      return 16;
    case Element::U64:
    case Element::S64:
    case Element::F64:
      return 64;
    default:
      return 32;
  }
}

Type TensorMap::type() const {
  switch (element) {
    case Element::U32:
      return Type::U32;
    case Element::S32:
      return Type::S32;
    case Element::U64:
      return Type::U64;
    case Element::S64:
      return Type::S64;
    case Element::F16:
      return Type::F16;
    case Element::BF16:
      return Type::BF16;
    case Element::F32:
    case Element::F32Ftz:
      return Type::F32;
    case Element::F64:
      return Type::F64;
    default:
      return Type::None;
  }
}

std::string TensorMap::fault() const {
  if (rank() > 5 || (im2col() && rank() < 3)) return "its rank is " + std::to_string(rank());
  if (element >= Element::Unknown) return "its element type is unknown";
  if (interleave) return "interleaved layouts are not supported";
  if (swizzle > Swizzle::B128) return "its swizzle mode is not supported";
  if (atomicity > Atomicity::B64) return "its swizzle atomicity is unknown";
  if (atomicity == Atomicity::B64)
    return "the pattern of a swizzle with an atomicity of 64 bytes is not known";
  if (atomicity != Atomicity::B16 && swizzle != Swizzle::B128)
    return "only a swizzle of 128 bytes has another atomicity than 16 bytes";
  if (padded() &&
      ((swizzle != Swizzle::None && swizzle != Swizzle::B128) || atomicity == Atomicity::B32Flip8))
    return "padded elements have no swizzle, or one of 128 bytes that keeps 16 or 32 together";
  if (fill > Fill::Nan) return "its fill mode is unknown";
  if (address % 16) return "its address is not a multiple of 16";
  const uint32_t boxed = im2col() ? 2 : rank();
  for (uint32_t d = 0; d < boxed; ++d)
    if (box[d] == 0 || (!(im2col() && d == 1) && box[d] > 256))
      return "its box has " + std::to_string(box[d]) + " elements along dimension " + std::to_string(d);
  for (uint32_t d = 1; d < rank(); ++d) {
    if (element_strides[d] == 0 || element_strides[d] > 8)
      return "its element stride along dimension " + std::to_string(d) + " is " +
             std::to_string(element_strides[d]);
    if (strides[d - 1] % 16 || strides[d - 1] >> 40)
      return "its stride of dimension " + std::to_string(d) + " is " + std::to_string(strides[d - 1]) +
             " bytes, expected a multiple of 16 below 2^40";
  }
  if (padded()) {
    if (box[0] != 128)
      return "its box has " + std::to_string(box[0]) + " elements in a row; of padded ones, expected 128";
    if (address % 32) return "its address is not a multiple of 32, as padded elements need";
    if (dim(0) % 128)
      return "its rows have " + std::to_string(dim(0)) +
             " elements; of padded ones, expected a multiple of 128";
  }
  if (element == Element::B4x16 && dim(0) % 2)
    return "its rows have " + std::to_string(dim(0)) + " elements of 4 bits, expected an even number";
  if (row_bytes() % 16)
    return "its box has rows of " + std::to_string(row_bytes()) + " bytes, which is no multiple of 16";
  uint64_t bytes = pitch();
  if (im2col()) bytes *= column();
  for (uint32_t d = 1; d < rank() && !im2col(); ++d) bytes *= count(d);
  if (bytes > 1u << 20) return "its box has " + std::to_string(bytes) + " bytes, more than shared memory";
  if (shared_row_bytes() > pitch())
    return "its box has rows of " + std::to_string(shared_row_bytes()) +
           " bytes, more than its swizzle allows";
  return {};
}

TensorMap encode_tensor_map(const TensorMapParameters& p) {
  const auto refuse = [](const std::string& why) { throw std::invalid_argument("tensor map: " + why); };
  const size_t rank = p.dims.size();
  if (rank < 1 || rank > 5) refuse("a rank of " + std::to_string(rank));
  if (p.strides.size() != rank - 1 || p.element_strides.size() != rank ||
      p.box.size() != (p.pixels != TensorMap::Pixels::None ? 2 : rank))
    refuse("dimensions, strides and box do not have the same rank");
  // In the order of CUtensorMapDataType.
  constexpr Element elements[] = {
      Element::U8,      Element::U16,   Element::U32,         Element::S32,
      Element::U64,     Element::S64,   Element::F16,         Element::F32,
      Element::F64,     Element::BF16,  Element::F32Ftz,      Element::TF32,
      Element::TF32Ftz, Element::B4x16, Element::B4x16Padded, Element::B6x16Padded};
  if (p.element >= std::size(elements))
    refuse("data type " + std::to_string(p.element) + " is not supported");
  TensorMap m;
  m.element = elements[p.element];
  m.rank_minus_one = static_cast<uint8_t>(rank - 1);
  m.address = p.address;
  for (size_t d = 0; d < rank; ++d) {
    if (p.dims[d] == 0 || p.dims[d] > uint64_t{1} << 32)
      refuse("dimension " + std::to_string(d) + " has " + std::to_string(p.dims[d]) + " elements");
    if (p.element_strides[d] == 0 || p.element_strides[d] > 8)
      refuse("element stride " + std::to_string(p.element_strides[d]));
    m.dims[d] = static_cast<uint32_t>(p.dims[d]);
    m.element_strides[d] = static_cast<uint8_t>(p.element_strides[d]);
    if (d > 0) m.strides[d - 1] = p.strides[d - 1];
  }
  for (size_t d = 0; d < p.box.size(); ++d) {
    if (p.box[d] > 1024) refuse("a box of " + std::to_string(p.box[d]) + " elements");
    m.box[d] = static_cast<uint16_t>(p.box[d]);
  }
  // CUtensorMapSwizzle: those of 128 bytes with another atomicity follow the others.
  constexpr uint32_t swizzles = 3, atomicities = 3;
  if (p.interleave > 2 || p.swizzle > swizzles + atomicities || p.fill > 1)
    refuse("interleave, swizzle or fill mode is unknown");
  m.interleave = static_cast<uint8_t>(p.interleave);
  m.swizzle = static_cast<TensorMap::Swizzle>(std::min(p.swizzle, swizzles));
  if (p.swizzle > swizzles) m.atomicity = static_cast<TensorMap::Atomicity>(p.swizzle - swizzles);
  m.fill = static_cast<TensorMap::Fill>(p.fill);
  const bool floating = m.element >= Element::F16 && m.element <= Element::TF32Ftz;
  if (m.fill == TensorMap::Fill::Nan && !floating) refuse("NaN fills floating-point tensors only");
  m.pixels = p.pixels;
  if (m.im2col()) {
    const size_t corners = p.pixels == TensorMap::Pixels::All ? rank - 2 : 1;
    if (rank < 3 || p.lower.size() != corners || p.upper.size() != corners)
      refuse("an im2col map of rank 3 to 5 has corners of one to three dimensions, along W of one");
    constexpr int32_t limits[] = {32768, 128, 16};
    for (size_t d = 0; d < corners; ++d) {
      const int32_t limit = limits[rank - 3];
      if (p.lower[d] < -limit || p.lower[d] >= limit || p.upper[d] < -limit || p.upper[d] >= limit)
        refuse("a corner is out of range");
      if (static_cast<int64_t>(p.dims[d + 1]) + p.upper[d] <= p.lower[d]) refuse("its pixel box is empty");
      m.lower[d] = static_cast<int16_t>(p.lower[d]);
      m.upper[d] = static_cast<int16_t>(p.upper[d]);
    }
  }
  if (const std::string why = m.fault(); !why.empty()) refuse(why);
  return m;
}

}  // namespace simt::functional
