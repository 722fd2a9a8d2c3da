#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "ptx/module.hpp"

namespace simt::functional {

/// A tensor map (CUtensorMap). Kernels may copy the 128 bytes that it has in memory, and modify them with
/// tensormap.replace. Dimension 0 is the innermost.
struct TensorMap {
  static constexpr uint32_t memory_bytes = 128;
  enum class Swizzle : uint8_t { None, B32, B64, B128 };
  enum class Fill : uint8_t { Zero, Nan };
  /// In PTX's numbering (tensormap.replace.elemtype).
  enum class Element : uint8_t { U8, U16, U32, S32, U64, S64, F16, F32, F32Ftz, F64, BF16, TF32, TF32Ftz };

  uint64_t address = 0;
  uint64_t strides[4] = {};  ///< bytes, for dimensions 1 and up
  uint32_t dims[5] = {};     ///< elements; 0 means 2^32
  uint16_t box[5] = {};      ///< elements traversed; for im2col: channels, pixels
  uint8_t element_strides[5] = {};
  uint8_t rank_minus_one = 0;
  Element element = Element::U8;
  uint8_t interleave = 0;
  Swizzle swizzle = Swizzle::None;
  Fill fill = Fill::Zero;
  uint8_t im2col = 0;
  int16_t lower[3] = {}, upper[3] = {};  ///< im2col: corners of the pixels' bounding box, in W, H and D

  /// In memory, fields lie where ptxas for sm_90 writes them. Those that code does not write, for im2col,
  /// have places of our own.
  std::array<std::byte, memory_bytes> packed() const;
  static TensorMap unpacked(const std::byte* from);

  uint32_t rank() const { return rank_minus_one + 1u; }
  uint64_t dim(uint32_t d) const { return dims[d] ? dims[d] : uint64_t{1} << 32; }
  uint32_t element_bytes() const;
  /// The type in which reductions are performed; Type::None if there are none for the element type.
  ptx::Type type() const;
  /// Elements along a dimension that a copy in tile mode moves.
  uint32_t count(uint32_t d) const {
    return d == 0 ? box[0] : (box[d] + element_strides[d] - 1u) / element_strides[d];
  }
  uint32_t row_bytes() const { return box[0] * element_bytes(); }
  /// Distance between rows in shared memory, bytes.
  uint32_t pitch() const {
    return swizzle == Swizzle::None ? row_bytes() : 16u << static_cast<uint32_t>(swizzle);
  }
  /// Where swizzling moves the byte at this offset of a CTA's shared memory.
  uint64_t swizzled(uint64_t offset) const {
    const uint64_t mask = (1u << static_cast<uint32_t>(swizzle)) - 1;
    return offset ^ ((offset >> 7 & mask) << 4);
  }
  /// Why copies cannot use the map; empty if they can.
  std::string fault() const;
};
/// The parameters of the driver's functions for tensor maps, in their numbering and order.
struct TensorMapParameters {
  uint32_t element = 0;  ///< CUtensorMapDataType
  uint64_t address = 0;
  std::vector<uint64_t> dims, strides;  ///< elements; bytes, one stride fewer than dims
  std::vector<uint32_t> box;            ///< for im2col: {channels per pixel, pixels per column}
  std::vector<uint32_t> element_strides;
  uint32_t interleave = 0, swizzle = 0, fill = 0;
  bool im2col = false;
  std::vector<int32_t> lower, upper;  ///< for im2col: W, H, D
};
/// cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col. Throws std::invalid_argument.
TensorMap encode_tensor_map(const TensorMapParameters& parameters);

}  // namespace simt::functional
