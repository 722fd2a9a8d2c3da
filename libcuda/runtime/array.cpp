// Arrays and mipmapped arrays.
#include "channel.hpp"

namespace runtime {
namespace {

cudaError_t descriptor_of(const cudaChannelFormatDesc* channels, cudaExtent extent, unsigned int flags,
                          CUDA_ARRAY3D_DESCRIPTOR* result) {
  if (!channels) return cudaErrorInvalidValue;
  ElementFormat format{};
  RUNTIME_TRY(driver_format(*channels, &format));
  *result = {extent.width, extent.height, extent.depth, format.format, format.channels, flags};
  return cudaSuccess;
}

cudaError_t allocate_array(cudaArray_t* array, const cudaChannelFormatDesc* channels, cudaExtent extent,
                           unsigned int flags) {
  if (!array) return cudaErrorInvalidValue;
  CUDA_ARRAY3D_DESCRIPTOR descriptor;
  RUNTIME_TRY(descriptor_of(channels, extent, flags, &descriptor));
  return forward(cuArray3DCreate, array, &descriptor);
}

cudaError_t allocate_mipmapped(cudaMipmappedArray_t* array, const cudaChannelFormatDesc* channels,
                               cudaExtent extent, unsigned int levels, unsigned int flags) {
  if (!array) return cudaErrorInvalidValue;
  CUDA_ARRAY3D_DESCRIPTOR descriptor;
  RUNTIME_TRY(descriptor_of(channels, extent, flags, &descriptor));
  return forward(cuMipmappedArrayCreate, array, &descriptor, levels);
}

cudaError_t release_array(cudaArray_t array) {
  return array ? to_error(cuArrayDestroy(driver_array(array))) : cudaSuccess;
}

cudaError_t release_mipmapped(cudaMipmappedArray_t array) {
  return array ? to_error(cuMipmappedArrayDestroy(driver_array(array))) : cudaSuccess;
}

cudaError_t level_of(cudaArray_t* level, cudaMipmappedArray_const_t array, unsigned int index) {
  return forward(cuMipmappedArrayGetLevel, level, driver_array(array), index);
}

cudaError_t describe(cudaChannelFormatDesc* channels, cudaExtent* extent, unsigned int* flags,
                     cudaArray_const_t array) {
  CUDA_ARRAY3D_DESCRIPTOR descriptor;
  RUNTIME_TRY(cuArray3DGetDescriptor(&descriptor, driver_array(array)));
  if (channels) RUNTIME_TRY(runtime_format({descriptor.Format, descriptor.NumChannels}, channels));
  if (extent) *extent = {descriptor.Width, descriptor.Height, descriptor.Depth};
  if (flags) *flags = descriptor.Flags;
  return cudaSuccess;
}

cudaError_t channels_of(cudaChannelFormatDesc* channels, cudaArray_const_t array) {
  return channels ? describe(channels, nullptr, nullptr, array) : cudaErrorInvalidValue;
}

cudaError_t linear_texture_width(size_t* width, const cudaChannelFormatDesc* channels, int device) {
  if (!channels) return cudaErrorInvalidValue;
  ElementFormat format{};
  RUNTIME_TRY(driver_format(*channels, &format));
  return to_error(cuDeviceGetTexture1DLinearMaxWidth(width, format.format, format.channels, device));
}

}  // namespace
}  // namespace runtime

using runtime::call;
using runtime::query;

extern "C" {

cudaError_t cudaMallocArray(cudaArray_t* array, const cudaChannelFormatDesc* channels, size_t width,
                            size_t height, unsigned int flags) {
  return call(runtime::allocate_array, array, channels, cudaExtent{width, height, 0}, flags);
}
cudaError_t cudaMalloc3DArray(cudaArray_t* array, const cudaChannelFormatDesc* channels, cudaExtent extent,
                              unsigned int flags) {
  return call(runtime::allocate_array, array, channels, extent, flags);
}
cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t* array, const cudaChannelFormatDesc* channels,
                                     cudaExtent extent, unsigned int levels, unsigned int flags) {
  return call(runtime::allocate_mipmapped, array, channels, extent, levels, flags);
}
cudaError_t cudaGetMipmappedArrayLevel(cudaArray_t* level, cudaMipmappedArray_const_t array,
                                       unsigned int index) {
  return call(runtime::level_of, level, array, index);
}
cudaError_t cudaFreeArray(cudaArray_t array) {
  return call(runtime::release_array, array);
}
cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t array) {
  return call(runtime::release_mipmapped, array);
}

cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc* channels, cudaExtent* extent, unsigned int* flags,
                             cudaArray_t array) {
  return call(runtime::describe, channels, extent, flags, array);
}
cudaError_t cudaGetChannelDesc(cudaChannelFormatDesc* channels, cudaArray_const_t array) {
  return call(runtime::channels_of, channels, array);
}
cudaError_t cudaArrayGetPlane(cudaArray_t* plane, cudaArray_t array, unsigned int index) {
  return call(cuArrayGetPlane, plane, runtime::driver_array(array), index);
}
cudaError_t cudaArrayGetMemoryRequirements(cudaArrayMemoryRequirements* requirements, cudaArray_t array,
                                           int device) {
  return call(cuArrayGetMemoryRequirements, requirements, runtime::driver_array(array), device);
}
cudaError_t cudaMipmappedArrayGetMemoryRequirements(cudaArrayMemoryRequirements* requirements,
                                                    cudaMipmappedArray_t array, int device) {
  return call(cuMipmappedArrayGetMemoryRequirements, requirements, runtime::driver_array(array), device);
}
cudaError_t cudaArrayGetSparseProperties(cudaArraySparseProperties* properties, cudaArray_t array) {
  return call(cuArrayGetSparseProperties, properties, runtime::driver_array(array));
}
cudaError_t cudaMipmappedArrayGetSparseProperties(cudaArraySparseProperties* properties,
                                                  cudaMipmappedArray_t array) {
  return call(cuMipmappedArrayGetSparseProperties, properties, runtime::driver_array(array));
}
cudaError_t cudaDeviceGetTexture1DLinearMaxWidth(size_t* width, const cudaChannelFormatDesc* channels,
                                                 int device) {
  return query(runtime::linear_texture_width, width, channels, device);
}

}  // extern "C"
