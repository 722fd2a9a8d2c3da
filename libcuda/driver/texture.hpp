#pragma once
#include "array.hpp"

namespace simt::driver {

/// What a texture or surface reads: texels in device memory.
struct Image {
  const char* geometry = "1d";
  Format format;
  unsigned channels = 1;
  bool linear_memory = false, mipmapped = false;
  /// Address, bytes between rows and between layers, width, height, layers.
  std::vector<std::array<uint64_t, 6>> levels;
};
/// Throws Failure for an invalid resource, or a view that does not fit it. view: may be nullptr.
Image image_of(const CUDA_RESOURCE_DESC& resource, const CUDA_RESOURCE_VIEW_DESC* view);

/// Describes a texture (or a surface, without sampling) to simt. place: address of a reference's variable; 0:
/// new memory. Returns the address of the description, which kernels use as the handle. Throws Failure.
uint64_t describe(Device& device, const Image& image, const CUDA_TEXTURE_DESC* sampling, uint64_t place = 0);

}  // namespace simt::driver
