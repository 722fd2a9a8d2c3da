// Texture and surface objects.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>

#include "channel.hpp"

namespace runtime {
namespace {

cudaError_t driver_resource(const cudaResourceDesc& resource, CUDA_RESOURCE_DESC* result) {
  *result = {};
  result->resType = static_cast<CUresourcetype>(resource.resType);
  ElementFormat format{};
  switch (resource.resType) {
    case cudaResourceTypeArray:
      result->res.array.hArray = driver_array(resource.res.array.array);
      return cudaSuccess;
    case cudaResourceTypeMipmappedArray:
      result->res.mipmap.hMipmappedArray = driver_array(resource.res.mipmap.mipmap);
      return cudaSuccess;
    case cudaResourceTypeLinear: {
      const auto& linear = resource.res.linear;
      RUNTIME_TRY(driver_format(linear.desc, &format));
      result->res.linear = {reinterpret_cast<CUdeviceptr>(linear.devPtr), format.format, format.channels,
                            linear.sizeInBytes};
      return cudaSuccess;
    }
    case cudaResourceTypePitch2D: {
      const auto& area = resource.res.pitch2D;
      RUNTIME_TRY(driver_format(area.desc, &format));
      result->res.pitch2D = {reinterpret_cast<CUdeviceptr>(area.devPtr),
                             format.format,
                             format.channels,
                             area.width,
                             area.height,
                             area.pitchInBytes};
      return cudaSuccess;
    }
  }
  return cudaErrorInvalidValue;
}

cudaError_t runtime_resource(const CUDA_RESOURCE_DESC& resource, cudaResourceDesc* result) {
  *result = {};
  result->resType = static_cast<cudaResourceType>(resource.resType);
  switch (resource.resType) {
    case CU_RESOURCE_TYPE_ARRAY:
      result->res.array.array = runtime_array(resource.res.array.hArray);
      return cudaSuccess;
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
      result->res.mipmap.mipmap = reinterpret_cast<cudaMipmappedArray_t>(resource.res.mipmap.hMipmappedArray);
      return cudaSuccess;
    case CU_RESOURCE_TYPE_LINEAR: {
      const auto& linear = resource.res.linear;
      result->res.linear.devPtr = pointer(linear.devPtr);
      result->res.linear.sizeInBytes = linear.sizeInBytes;
      return runtime_format({linear.format, linear.numChannels}, &result->res.linear.desc);
    }
    case CU_RESOURCE_TYPE_PITCH2D: {
      const auto& area = resource.res.pitch2D;
      result->res.pitch2D.devPtr = pointer(area.devPtr);
      result->res.pitch2D.width = area.width;
      result->res.pitch2D.height = area.height;
      result->res.pitch2D.pitchInBytes = area.pitchInBytes;
      return runtime_format({area.format, area.numChannels}, &result->res.pitch2D.desc);
    }
  }
  return cudaErrorInvalidValue;
}

struct TextureFlag {
  unsigned int driver;
  int cudaTextureDesc::* runtime;
};
constexpr TextureFlag texture_flags[] = {
    {CU_TRSF_NORMALIZED_COORDINATES, &cudaTextureDesc::normalizedCoords},
    {CU_TRSF_SRGB, &cudaTextureDesc::sRGB},
    {CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION, &cudaTextureDesc::disableTrilinearOptimization},
    {CU_TRSF_SEAMLESS_CUBEMAP, &cudaTextureDesc::seamlessCubemap},
};

CUDA_TEXTURE_DESC driver_texture(const cudaTextureDesc& texture) {
  CUDA_TEXTURE_DESC result{};
  for (int axis = 0; axis < 3; ++axis)
    result.addressMode[axis] = static_cast<CUaddress_mode>(texture.addressMode[axis]);
  result.filterMode = static_cast<CUfilter_mode>(texture.filterMode);
  if (texture.readMode == cudaReadModeElementType) result.flags |= CU_TRSF_READ_AS_INTEGER;
  for (const TextureFlag& flag : texture_flags)
    if (texture.*flag.runtime) result.flags |= flag.driver;
  result.maxAnisotropy = texture.maxAnisotropy;
  result.mipmapFilterMode = static_cast<CUfilter_mode>(texture.mipmapFilterMode);
  result.mipmapLevelBias = texture.mipmapLevelBias;
  result.minMipmapLevelClamp = texture.minMipmapLevelClamp;
  result.maxMipmapLevelClamp = texture.maxMipmapLevelClamp;
  std::copy(std::begin(texture.borderColor), std::end(texture.borderColor), result.borderColor);
  return result;
}

cudaTextureDesc runtime_texture(const CUDA_TEXTURE_DESC& texture) {
  cudaTextureDesc result{};
  for (int axis = 0; axis < 3; ++axis)
    result.addressMode[axis] = static_cast<cudaTextureAddressMode>(texture.addressMode[axis]);
  result.filterMode = static_cast<cudaTextureFilterMode>(texture.filterMode);
  result.readMode =
      texture.flags & CU_TRSF_READ_AS_INTEGER ? cudaReadModeElementType : cudaReadModeNormalizedFloat;
  for (const TextureFlag& flag : texture_flags) result.*flag.runtime = (texture.flags & flag.driver) != 0;
  result.maxAnisotropy = texture.maxAnisotropy;
  result.mipmapFilterMode = static_cast<cudaTextureFilterMode>(texture.mipmapFilterMode);
  result.mipmapLevelBias = texture.mipmapLevelBias;
  result.minMipmapLevelClamp = texture.minMipmapLevelClamp;
  result.maxMipmapLevelClamp = texture.maxMipmapLevelClamp;
  std::copy(std::begin(texture.borderColor), std::end(texture.borderColor), result.borderColor);
  return result;
}

CUDA_RESOURCE_VIEW_DESC driver_view(const cudaResourceViewDesc& view) {
  CUDA_RESOURCE_VIEW_DESC result{};
  result.format = static_cast<CUresourceViewFormat>(view.format);
  result.width = view.width;
  result.height = view.height;
  result.depth = view.depth;
  result.firstMipmapLevel = view.firstMipmapLevel;
  result.lastMipmapLevel = view.lastMipmapLevel;
  result.firstLayer = view.firstLayer;
  result.lastLayer = view.lastLayer;
  return result;
}

cudaError_t create(cudaTextureObject_t* object, const cudaResourceDesc* resource,
                   const cudaTextureDesc* texture, const cudaResourceViewDesc* view) {
  if (!object || !resource || !texture) return cudaErrorInvalidValue;
  CUDA_RESOURCE_DESC driver_resource_desc;
  RUNTIME_TRY(driver_resource(*resource, &driver_resource_desc));
  const CUDA_TEXTURE_DESC driver_texture_desc = driver_texture(*texture);
  const CUDA_RESOURCE_VIEW_DESC driver_view_desc = view ? driver_view(*view) : CUDA_RESOURCE_VIEW_DESC{};
  return to_error(cuTexObjectCreate(object, &driver_resource_desc, &driver_texture_desc,
                                    view ? &driver_view_desc : nullptr));
}

// CUDA 11's structure of the same name lacks the last field, `seamlessCubemap`.
constexpr size_t texture_size_v11 = offsetof(cudaTextureDesc, seamlessCubemap);

cudaError_t create_v11(cudaTextureObject_t* object, const cudaResourceDesc* resource, const void* texture,
                       const cudaResourceViewDesc* view) {
  cudaTextureDesc full{};
  if (texture) std::memcpy(&full, texture, texture_size_v11);
  return create(object, resource, texture ? &full : nullptr, view);
}

template <auto GetResource>
cudaError_t resource_of(cudaResourceDesc* result, cudaTextureObject_t object) {
  if (!result) return cudaErrorInvalidValue;
  CUDA_RESOURCE_DESC resource;
  RUNTIME_TRY(GetResource(&resource, object));
  return runtime_resource(resource, result);
}

cudaError_t texture_of(cudaTextureDesc* result, cudaTextureObject_t object) {
  if (!result) return cudaErrorInvalidValue;
  CUDA_TEXTURE_DESC texture;
  RUNTIME_TRY(cuTexObjectGetTextureDesc(&texture, object));
  *result = runtime_texture(texture);
  return cudaSuccess;
}

cudaError_t texture_of_v11(void* result, cudaTextureObject_t object) {
  if (!result) return cudaErrorInvalidValue;
  cudaTextureDesc texture;
  RUNTIME_TRY(texture_of(&texture, object));
  std::memcpy(result, &texture, texture_size_v11);
  return cudaSuccess;
}

cudaError_t view_of(cudaResourceViewDesc* result, cudaTextureObject_t object) {
  if (!result) return cudaErrorInvalidValue;
  CUDA_RESOURCE_VIEW_DESC view;
  RUNTIME_TRY(cuTexObjectGetResourceViewDesc(&view, object));
  *result = {static_cast<cudaResourceViewFormat>(view.format),
             view.width,
             view.height,
             view.depth,
             view.firstMipmapLevel,
             view.lastMipmapLevel,
             view.firstLayer,
             view.lastLayer};
  return cudaSuccess;
}

cudaError_t create_surface(cudaSurfaceObject_t* object, const cudaResourceDesc* resource) {
  if (!object || !resource) return cudaErrorInvalidValue;
  CUDA_RESOURCE_DESC driver_resource_desc;
  RUNTIME_TRY(driver_resource(*resource, &driver_resource_desc));
  return to_error(cuSurfObjectCreate(object, &driver_resource_desc));
}

}  // namespace
}  // namespace runtime

using namespace runtime;

extern "C" {

cudaError_t v11_cudaCreateTextureObject(cudaTextureObject_t* object, const cudaResourceDesc* resource,
                                        const void* texture, const cudaResourceViewDesc* view) {
  return call(create_v11, object, resource, texture, view);
}
cudaError_t v12_cudaCreateTextureObject(cudaTextureObject_t* object, const cudaResourceDesc* resource,
                                        const cudaTextureDesc* texture, const cudaResourceViewDesc* view) {
  return call(create, object, resource, texture, view);
}
cudaError_t cudaCreateTextureObject_v2(cudaTextureObject_t* object, const cudaResourceDesc* resource,
                                       const cudaTextureDesc* texture, const cudaResourceViewDesc* view) {
  return call(create, object, resource, texture, view);
}
cudaError_t cudaDestroyTextureObject(cudaTextureObject_t object) {
  return call(cuTexObjectDestroy, object);
}
cudaError_t cudaGetTextureObjectResourceDesc(cudaResourceDesc* resource, cudaTextureObject_t object) {
  return call(resource_of<cuTexObjectGetResourceDesc>, resource, object);
}
cudaError_t v11_cudaGetTextureObjectTextureDesc(void* texture, cudaTextureObject_t object) {
  return call(texture_of_v11, texture, object);
}
cudaError_t v12_cudaGetTextureObjectTextureDesc(cudaTextureDesc* texture, cudaTextureObject_t object) {
  return call(texture_of, texture, object);
}
cudaError_t cudaGetTextureObjectTextureDesc_v2(cudaTextureDesc* texture, cudaTextureObject_t object) {
  return call(texture_of, texture, object);
}
cudaError_t cudaGetTextureObjectResourceViewDesc(cudaResourceViewDesc* view, cudaTextureObject_t object) {
  return call(view_of, view, object);
}

cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t* object, const cudaResourceDesc* resource) {
  return call(create_surface, object, resource);
}
cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t object) {
  return call(cuSurfObjectDestroy, object);
}
cudaError_t cudaGetSurfaceObjectResourceDesc(cudaResourceDesc* resource, cudaSurfaceObject_t object) {
  return call(resource_of<cuSurfObjectGetResourceDesc>, resource, object);
}

}  // extern "C"
