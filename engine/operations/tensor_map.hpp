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
  /// What a swizzle of 128 bytes keeps together (tensormap.replace.swizzle_atomicity). B32Flip8 also
  /// exchanges the halves of 16 bytes, in every other line of 128 bytes.
  enum class Atomicity : uint8_t { B16, B32, B32Flip8, B64 };
  enum class Fill : uint8_t { Zero, Nan };
  /// How pixels are unrolled to a column: not, in all of their dimensions (im2col), along W alone (::w), or
  /// 128 along W (::w::128).
  enum class Pixels : uint8_t { None, All, Row, Row128 };
  /// In PTX's numbering (tensormap.replace.elemtype). The last three are of sm_100: 16 elements of 4 bits,
  /// and of 4 and 6 bits that begin a line of 16 bytes of shared memory.
  enum class Element : uint8_t {
    U8,
    U16,
    U32,
    S32,
    U64,
    S64,
    F16,
    F32,
    F32Ftz,
    F64,
    BF16,
    TF32,
    TF32Ftz,
    B4x16,
    B4x16Padded,
    B6x16Padded,
    Unknown
  };

  uint64_t address = 0;
  uint64_t strides[4] = {};  ///< bytes, for dimensions 1 and up
  uint32_t dims[5] = {};     ///< elements; 0 means 2^32
  uint16_t box[5] = {};      ///< elements traversed; for im2col: channels, pixels
  uint8_t element_strides[5] = {};
  uint8_t rank_minus_one = 0;
  Element element = Element::U8;
  uint8_t interleave = 0;
  Swizzle swizzle = Swizzle::None;
  Atomicity atomicity = Atomicity::B16;
  Fill fill = Fill::Zero;
  Pixels pixels = Pixels::None;
  int16_t lower[3] = {}, upper[3] = {};  ///< im2col: corners of the pixels' bounding box, in W, H and D

  /// In memory, fields lie where ptxas for sm_90 writes them. Those that code does not write, for im2col,
  /// have places of our own.
  std::array<std::byte, memory_bytes> packed() const;
  static TensorMap unpacked(const std::byte* from);

  bool im2col() const { return pixels != Pixels::None; }
  /// Pixels in a column, without those of halos.
  uint32_t column() const { return pixels == Pixels::Row128 ? 128 : box[1]; }
  uint32_t rank() const { return rank_minus_one + 1u; }
  uint64_t dim(uint32_t d) const { return dims[d] ? dims[d] : uint64_t{1} << 32; }
  uint32_t element_bits() const;
  /// The bytes of some elements of a row in global memory.
  int64_t bytes_of(int64_t elements) const { return elements * element_bits() / 8; }
  /// Whether each 16 elements begin a line of 16 bytes in shared memory, where the rest is a gap.
  bool padded() const { return element == Element::B4x16Padded || element == Element::B6x16Padded; }
  /// The type in which reductions are performed; Type::None if there are none for the element type.
  ptx::Type type() const;
  /// Elements along a dimension that a copy in tile mode moves.
  uint32_t count(uint32_t d) const {
    return d == 0 ? box[0] : (box[d] + element_strides[d] - 1u) / element_strides[d];
  }
  /// Of the box, in global memory; this is what transactions count.
  uint32_t row_bytes() const { return static_cast<uint32_t>(bytes_of(box[0])); }
  uint32_t shared_row_bytes() const { return padded() ? box[0] : row_bytes(); }
  /// Distance between rows in shared memory, bytes.
  uint32_t pitch() const {
    return swizzle == Swizzle::None ? shared_row_bytes() : 16u << static_cast<uint32_t>(swizzle);
  }
  /// Bytes that swizzling leaves together.
  uint32_t piece() const { return atomicity == Atomicity::B32Flip8 ? 8 : 16; }
  /// Where swizzling moves the byte at this offset of a CTA's shared memory.
  uint64_t swizzled(uint64_t offset) const {
    const uint64_t line = offset >> 7;
    if (atomicity == Atomicity::B16)
      return offset ^ (line & ((1u << static_cast<uint32_t>(swizzle)) - 1)) << 4;
    return offset ^ (line & 3) << 5 ^ (atomicity == Atomicity::B32Flip8 ? (line & 1) << 3 : 0);
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
  TensorMap::Pixels pixels = TensorMap::Pixels::None;
  std::vector<int32_t> lower, upper;  ///< for im2col: W, H, D; W alone where pixels are along W
};
/// cuTensorMapEncodeTiled, cuTensorMapEncodeIm2col and cuTensorMapEncodeIm2colWide. Throws
/// std::invalid_argument.
TensorMap encode_tensor_map(const TensorMapParameters& parameters);

}  // namespace simt::functional
