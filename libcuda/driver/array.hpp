#pragma once
#include "process.hpp"

namespace simt::driver {

/// An array: rows of elements in device memory, as textures and surfaces read it.
struct Array : Handle {
  static constexpr uint64_t tag = 0x73696d745f617272;
  Array(Device& of, const CUDA_ARRAY3D_DESCRIPTOR& described);
  Device& device;
  CUDA_ARRAY3D_DESCRIPTOR descriptor;
  uint64_t address = 0, pitch = 0, slice = 0;  ///< bytes from row to row and from layer to layer
  bool owns = true;                            ///< false for a level of a mipmapped array
};

/// Where a place in an array lies: x in bytes, y in rows, z in layers.
Copy::Side side_of_array(CUarray array, size_t x, size_t y, size_t z);

}  // namespace simt::driver
