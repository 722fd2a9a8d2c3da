// Filling memory.
#include <optional>

#include "runtime.hpp"

namespace runtime {
namespace {

// No stream: the default stream.
using FillStream = std::optional<CUstream>;
constexpr FillStream none = std::nullopt;

cudaError_t fill(void* address, int value, size_t size, FillStream stream) {
  if (size == 0) return cudaSuccess;
  const auto start = reinterpret_cast<CUdeviceptr>(address);
  const auto byte = static_cast<unsigned char>(value);
  return to_error(stream ? cuMemsetD8Async(start, byte, size, *stream) : cuMemsetD8(start, byte, size));
}

cudaError_t fill_2d(void* address, size_t pitch, int value, size_t width, size_t height, FillStream stream) {
  if (width == 0 || height == 0) return cudaSuccess;
  if (width > pitch && height > 1) return cudaErrorInvalidPitchValue;
  const auto start = reinterpret_cast<CUdeviceptr>(address);
  const auto byte = static_cast<unsigned char>(value);
  return to_error(stream ? cuMemsetD2D8Async(start, pitch, byte, width, height, *stream)
                         : cuMemsetD2D8(start, pitch, byte, width, height));
}

// Contiguous slices are one area.
cudaError_t fill_3d(cudaPitchedPtr pitched, int value, cudaExtent extent, FillStream stream) {
  if (extent.height == pitched.ysize)
    return fill_2d(pitched.ptr, pitched.pitch, value, extent.width, extent.height * extent.depth, stream);
  for (size_t slice = 0; slice < extent.depth; ++slice) {
    char* start = static_cast<char*>(pitched.ptr) + slice * pitched.pitch * pitched.ysize;
    RUNTIME_TRY(fill_2d(start, pitched.pitch, value, extent.width, extent.height, stream));
  }
  return cudaSuccess;
}

}  // namespace
}  // namespace runtime

using namespace runtime;

extern "C" {

cudaError_t cudaMemset(void* address, int value, size_t size) {
  return call(fill, address, value, size, none);
}
cudaError_t cudaMemsetAsync(void* address, int value, size_t size, cudaStream_t stream) {
  return call(fill, address, value, size, stream);
}
cudaError_t cudaMemset2D(void* address, size_t pitch, int value, size_t width, size_t height) {
  return call(fill_2d, address, pitch, value, width, height, none);
}
cudaError_t cudaMemset2DAsync(void* address, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream) {
  return call(fill_2d, address, pitch, value, width, height, stream);
}
cudaError_t cudaMemset3D(cudaPitchedPtr pitched, int value, cudaExtent extent) {
  return call(fill_3d, pitched, value, extent, none);
}
cudaError_t cudaMemset3DAsync(cudaPitchedPtr pitched, int value, cudaExtent extent, cudaStream_t stream) {
  return call(fill_3d, pitched, value, extent, stream);
}

}  // extern "C"
