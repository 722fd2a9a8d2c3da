#include "array.hpp"

#include <algorithm>

// Arrays.

namespace simt::driver {
namespace {

uint64_t bytes_of(CUarray_format format) {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
      return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
      return 4;
    default:
      say_once("arrays have elements of 8, 16 or 32 bits; format " + std::to_string(format) + " is not supported");
      fail(CUDA_ERROR_NOT_SUPPORTED);
  }
}

}  // namespace

Array::Array(Device& of, const CUDA_ARRAY3D_DESCRIPTOR& described)
    : Handle(tag), device(of), descriptor(described) {
  require(described.Width > 0 &&
          (described.NumChannels == 1 || described.NumChannels == 2 || described.NumChannels == 4));
  const uint64_t row = described.Width * bytes_of(described.Format) * described.NumChannels;
  pitch = (row + 31) / 32 * 32;
  slice = pitch * std::max<size_t>(1, described.Height);
  address = of.allocate(slice * std::max<size_t>(1, described.Depth), Origin::Device, 0, "array");
}

Copy::Side side_of_array(CUarray array, size_t x, size_t y, size_t z) {
  const Array& a = object_of<Array>(array);
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
    *array = handle_of<CUarray>(new Array(current_context().device, *descriptor));
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
    delete &a;
  });
}
