// Allocation and pointer attributes.
#include <iterator>

#include "runtime.hpp"
#include "versions.hpp"

namespace runtime {
namespace {

constexpr unsigned int pitch_element = 16;  // the widest row element for which the driver aligns

cudaError_t allocate(void** result, size_t size) {
  if (!result) return cudaErrorInvalidValue;
  *result = nullptr;
  return size ? forward(cuMemAlloc, result, size) : cudaSuccess;
}

cudaError_t allocate_pitched(void** result, size_t* pitch, size_t width, size_t rows) {
  if (!result || !pitch) return cudaErrorInvalidValue;
  *result = nullptr;
  *pitch = 0;
  return width && rows ? forward(cuMemAllocPitch, result, pitch, width, rows, pitch_element) : cudaSuccess;
}

cudaError_t allocate_3d(cudaPitchedPtr* result, cudaExtent extent) {
  if (!result) return cudaErrorInvalidValue;
  *result = {nullptr, 0, extent.width, extent.height};
  return allocate_pitched(&result->ptr, &result->pitch, extent.width, extent.height * extent.depth);
}

cudaError_t release(void* address) {
  return address ? forward(cuMemFree, address) : cudaSuccess;
}

cudaError_t allocate_host(void** result, size_t size, unsigned int flags) {
  if (!result) return cudaErrorInvalidValue;
  *result = nullptr;
  return size ? to_error(cuMemHostAlloc(result, size, flags)) : cudaSuccess;
}

cudaError_t release_host(void* address) {
  return address ? to_error(cuMemFreeHost(address)) : cudaSuccess;
}

cudaMemoryType memory_type(unsigned int driver_type, bool managed) {
  if (managed) return cudaMemoryTypeManaged;
  switch (driver_type) {
    case CU_MEMORYTYPE_HOST:
      return cudaMemoryTypeHost;
    case CU_MEMORYTYPE_DEVICE:
      return cudaMemoryTypeDevice;
    default:
      return cudaMemoryTypeUnregistered;
  }
}

// Memory unknown to the driver is ordinary host memory, not an error.
cudaError_t pointer_attributes(cudaPointerAttributes* result, const void* address) {
  if (!result) return cudaErrorInvalidValue;
  unsigned int type = 0;
  unsigned int managed = 0;
  int device = 0;
  void* device_pointer = nullptr;
  void* host_pointer = nullptr;
  CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                      CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                      CU_POINTER_ATTRIBUTE_DEVICE_POINTER, CU_POINTER_ATTRIBUTE_HOST_POINTER};
  void* values[] = {&type, &managed, &device, &device_pointer, &host_pointer};
  RUNTIME_TRY(cuPointerGetAttributes(std::size(attributes), attributes, values,
                                     reinterpret_cast<CUdeviceptr>(address)));
  result->type = memory_type(type, managed != 0);
  const bool known = result->type != cudaMemoryTypeUnregistered;
  result->device = known ? device : cudaInvalidDeviceId;
  result->devicePointer = device_pointer;
  result->hostPointer = known ? host_pointer : const_cast<void*>(address);
  return cudaSuccess;
}

cudaError_t advise_v11(const void* address, size_t size, cudaMemoryAdvise advice, int device) {
  return forward(cuMemAdvise, address, size, advice, device);
}

cudaError_t advise(const void* address, size_t size, cudaMemoryAdvise advice, cudaMemLocation location) {
  return to_error(cuMemAdvise_v2(reinterpret_cast<CUdeviceptr>(address), size,
                                 static_cast<CUmem_advise>(advice),
                                 {static_cast<CUmemLocationType>(location.type), location.id}));
}

cudaError_t prefetch(const void* address, size_t size, cudaMemLocation location, unsigned int flags,
                     cudaStream_t stream) {
  return to_error(cuMemPrefetchAsync_v2(reinterpret_cast<CUdeviceptr>(address), size,
                                        {static_cast<CUmemLocationType>(location.type), location.id}, flags,
                                        stream));
}

cudaError_t prefetch_batch(void** addresses, size_t* sizes, size_t count, cudaMemLocation* locations,
                           size_t* first_uses, size_t location_count, unsigned long long flags,
                           cudaStream_t stream) {
  if (!addresses || !sizes || !locations || !first_uses || !location_count || flags)
    return cudaErrorInvalidValue;
  size_t location = 0;
  for (size_t i = 0; i < count; ++i) {
    while (location + 1 < location_count && first_uses[location + 1] <= i) ++location;
    RUNTIME_TRY(prefetch(addresses[i], sizes[i], locations[location], 0, stream));
  }
  return cudaSuccess;
}

// The contents of discarded memory are undefined, so they can be left as they are.
cudaError_t discard_batch(void** addresses, size_t* sizes, size_t count, unsigned long long flags,
                          cudaStream_t stream) {
  if (!addresses || !sizes || !count || flags) return cudaErrorInvalidValue;
  const CUresult status = cuStreamQuery(stream);
  return status == CUDA_ERROR_NOT_READY ? cudaSuccess : to_error(status);
}

}  // namespace
}  // namespace runtime

using runtime::call;

extern "C" {

cudaError_t cudaMalloc(void** address, size_t size) {
  return call(runtime::allocate, address, size);
}
cudaError_t cudaMallocPitch(void** address, size_t* pitch, size_t width, size_t height) {
  return call(runtime::allocate_pitched, address, pitch, width, height);
}
cudaError_t cudaMalloc3D(cudaPitchedPtr* result, cudaExtent extent) {
  return call(runtime::allocate_3d, result, extent);
}
cudaError_t cudaMallocManaged(void** address, size_t size, unsigned int flags) {
  return call(cuMemAllocManaged, address, size, flags);
}
cudaError_t cudaFree(void* address) {
  return call(runtime::release, address);
}

cudaError_t cudaMallocHost(void** address, size_t size) {
  return call(runtime::allocate_host, address, size, 0u);
}
cudaError_t cudaHostAlloc(void** address, size_t size, unsigned int flags) {
  return call(runtime::allocate_host, address, size, flags);
}
cudaError_t cudaFreeHost(void* address) {
  return call(runtime::release_host, address);
}
cudaError_t cudaHostRegister(void* address, size_t size, unsigned int flags) {
  return call(cuMemHostRegister, address, size, flags);
}
cudaError_t cudaHostUnregister(void* address) {
  return call(cuMemHostUnregister, address);
}
cudaError_t cudaHostGetDevicePointer(void** result, void* host, unsigned int flags) {
  return call(cuMemHostGetDevicePointer, result, host, flags);
}
cudaError_t cudaHostGetFlags(unsigned int* flags, void* host) {
  return call(cuMemHostGetFlags, flags, host);
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  return call(cuMemGetInfo, free, total);
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* result, const void* address) {
  return call(runtime::pointer_attributes, result, address);
}

cudaError_t v11_cudaMemAdvise(const void* address, size_t size, cudaMemoryAdvise advice, int device) {
  return call(runtime::advise_v11, address, size, advice, device);
}
cudaError_t cudaMemAdvise_v2(const void* address, size_t size, cudaMemoryAdvise advice,
                             cudaMemLocation location) {
  return call(runtime::advise, address, size, advice, location);
}
cudaError_t v11_cudaMemPrefetchAsync(const void* address, size_t size, int device, cudaStream_t stream) {
  return call(cuMemPrefetchAsync, address, size, device, stream);
}
cudaError_t cudaMemPrefetchAsync_v2(const void* address, size_t size, cudaMemLocation location,
                                    unsigned int flags, cudaStream_t stream) {
  return call(runtime::prefetch, address, size, location, flags, stream);
}
cudaError_t cudaMemPrefetchBatchAsync(void** addresses, size_t* sizes, size_t count,
                                      cudaMemLocation* locations, size_t* first_uses, size_t location_count,
                                      unsigned long long flags, cudaStream_t stream) {
  return call(runtime::prefetch_batch, addresses, sizes, count, locations, first_uses, location_count, flags,
              stream);
}
cudaError_t cudaMemDiscardBatchAsync(void** addresses, size_t* sizes, size_t count, unsigned long long flags,
                                     cudaStream_t stream) {
  return call(runtime::discard_batch, addresses, sizes, count, flags, stream);
}
cudaError_t cudaMemDiscardAndPrefetchBatchAsync(void** addresses, size_t* sizes, size_t count,
                                                cudaMemLocation* locations, size_t* first_uses,
                                                size_t location_count, unsigned long long flags,
                                                cudaStream_t stream) {
  return cudaMemPrefetchBatchAsync(addresses, sizes, count, locations, first_uses, location_count, flags,
                                   stream);
}
cudaError_t cudaMemRangeGetAttribute(void* data, size_t data_size, cudaMemRangeAttribute attribute,
                                     const void* address, size_t size) {
  return call(cuMemRangeGetAttribute, data, data_size, attribute, address, size);
}
cudaError_t cudaMemRangeGetAttributes(void** data, size_t* data_sizes, cudaMemRangeAttribute* attributes,
                                      size_t count, const void* address, size_t size) {
  return call(cuMemRangeGetAttributes, data, data_sizes, attributes, count, address, size);
}

}  // extern "C"
