#include "array.hpp"

#include <algorithm>

// Arrays.

namespace simt::driver {

Format format_of(CUarray_format format) {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
      return {"unsigned", 1, false};
    case CU_AD_FORMAT_SIGNED_INT8:
      return {"signed", 1, false};
    case CU_AD_FORMAT_UNSIGNED_INT16:
      return {"unsigned", 2, false};
    case CU_AD_FORMAT_SIGNED_INT16:
      return {"signed", 2, false};
    case CU_AD_FORMAT_HALF:
      return {"float", 2, false};
    case CU_AD_FORMAT_UNSIGNED_INT32:
      return {"unsigned", 4, false};
    case CU_AD_FORMAT_SIGNED_INT32:
      return {"signed", 4, false};
    case CU_AD_FORMAT_FLOAT:
      return {"float", 4, false};
    case CU_AD_FORMAT_UNORM_INT8X1:
    case CU_AD_FORMAT_UNORM_INT8X2:
    case CU_AD_FORMAT_UNORM_INT8X4:
      return {"unsigned", 1, true};
    case CU_AD_FORMAT_UNORM_INT16X1:
    case CU_AD_FORMAT_UNORM_INT16X2:
    case CU_AD_FORMAT_UNORM_INT16X4:
      return {"unsigned", 2, true};
    case CU_AD_FORMAT_SNORM_INT8X1:
    case CU_AD_FORMAT_SNORM_INT8X2:
    case CU_AD_FORMAT_SNORM_INT8X4:
      return {"signed", 1, true};
    case CU_AD_FORMAT_SNORM_INT16X1:
    case CU_AD_FORMAT_SNORM_INT16X2:
    case CU_AD_FORMAT_SNORM_INT16X4:
      return {"signed", 2, true};
    default:
      say_once("arrays have elements of 8, 16 or 32 bits; format " + std::to_string(format) +
               " is not supported");
      fail(CUDA_ERROR_NOT_SUPPORTED);
  }
}

namespace {

constexpr unsigned array_flags = CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_CUBEMAP |
                                 CUDA_ARRAY3D_TEXTURE_GATHER | CUDA_ARRAY3D_DEPTH_TEXTURE |
                                 CUDA_ARRAY3D_COLOR_ATTACHMENT;

/// The rules of cuArray3DCreate.
void check(const CUDA_ARRAY3D_DESCRIPTOR& d) {
  require(d.Width > 0 && (d.NumChannels == 1 || d.NumChannels == 2 || d.NumChannels == 4));
  if (d.Flags & ~array_flags) {
    say_once("arrays with flags " + std::to_string(d.Flags & ~array_flags) + " are not supported");
    fail(CUDA_ERROR_NOT_SUPPORTED);
  }
  const bool layered = d.Flags & CUDA_ARRAY3D_LAYERED;
  if (d.Flags & CUDA_ARRAY3D_CUBEMAP)
    require(d.Width == d.Height && d.Depth > 0 && (layered ? d.Depth % 6 == 0 : d.Depth == 6));
  else
    require(layered ? d.Depth > 0 : d.Depth == 0 || d.Height > 0);
}

}  // namespace

Array::Array(Device& of, const CUDA_ARRAY3D_DESCRIPTOR& described, uint64_t place)
    : Handle(tag),
      device(of),
      descriptor(described),
      format(format_of(described.Format)),
      address(place),
      owns(place == 0) {
  check(described);
  pitch = (described.Width * texel_bytes() + 31) / 32 * 32;
  slice = pitch * rows();
  if (owns) address = of.allocate(bytes(), Origin::Device, 0, "array");
}

void forget_arrays(Device& device) {
  const auto in_it = [&](const auto& object) { return &object.device == &device; };
  for (MipmappedArray* array : all<MipmappedArray>().those(in_it)) all<MipmappedArray>().destroy(*array);
  for (Array* array : all<Array>().those(in_it)) all<Array>().destroy(*array);
}

const char* Array::geometry() const {
  const bool several = descriptor.Flags & CUDA_ARRAY3D_LAYERED;
  if (descriptor.Flags & CUDA_ARRAY3D_CUBEMAP) return several ? "acube" : "cube";
  if (several) return descriptor.Height ? "a2d" : "a1d";
  return descriptor.Depth ? "3d" : descriptor.Height ? "2d" : "1d";
}

Copy::Side side_of_array(CUarray array, size_t x, size_t y, size_t z, const Copy& copy) {
  const Array& a = object_of<Array>(array);
  const auto within = [](size_t begin, size_t count, size_t size) {
    return begin <= size && count <= size - begin;
  };
  require(within(x, copy.width, a.descriptor.Width * a.texel_bytes()) && within(y, copy.height, a.rows()) &&
          within(z, copy.depth, a.layers()));
  Copy::Side side;
  side.address = a.address + z * a.slice + y * a.pitch + x;
  side.pitch = a.pitch;
  side.slice = a.slice;
  return side;
}

}  // namespace simt::driver

using namespace simt::driver;

CUresult cuArray3DCreate(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* descriptor) {
  return guarded([&] {
    require(array != nullptr && descriptor != nullptr);
    *array = handle_of<CUarray>(&all<Array>().make(current_context().device, *descriptor));
  });
}

CUresult cuArrayCreate(CUarray* array, const CUDA_ARRAY_DESCRIPTOR* descriptor) {
  if (!descriptor) return CUDA_ERROR_INVALID_VALUE;
  CUDA_ARRAY3D_DESCRIPTOR whole{};
  whole.Width = descriptor->Width;
  whole.Height = descriptor->Height;
  whole.Format = descriptor->Format;
  whole.NumChannels = descriptor->NumChannels;
  return cuArray3DCreate(array, &whole);
}

CUresult cuArray3DGetDescriptor(CUDA_ARRAY3D_DESCRIPTOR* descriptor, CUarray array) {
  return guarded([&] {
    require(descriptor != nullptr);
    *descriptor = object_of<Array>(array).descriptor;
  });
}

CUresult cuArrayGetDescriptor(CUDA_ARRAY_DESCRIPTOR* descriptor, CUarray array) {
  return guarded([&] {
    require(descriptor != nullptr);
    const CUDA_ARRAY3D_DESCRIPTOR& whole = object_of<Array>(array).descriptor;
    *descriptor = {whole.Width, whole.Height, whole.Format, whole.NumChannels};
  });
}

CUresult cuArrayDestroy(CUarray array) {
  return guarded([&] {
    Array& a = object_of<Array>(array);
    require(a.owns);
    synchronize(a.device);
    a.device.free(a.address);
    all<Array>().destroy(a);
  });
}
