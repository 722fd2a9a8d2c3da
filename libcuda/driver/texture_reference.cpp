#include <string>

#include "modules.hpp"
#include "texture.hpp"

// Texture and surface references: variables of a module to which a program binds textures and surfaces.

namespace simt::driver {
namespace {

struct TextureReference : Handle {
  static constexpr uint64_t tag = 0x73696d745f747266;
  TextureReference(Device& of, uint64_t at, uint64_t holder)
      : Handle(tag), device(of), place(at), module(holder) {
    sampling.maxMipmapLevelClamp = 1000;
  }
  Device& device;
  uint64_t place;   ///< of the variable; 0 if there is none
  uint64_t module;  ///< the serial number of the one that has the variable
  CUDA_RESOURCE_DESC resource{};
  bool bound = false;
  CUarray_format format = CU_AD_FORMAT_FLOAT;  ///< of memory
  unsigned channels = 1;
  CUDA_TEXTURE_DESC sampling{};
};

struct SurfaceReference : Handle {
  static constexpr uint64_t tag = 0x73696d745f737266;
  SurfaceReference(Device& of, uint64_t at, uint64_t holder)
      : Handle(tag), device(of), place(at), module(holder) {}
  Device& device;
  uint64_t place, module;
  CUarray array = nullptr;
};

/// Makes the current state of the reference visible to subsequent launches.
void bind(TextureReference& r) {
  if (!r.bound || r.place == 0) return;
  synchronize(r.device);
  describe(r.device, image_of(r.resource, nullptr), &r.sampling, r.place);
}

void bind(TextureReference& r, const CUDA_RESOURCE_DESC& resource) {
  image_of(resource, nullptr);
  r.resource = resource;
  r.bound = true;
  bind(r);
}

/// The reference of a variable: the same one, should the program query it again.
template <class Reference>
Reference* reference_of(CUmodule handle, const char* name, const char* type) {
  require(name != nullptr);
  Module& module = object_of<Module>(handle);
  Device& device = module.context.device;
  const uint64_t place =
      device.connection.call(ReferenceRequest{.module = module.id, .name = name, .type = type});
  require(place != 0, CUDA_ERROR_NOT_FOUND);
  const auto known = all<Reference>().those(
      [&](const Reference& r) { return r.module == module.serial() && r.place == place; });
  return known.empty() ? &all<Reference>().make(device, place, module.serial()) : known[0];
}

TextureReference& texture_of(CUtexref handle) {
  return object_of<TextureReference>(handle);
}

void bind_rows(CUtexref reference, const CUDA_ARRAY_DESCRIPTOR* d, CUdeviceptr address, size_t pitch) {
  require(d != nullptr);
  CUDA_RESOURCE_DESC resource{};
  resource.resType = CU_RESOURCE_TYPE_PITCH2D;
  resource.res.pitch2D = {address, d->Format, d->NumChannels, d->Width, d->Height, pitch};
  bind(texture_of(reference), resource);
}

const CUDA_RESOURCE_DESC& bound(const TextureReference& r, CUresourcetype type) {
  require(r.bound && r.resource.resType == type);
  return r.resource;
}

}  // namespace

void forget_references(const Module& module) {
  const auto of_it = [&](const auto& reference) { return reference.module == module.serial(); };
  for (TextureReference* r : all<TextureReference>().those(of_it)) all<TextureReference>().destroy(*r);
  for (SurfaceReference* r : all<SurfaceReference>().those(of_it)) all<SurfaceReference>().destroy(*r);
}

}  // namespace simt::driver

using namespace simt::driver;

CUresult cuModuleGetTexRef(CUtexref* reference, CUmodule module, const char* name) {
  return guarded([&] {
    require(reference != nullptr);
    *reference = handle_of<CUtexref>(reference_of<TextureReference>(module, name, "texref"));
  });
}

CUresult cuModuleGetSurfRef(CUsurfref* reference, CUmodule module, const char* name) {
  return guarded([&] {
    require(reference != nullptr);
    *reference = handle_of<CUsurfref>(reference_of<SurfaceReference>(module, name, "surfref"));
  });
}

CUresult cuTexRefCreate(CUtexref* reference) {
  return guarded([&] {
    require(reference != nullptr);
    *reference = handle_of<CUtexref>(&all<TextureReference>().make(current_context().device, 0u, 0u));
  });
}

CUresult cuTexRefDestroy(CUtexref reference) {
  return guarded([&] {
    TextureReference& r = texture_of(reference);
    require(r.place == 0, CUDA_ERROR_INVALID_HANDLE);
    all<TextureReference>().destroy(r);
  });
}

CUresult cuTexRefSetArray(CUtexref reference, CUarray array, unsigned flags) {
  return guarded([&] {
    require(flags == CU_TRSA_OVERRIDE_FORMAT);
    CUDA_RESOURCE_DESC resource{};
    resource.resType = CU_RESOURCE_TYPE_ARRAY;
    resource.res.array.hArray = array;
    bind(texture_of(reference), resource);
  });
}

CUresult cuTexRefSetMipmappedArray(CUtexref reference, CUmipmappedArray array, unsigned flags) {
  return guarded([&] {
    require(flags == CU_TRSA_OVERRIDE_FORMAT);
    CUDA_RESOURCE_DESC resource{};
    resource.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
    resource.res.mipmap.hMipmappedArray = array;
    bind(texture_of(reference), resource);
  });
}

CUresult cuTexRefSetAddress(size_t* offset, CUtexref reference, CUdeviceptr address, size_t bytes) {
  return guarded([&] {
    TextureReference& r = texture_of(reference);
    CUDA_RESOURCE_DESC resource{};
    resource.resType = CU_RESOURCE_TYPE_LINEAR;
    resource.res.linear = {address, r.format, r.channels, bytes};
    bind(r, resource);
    if (offset) *offset = 0;
  });
}

CUresult cuTexRefSetAddress2D(CUtexref reference, const CUDA_ARRAY_DESCRIPTOR* descriptor,
                              CUdeviceptr address, size_t pitch) {
  return guarded([&] { bind_rows(reference, descriptor, address, pitch); });
}

#undef cuTexRefSetAddress2D_v2
extern "C" __attribute__((visibility("default"))) CUresult cuTexRefSetAddress2D_v2(
    CUtexref reference, const CUDA_ARRAY_DESCRIPTOR* descriptor, CUdeviceptr address, size_t pitch) {
  return guarded([&] { bind_rows(reference, descriptor, address, pitch); });
}

CUresult cuTexRefSetFormat(CUtexref reference, CUarray_format format, int channels) {
  return guarded([&] {
    format_of(format);
    require(channels == 1 || channels == 2 || channels == 4);
    TextureReference& r = texture_of(reference);
    r.format = format;
    r.channels = static_cast<unsigned>(channels);
  });
}

#define SETTER(name, field, type, valid)                   \
  CUresult cuTexRefSet##name(CUtexref reference, type x) { \
    return guarded([&] {                                   \
      require(valid);                                      \
      TextureReference& r = texture_of(reference);         \
      r.sampling.field = x;                                \
      bind(r);                                             \
    });                                                    \
  }
SETTER(FilterMode, filterMode, CUfilter_mode, x <= CU_TR_FILTER_MODE_LINEAR)
SETTER(MipmapFilterMode, mipmapFilterMode, CUfilter_mode, x <= CU_TR_FILTER_MODE_LINEAR)
SETTER(MipmapLevelBias, mipmapLevelBias, float, x == x)
SETTER(MaxAnisotropy, maxAnisotropy, unsigned, true)
SETTER(Flags, flags, unsigned, true)
#undef SETTER

CUresult cuTexRefSetAddressMode(CUtexref reference, int dimension, CUaddress_mode mode) {
  return guarded([&] {
    require(dimension >= 0 && dimension < 3 && mode <= CU_TR_ADDRESS_MODE_BORDER);
    TextureReference& r = texture_of(reference);
    r.sampling.addressMode[dimension] = mode;
    bind(r);
  });
}

CUresult cuTexRefSetMipmapLevelClamp(CUtexref reference, float least, float most) {
  return guarded([&] {
    TextureReference& r = texture_of(reference);
    r.sampling.minMipmapLevelClamp = least;
    r.sampling.maxMipmapLevelClamp = most;
    bind(r);
  });
}

CUresult cuTexRefSetBorderColor(CUtexref reference, float* colour) {
  return guarded([&] {
    require(colour != nullptr);
    TextureReference& r = texture_of(reference);
    std::copy(colour, colour + 4, r.sampling.borderColor);
    bind(r);
  });
}

CUresult cuTexRefGetAddress(CUdeviceptr* address, CUtexref reference) {
  return guarded([&] {
    require(address != nullptr);
    const TextureReference& r = texture_of(reference);
    const bool pitched = r.bound && r.resource.resType == CU_RESOURCE_TYPE_PITCH2D;
    *address = pitched ? r.resource.res.pitch2D.devPtr : bound(r, CU_RESOURCE_TYPE_LINEAR).res.linear.devPtr;
  });
}

CUresult cuTexRefGetArray(CUarray* array, CUtexref reference) {
  return guarded([&] {
    require(array != nullptr);
    *array = bound(texture_of(reference), CU_RESOURCE_TYPE_ARRAY).res.array.hArray;
  });
}

CUresult cuTexRefGetMipmappedArray(CUmipmappedArray* array, CUtexref reference) {
  return guarded([&] {
    require(array != nullptr);
    *array = bound(texture_of(reference), CU_RESOURCE_TYPE_MIPMAPPED_ARRAY).res.mipmap.hMipmappedArray;
  });
}

CUresult cuTexRefGetFormat(CUarray_format* format, int* channels, CUtexref reference) {
  return guarded([&] {
    const TextureReference& r = texture_of(reference);
    if (format) *format = r.format;
    if (channels) *channels = static_cast<int>(r.channels);
  });
}

CUresult cuTexRefGetAddressMode(CUaddress_mode* mode, CUtexref reference, int dimension) {
  return guarded([&] {
    require(mode != nullptr && dimension >= 0 && dimension < 3);
    *mode = texture_of(reference).sampling.addressMode[dimension];
  });
}

#define GETTER(name, field, type)                                   \
  CUresult cuTexRefGet##name(type* x, CUtexref reference) {         \
    return guarded([&] {                                            \
      require(x != nullptr);                                        \
      *x = static_cast<type>(texture_of(reference).sampling.field); \
    });                                                             \
  }
GETTER(FilterMode, filterMode, CUfilter_mode)
GETTER(MipmapFilterMode, mipmapFilterMode, CUfilter_mode)
GETTER(MipmapLevelBias, mipmapLevelBias, float)
GETTER(MaxAnisotropy, maxAnisotropy, int)
GETTER(Flags, flags, unsigned)
#undef GETTER

CUresult cuTexRefGetMipmapLevelClamp(float* least, float* most, CUtexref reference) {
  return guarded([&] {
    require(least != nullptr && most != nullptr);
    *least = texture_of(reference).sampling.minMipmapLevelClamp;
    *most = texture_of(reference).sampling.maxMipmapLevelClamp;
  });
}

CUresult cuTexRefGetBorderColor(float* colour, CUtexref reference) {
  return guarded([&] {
    require(colour != nullptr);
    const float* from = texture_of(reference).sampling.borderColor;
    std::copy(from, from + 4, colour);
  });
}

CUresult cuSurfRefSetArray(CUsurfref reference, CUarray array, unsigned flags) {
  return guarded([&] {
    require(flags == 0);
    SurfaceReference& r = object_of<SurfaceReference>(reference);
    CUDA_RESOURCE_DESC resource{};
    resource.resType = CU_RESOURCE_TYPE_ARRAY;
    resource.res.array.hArray = array;
    const Image image = image_of(resource, nullptr);
    synchronize(r.device);
    describe(r.device, image, nullptr, r.place);
    r.array = array;
  });
}

CUresult cuSurfRefGetArray(CUarray* array, CUsurfref reference) {
  return guarded([&] {
    require(array != nullptr);
    *array = object_of<SurfaceReference>(reference).array;
  });
}
