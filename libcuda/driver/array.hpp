#pragma once
#include <vector>

#include "process.hpp"

namespace simt::driver {

/// The format of elements of arrays and textures, which have 1, 2 or 4 such channels.
struct Format {
  const char* channel = "unsigned";  ///< "signed", "float"
  uint32_t bytes = 1;
  bool normalized = false;  ///< integers that represent numbers in [0, 1] or [-1, 1]
};
/// Throws Failure (CUDA_ERROR_NOT_SUPPORTED) for planar and compressed formats.
Format format_of(CUarray_format format);

/// An array: rows of elements in device memory, as textures and surfaces read it.
struct Array : Handle {
  static constexpr uint64_t tag = 0x73696d745f617272;
  /// place: its address, if it is a level of a mipmapped array; otherwise it allocates its own memory.
  Array(Device& of, const CUDA_ARRAY3D_DESCRIPTOR& described, uint64_t place = 0);
  Device& device;
  CUDA_ARRAY3D_DESCRIPTOR descriptor;
  Format format;
  uint64_t address = 0, pitch = 0, slice = 0;  ///< bytes between rows and between layers
  bool owns;                                   ///< false for a level of a mipmapped array

  uint64_t texel_bytes() const { return uint64_t{format.bytes} * descriptor.NumChannels; }
  /// Rows per layer, and layers, faces or depth: 1 where the descriptor has 0.
  uint64_t rows() const { return std::max<uint64_t>(1, descriptor.Height); }
  uint64_t layers() const { return std::max<uint64_t>(1, descriptor.Depth); }
  uint64_t bytes() const { return slice * layers(); }
  bool layered() const { return (descriptor.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0; }
  /// As PTX names it: "1d", "a2d", "cube", ...
  const char* geometry() const;
};

struct MipmappedArray : Handle {
  static constexpr uint64_t tag = 0x73696d745f6d6970;
  MipmappedArray(Device& of, const CUDA_ARRAY3D_DESCRIPTOR& base, unsigned count);
  ~MipmappedArray();
  Device& device;
  uint64_t address = 0;
  std::vector<Array*> levels;  ///< its own
};

/// A side of a copy that is in an array, starting at x bytes, y rows and z layers. Throws Failure if the copy
/// exceeds the array.
Copy::Side side_of_array(CUarray array, size_t x, size_t y, size_t z, const Copy& copy);

}  // namespace simt::driver
