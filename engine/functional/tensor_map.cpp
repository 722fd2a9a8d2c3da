#include "functional/tensor_map.hpp"

namespace simt::functional {

using ptx::Type;

uint32_t TensorMap::element_bytes() const {
  switch (element) {
    case Element::U8:
      return 1;
    case Element::U16:
    case Element::F16:
    case Element::BF16:
      return 2;
    case Element::U64:
    case Element::S64:
    case Element::F64:
      return 8;
    default:
      return 4;
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
  if (rank() > 5 || (im2col && rank() < 3)) return "its rank is " + std::to_string(rank());
  if (element > Element::TF32Ftz) return "its element type is not supported";
  if (interleave) return "interleaved layouts are not supported";
  if (swizzle > Swizzle::B128) return "its swizzle mode is not supported";
  if (fill > Fill::Nan) return "its fill mode is unknown";
  if (address % 16) return "its address is not a multiple of 16";
  const uint32_t boxed = im2col ? 2 : rank();
  for (uint32_t d = 0; d < boxed; ++d)
    if (box[d] == 0 || (!(im2col && d == 1) && box[d] > 256))
      return "its box has " + std::to_string(box[d]) + " elements along dimension " + std::to_string(d);
  for (uint32_t d = 1; d < rank(); ++d) {
    if (element_strides[d] == 0 || element_strides[d] > 8)
      return "its element stride along dimension " + std::to_string(d) + " is " +
             std::to_string(element_strides[d]);
    if (strides[d - 1] % 16 || strides[d - 1] >> 40)
      return "its stride of dimension " + std::to_string(d) + " is " + std::to_string(strides[d - 1]) +
             " bytes, expected a multiple of 16 below 2^40";
  }
  if (row_bytes() % 16)
    return "its box has rows of " + std::to_string(row_bytes()) + " bytes, which is no multiple of 16";
  uint64_t bytes = pitch();
  if (im2col) bytes *= box[1];
  for (uint32_t d = 1; d < rank() && !im2col; ++d) bytes *= count(d);
  if (bytes > 1u << 20) return "its box has " + std::to_string(bytes) + " bytes, more than shared memory";
  if (row_bytes() > pitch())
    return "its box has rows of " + std::to_string(row_bytes()) + " bytes, more than its swizzle allows";
  return {};
}

TensorMap encode_tensor_map(const TensorMapParameters& p) {
  using Element = TensorMap::Element;
  const auto refuse = [](const std::string& why) { throw std::invalid_argument("tensor map: " + why); };
  const size_t rank = p.dims.size();
  if (rank < 1 || rank > 5) refuse("a rank of " + std::to_string(rank));
  if (p.strides.size() != rank - 1 || p.element_strides.size() != rank ||
      p.box.size() != (p.im2col ? 2 : rank))
    refuse("dimensions, strides and box do not have the same rank");
  // In the order of CUtensorMapDataType.
  constexpr Element elements[] = {Element::U8,     Element::U16,  Element::U32,    Element::S32,
                                  Element::U64,    Element::S64,  Element::F16,    Element::F32,
                                  Element::F64,    Element::BF16, Element::F32Ftz, Element::TF32,
                                  Element::TF32Ftz};
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
  if (p.interleave > 2 || p.swizzle > 3 || p.fill > 1)
    refuse("interleave, swizzle or fill mode is not supported");
  m.interleave = static_cast<uint8_t>(p.interleave);
  m.swizzle = static_cast<TensorMap::Swizzle>(p.swizzle);
  m.fill = static_cast<TensorMap::Fill>(p.fill);
  const bool floating = m.element >= Element::F16;
  if (m.fill == TensorMap::Fill::Nan && !floating) refuse("NaN fills floating-point tensors only");
  if (p.im2col) {
    m.im2col = 1;
    if (rank < 3 || p.lower.size() != rank - 2 || p.upper.size() != rank - 2)
      refuse("an im2col map of rank 3 to 5 has corners of one to three dimensions");
    constexpr int32_t limits[] = {32768, 128, 16};
    for (size_t d = 0; d + 2 < rank; ++d) {
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
