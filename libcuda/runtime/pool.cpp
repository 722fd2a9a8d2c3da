// Memory pools and stream-ordered allocation.
#include "runtime.hpp"

// Since CUDA 13; the headers are those of CUDA 12.
extern "C" {
CUresult cuMemGetDefaultMemPool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type);
CUresult cuMemGetMemPool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type);
CUresult cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool pool);
}

namespace runtime {
namespace {

cudaError_t allocate_async(void** result, size_t size, cudaStream_t stream) {
  if (!result) return cudaErrorInvalidValue;
  *result = nullptr;
  return size ? forward(cuMemAllocAsync, result, size, stream) : cudaSuccess;
}

cudaError_t allocate_from_pool(void** result, size_t size, cudaMemPool_t pool, cudaStream_t stream) {
  if (!result) return cudaErrorInvalidValue;
  *result = nullptr;
  return size ? forward(cuMemAllocFromPoolAsync, result, size, pool, stream) : cudaSuccess;
}

}  // namespace
}  // namespace runtime

using runtime::call;
using runtime::query;

extern "C" {

cudaError_t cudaMallocAsync(void** address, size_t size, cudaStream_t stream) {
  return call(runtime::allocate_async, address, size, stream);
}
cudaError_t cudaMallocFromPoolAsync(void** address, size_t size, cudaMemPool_t pool, cudaStream_t stream) {
  return call(runtime::allocate_from_pool, address, size, pool, stream);
}
cudaError_t cudaFreeAsync(void* address, cudaStream_t stream) {
  return call(cuMemFreeAsync, address, stream);
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  return call(cuMemPoolCreate, pool, properties);
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  return call(cuMemPoolDestroy, pool);
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep) {
  return call(cuMemPoolTrimTo, pool, keep);
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return call(cuMemPoolSetAttribute, pool, attribute, value);
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return call(cuMemPoolGetAttribute, pool, attribute, value);
}
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* accesses, size_t count) {
  return call(cuMemPoolSetAccess, pool, accesses, count);
}
cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags* flags, cudaMemPool_t pool, cudaMemLocation* location) {
  return call(cuMemPoolGetAccess, flags, pool, location);
}
cudaError_t cudaMemPoolExportToShareableHandle(void* handle, cudaMemPool_t pool,
                                               cudaMemAllocationHandleType type, unsigned int flags) {
  return call(cuMemPoolExportToShareableHandle, handle, pool, type, flags);
}
cudaError_t cudaMemPoolImportFromShareableHandle(cudaMemPool_t* pool, void* handle,
                                                 cudaMemAllocationHandleType type, unsigned int flags) {
  return call(cuMemPoolImportFromShareableHandle, pool, handle, type, flags);
}
cudaError_t cudaMemPoolExportPointer(cudaMemPoolPtrExportData* data, void* address) {
  return call(cuMemPoolExportPointer, data, address);
}
cudaError_t cudaMemPoolImportPointer(void** address, cudaMemPool_t pool, cudaMemPoolPtrExportData* data) {
  return call(cuMemPoolImportPointer, address, pool, data);
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  return query(cuDeviceGetDefaultMemPool, pool, device);
}
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  return query(cuDeviceGetMemPool, pool, device);
}
cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
  return query(cuDeviceSetMemPool, device, pool);
}
cudaError_t cudaMemGetDefaultMemPool(cudaMemPool_t* pool, cudaMemLocation* location,
                                     cudaMemAllocationType type) {
  return query(cuMemGetDefaultMemPool, pool, location, type);
}
cudaError_t cudaMemGetMemPool(cudaMemPool_t* pool, cudaMemLocation* location, cudaMemAllocationType type) {
  return query(cuMemGetMemPool, pool, location, type);
}
cudaError_t cudaMemSetMemPool(cudaMemLocation* location, cudaMemAllocationType type, cudaMemPool_t pool) {
  return query(cuMemSetMemPool, location, type, pool);
}

}  // extern "C"
