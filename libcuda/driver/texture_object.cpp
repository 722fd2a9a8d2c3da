#include <optional>
#include <unordered_map>

#include "texture.hpp"

// Texture and surface objects. Their handles are the device addresses of their descriptions for simt.

using namespace simt::driver;

namespace {

struct Object {
  Device& device;
  CUDA_RESOURCE_DESC resource{};
  std::optional<CUDA_TEXTURE_DESC> sampling;  ///< a surface has none
  std::optional<CUDA_RESOURCE_VIEW_DESC> view;
};

std::unordered_map<uint64_t, Object>& objects() {
  static auto* all = new std::unordered_map<uint64_t, Object>;
  return *all;
}

uint64_t make(const CUDA_RESOURCE_DESC& resource, const CUDA_TEXTURE_DESC* sampling,
              const CUDA_RESOURCE_VIEW_DESC* view) {
  Object object{current_context().device, resource, {}, {}};
  if (sampling) object.sampling = *sampling;
  if (view) object.view = *view;
  const uint64_t handle = describe(object.device, image_of(resource, view), sampling);
  objects().emplace(handle, object);
  return handle;
}

const Object& find(uint64_t handle, bool texture) {
  const auto found = objects().find(handle);
  require(found != objects().end() && found->second.sampling.has_value() == texture);
  return found->second;
}

void destroy(uint64_t handle, bool texture) {
  Device& device = find(handle, texture).device;
  synchronize(device);
  objects().erase(handle);
  device.connection.send(FreeRequest{.address = handle});
}

}  // namespace

void simt::driver::forget_textures(Device& device) {
  std::erase_if(objects(), [&](const auto& entry) { return &entry.second.device == &device; });
}

CUresult cuTexObjectCreate(CUtexObject* texture, const CUDA_RESOURCE_DESC* resource,
                           const CUDA_TEXTURE_DESC* sampling, const CUDA_RESOURCE_VIEW_DESC* view) {
  return guarded([&] {
    require(texture != nullptr && resource != nullptr && sampling != nullptr);
    *texture = make(*resource, sampling, view);
  });
}

CUresult cuTexObjectDestroy(CUtexObject texture) {
  return guarded([&] { destroy(texture, true); });
}

CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC* resource, CUtexObject texture) {
  return guarded([&] {
    require(resource != nullptr);
    *resource = find(texture, true).resource;
  });
}

CUresult cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC* sampling, CUtexObject texture) {
  return guarded([&] {
    require(sampling != nullptr);
    *sampling = *find(texture, true).sampling;
  });
}

CUresult cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC* view, CUtexObject texture) {
  return guarded([&] {
    require(view != nullptr);
    const Object& object = find(texture, true);
    require(object.view.has_value());
    *view = *object.view;
  });
}

CUresult cuSurfObjectCreate(CUsurfObject* surface, const CUDA_RESOURCE_DESC* resource) {
  return guarded([&] {
    require(surface != nullptr && resource != nullptr && resource->resType == CU_RESOURCE_TYPE_ARRAY);
    *surface = make(*resource, nullptr, nullptr);
  });
}

CUresult cuSurfObjectDestroy(CUsurfObject surface) {
  return guarded([&] { destroy(surface, false); });
}

CUresult cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC* resource, CUsurfObject surface) {
  return guarded([&] {
    require(resource != nullptr);
    *resource = find(surface, false).resource;
  });
}
