// Texture and surface references, which CUDA 12 removed: for programs compiled with CUDA 11.
#include "channel.hpp"
#include "registration.hpp"

namespace runtime {

// The host's part of a texture reference, in CUDA 11's documented layout.
struct TextureReference {
  int normalized;
  cudaTextureFilterMode filterMode;
  cudaTextureAddressMode addressMode[3];
  cudaChannelFormatDesc channelDesc;
  int sRGB;
  unsigned int maxAnisotropy;
  cudaTextureFilterMode mipmapFilterMode;
  float mipmapLevelBias;
  float minMipmapLevelClamp;
  float maxMipmapLevelClamp;
  int disableTrilinearOptimization;
};

namespace {

cudaError_t module_of(const Reference& reference, CUmodule* module) {
  CUlibrary library = nullptr;
  RUNTIME_TRY(load(*reference.module, &library));
  return to_error(cuLibraryGetModule(module, library));
}

// The driver's reference with the host's sampling parameters; `channels` is the element format.
cudaError_t prepare(const TextureReference* texture, const cudaChannelFormatDesc& channels, CUtexref* result,
                    ElementFormat* format) {
  const Reference* reference = find_reference(texture);
  if (!reference) return cudaErrorInvalidTexture;
  CUmodule module = nullptr;
  RUNTIME_TRY(module_of(*reference, &module));
  RUNTIME_TRY(cuModuleGetTexRef(result, module, reference->name.c_str()));
  RUNTIME_TRY(driver_format(channels, format));
  RUNTIME_TRY(cuTexRefSetFormat(*result, format->format, static_cast<int>(format->channels)));
  for (int axis = 0; axis < 3; ++axis)
    RUNTIME_TRY(forward(cuTexRefSetAddressMode, *result, axis, texture->addressMode[axis]));
  RUNTIME_TRY(forward(cuTexRefSetFilterMode, *result, texture->filterMode));
  unsigned int flags = reference->normalised_read ? 0 : CU_TRSF_READ_AS_INTEGER;
  if (texture->normalized) flags |= CU_TRSF_NORMALIZED_COORDINATES;
  if (texture->sRGB) flags |= CU_TRSF_SRGB;
  return to_error(cuTexRefSetFlags(*result, flags));
}

cudaError_t bind_linear(size_t* offset, const TextureReference* texture, const void* address,
                        const cudaChannelFormatDesc* channels, size_t size) {
  if (!texture || !channels) return cudaErrorInvalidValue;
  CUtexref reference = nullptr;
  ElementFormat format{};
  RUNTIME_TRY(prepare(texture, *channels, &reference, &format));
  size_t misaligned = 0;
  RUNTIME_TRY(forward(cuTexRefSetAddress, &misaligned, reference, address, size));
  if (misaligned && !offset) return cudaErrorInvalidValue;
  if (offset) *offset = misaligned;
  return cudaSuccess;
}

cudaError_t bind_2d(size_t* offset, const TextureReference* texture, const void* address,
                    const cudaChannelFormatDesc* channels, size_t width, size_t height, size_t pitch) {
  if (!texture || !channels) return cudaErrorInvalidValue;
  CUtexref reference = nullptr;
  ElementFormat format{};
  RUNTIME_TRY(prepare(texture, *channels, &reference, &format));
  const CUDA_ARRAY_DESCRIPTOR descriptor{width, height, format.format, format.channels};
  if (offset) *offset = 0;
  return forward(cuTexRefSetAddress2D, reference, &descriptor, address, pitch);
}

cudaError_t bind_array(const TextureReference* texture, cudaArray_const_t array,
                       const cudaChannelFormatDesc* channels) {
  if (!texture || !array || !channels) return cudaErrorInvalidValue;
  CUtexref reference = nullptr;
  ElementFormat format{};
  RUNTIME_TRY(prepare(texture, *channels, &reference, &format));
  return to_error(cuTexRefSetArray(reference, driver_array(array), CU_TRSA_OVERRIDE_FORMAT));
}

cudaError_t bind_mipmapped(const TextureReference* texture, cudaMipmappedArray_const_t array,
                           const cudaChannelFormatDesc* channels) {
  if (!texture || !array || !channels) return cudaErrorInvalidValue;
  CUtexref reference = nullptr;
  ElementFormat format{};
  RUNTIME_TRY(prepare(texture, *channels, &reference, &format));
  return to_error(cuTexRefSetMipmappedArray(reference, driver_array(array), CU_TRSA_OVERRIDE_FORMAT));
}

cudaError_t bind_surface(const void* surface, cudaArray_const_t array) {
  const Reference* reference = find_reference(surface);
  if (!reference) return cudaErrorInvalidSurface;
  CUmodule module = nullptr;
  CUsurfref driver_reference = nullptr;
  RUNTIME_TRY(module_of(*reference, &module));
  RUNTIME_TRY(cuModuleGetSurfRef(&driver_reference, module, reference->name.c_str()));
  return to_error(cuSurfRefSetArray(driver_reference, driver_array(array), 0));
}

// A reference's texture remains readable until it is rebound, which CUDA permits.
cudaError_t unbind(const TextureReference* texture) {
  return find_reference(texture) ? cudaSuccess : cudaErrorInvalidTexture;
}

// The host address of a reference is its symbol.
cudaError_t reference_of(const void** result, const void* symbol) {
  if (!result) return cudaErrorInvalidValue;
  if (!find_reference(symbol)) return cudaErrorInvalidTexture;
  *result = symbol;
  return cudaSuccess;
}

}  // namespace
}  // namespace runtime

using namespace runtime;

extern "C" {

cudaError_t cudaBindTexture(size_t* offset, const TextureReference* texture, const void* address,
                            const cudaChannelFormatDesc* channels, size_t size) {
  return call(bind_linear, offset, texture, address, channels, size);
}
cudaError_t cudaBindTexture2D(size_t* offset, const TextureReference* texture, const void* address,
                              const cudaChannelFormatDesc* channels, size_t width, size_t height,
                              size_t pitch) {
  return call(bind_2d, offset, texture, address, channels, width, height, pitch);
}
cudaError_t cudaBindTextureToArray(const TextureReference* texture, cudaArray_const_t array,
                                   const cudaChannelFormatDesc* channels) {
  return call(bind_array, texture, array, channels);
}
cudaError_t cudaBindTextureToMipmappedArray(const TextureReference* texture, cudaMipmappedArray_const_t array,
                                            const cudaChannelFormatDesc* channels) {
  return call(bind_mipmapped, texture, array, channels);
}
cudaError_t cudaUnbindTexture(const TextureReference* texture) {
  return call(unbind, texture);
}
cudaError_t cudaBindSurfaceToArray(const void* surface, cudaArray_const_t array,
                                   const cudaChannelFormatDesc*) {
  return call(bind_surface, surface, array);
}
cudaError_t cudaGetTextureReference(const void** texture, const void* symbol) {
  return call(reference_of, texture, symbol);
}
cudaError_t cudaGetSurfaceReference(const void** surface, const void* symbol) {
  return call(reference_of, surface, symbol);
}

}  // extern "C"
