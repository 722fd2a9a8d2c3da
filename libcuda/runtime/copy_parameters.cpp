// Conversion of copies of up to three dimensions between the runtime's form and the driver's.
#include <algorithm>

#include "channel.hpp"
#include "copy.hpp"
#include "registration.hpp"

namespace runtime {
namespace {

struct MemoryTypes {
  CUmemorytype source;
  CUmemorytype destination;
};

cudaError_t memory_types(cudaMemcpyKind kind, MemoryTypes* types) {
  switch (kind) {
    case cudaMemcpyHostToHost:
      *types = {CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_HOST};
      return cudaSuccess;
    case cudaMemcpyHostToDevice:
      *types = {CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE};
      return cudaSuccess;
    case cudaMemcpyDeviceToHost:
      *types = {CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_HOST};
      return cudaSuccess;
    case cudaMemcpyDeviceToDevice:
      *types = {CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_DEVICE};
      return cudaSuccess;
    case cudaMemcpyDefault:
      *types = {CU_MEMORYTYPE_UNIFIED, CU_MEMORYTYPE_UNIFIED};
      return cudaSuccess;
  }
  return cudaErrorInvalidMemcpyDirection;
}

cudaMemcpyKind kind_of(CUmemorytype source, CUmemorytype destination) {
  if (source == CU_MEMORYTYPE_UNIFIED || destination == CU_MEMORYTYPE_UNIFIED) return cudaMemcpyDefault;
  const bool from_host = source == CU_MEMORYTYPE_HOST;
  const bool to_host = destination == CU_MEMORYTYPE_HOST;
  if (from_host) return to_host ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice;
  return to_host ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice;
}

// The source and destination fields of CUDA_MEMCPY3D have different names but the same meaning.
struct Side {
  CUmemorytype type = CU_MEMORYTYPE_UNIFIED;
  CUarray array = nullptr;
  void* pointer = nullptr;
  size_t x = 0;  // in bytes
  size_t y = 0;
  size_t z = 0;
  size_t pitch = 0;
  size_t height = 0;
};

cudaError_t side_of(cudaArray_t array, const cudaPitchedPtr& pitched, const cudaPos& position,
                    CUmemorytype type, Side* side, size_t* element) {
  if ((array != nullptr) == (pitched.ptr != nullptr)) return cudaErrorInvalidValue;
  *side = {type, nullptr, pitched.ptr, position.x, position.y, position.z, pitched.pitch, pitched.ysize};
  if (!array) return cudaSuccess;
  side->type = CU_MEMORYTYPE_ARRAY;
  side->array = driver_array(array);
  RUNTIME_TRY(element_size(side->array, element));
  side->x *= *element;
  return cudaSuccess;
}

void set_source(CUDA_MEMCPY3D& copy, const Side& side) {
  copy.srcMemoryType = side.type;
  copy.srcArray = side.array;
  if (side.type == CU_MEMORYTYPE_HOST)
    copy.srcHost = side.pointer;
  else
    copy.srcDevice = reinterpret_cast<CUdeviceptr>(side.pointer);
  copy.srcXInBytes = side.x;
  copy.srcY = side.y;
  copy.srcZ = side.z;
  copy.srcPitch = side.pitch;
  copy.srcHeight = side.height;
}

void set_destination(CUDA_MEMCPY3D& copy, const Side& side) {
  copy.dstMemoryType = side.type;
  copy.dstArray = side.array;
  if (side.type == CU_MEMORYTYPE_HOST)
    copy.dstHost = side.pointer;
  else
    copy.dstDevice = reinterpret_cast<CUdeviceptr>(side.pointer);
  copy.dstXInBytes = side.x;
  copy.dstY = side.y;
  copy.dstZ = side.z;
  copy.dstPitch = side.pitch;
  copy.dstHeight = side.height;
}

}  // namespace

cudaError_t element_size(CUarray array, size_t* size) {
  CUDA_ARRAY3D_DESCRIPTOR descriptor{};
  RUNTIME_TRY(cuArray3DGetDescriptor(&descriptor, array));
  *size = format_bytes(descriptor.Format) * descriptor.NumChannels;
  return *size ? cudaSuccess : cudaErrorInvalidChannelDescriptor;
}

cudaError_t driver_copy(const cudaMemcpy3DParms& parameters, CUDA_MEMCPY3D* result) {
  MemoryTypes types{};
  RUNTIME_TRY(memory_types(parameters.kind, &types));
  Side source;
  Side destination;
  size_t element = 1;  // the extent is in array elements, or in bytes if there is no array
  RUNTIME_TRY(
      side_of(parameters.srcArray, parameters.srcPtr, parameters.srcPos, types.source, &source, &element));
  RUNTIME_TRY(side_of(parameters.dstArray, parameters.dstPtr, parameters.dstPos, types.destination,
                      &destination, &element));
  *result = {};
  set_source(*result, source);
  set_destination(*result, destination);
  result->WidthInBytes = parameters.extent.width * element;
  result->Height = parameters.extent.height;
  result->Depth = parameters.extent.depth;
  return cudaSuccess;
}

cudaError_t driver_copy(void* destination, const void* source, size_t size, cudaMemcpyKind kind,
                        CUDA_MEMCPY3D* result) {
  cudaMemcpy3DParms parameters{};
  parameters.srcPtr = {const_cast<void*>(source), size, size, 1};
  parameters.dstPtr = {destination, size, size, 1};
  parameters.extent = {size, 1, 1};
  parameters.kind = kind;
  return driver_copy(parameters, result);
}

cudaError_t runtime_copy(const CUDA_MEMCPY3D& copy, cudaMemcpy3DParms* result) {
  *result = {};
  size_t source_element = 1;
  size_t destination_element = 1;
  if (copy.srcMemoryType == CU_MEMORYTYPE_ARRAY) {
    result->srcArray = runtime_array(copy.srcArray);
    RUNTIME_TRY(element_size(copy.srcArray, &source_element));
  } else {
    void* address =
        copy.srcMemoryType == CU_MEMORYTYPE_HOST ? const_cast<void*>(copy.srcHost) : pointer(copy.srcDevice);
    result->srcPtr = {address, copy.srcPitch, copy.srcPitch, copy.srcHeight};
  }
  if (copy.dstMemoryType == CU_MEMORYTYPE_ARRAY) {
    result->dstArray = runtime_array(copy.dstArray);
    RUNTIME_TRY(element_size(copy.dstArray, &destination_element));
  } else {
    void* address = copy.dstMemoryType == CU_MEMORYTYPE_HOST ? copy.dstHost : pointer(copy.dstDevice);
    result->dstPtr = {address, copy.dstPitch, copy.dstPitch, copy.dstHeight};
  }
  result->srcPos = {copy.srcXInBytes / source_element, copy.srcY, copy.srcZ};
  result->dstPos = {copy.dstXInBytes / destination_element, copy.dstY, copy.dstZ};
  result->extent = {copy.WidthInBytes / std::max(source_element, destination_element), copy.Height,
                    copy.Depth};
  result->kind = kind_of(copy.srcMemoryType, copy.dstMemoryType);
  return cudaSuccess;
}

cudaError_t symbol_range(const void* symbol, size_t size, size_t offset, void** address) {
  CUdeviceptr start = 0;
  size_t available = 0;
  RUNTIME_TRY(variable_of(symbol, &start, &available));
  if (offset > available || size > available - offset) return cudaErrorInvalidValue;
  *address = pointer(start + offset);
  return cudaSuccess;
}

}  // namespace runtime
