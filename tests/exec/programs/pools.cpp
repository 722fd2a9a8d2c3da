#include <cstdint>

#include "check.hpp"

// Memory pools: memory in the order of streams, what pools count, and what they refuse.

namespace {

const char* const ptx = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry number(.param .u64 out) {
  .reg .b64 %o, %i; .reg .b32 %n;
  ld.param.u64 %o, [out]; mov.u32 %n, %tid.x; mul.wide.u32 %i, %n, 4; add.u64 %o, %o, %i;
  st.global.u32 [%o], %n;
  ret; }
)";

uint64_t asked(CUmemoryPool pool, CUmemPool_attribute which) {
  uint64_t value = 0;
  OK(cuMemPoolGetAttribute(pool, which, &value));
  return value;
}

size_t free_bytes() {
  size_t free, total;
  OK(cuMemGetInfo(&free, &total));
  return free;
}

void default_pool(CUfunction number, CUdevice device) {
  CUmemoryPool standard, current;
  OK(cuDeviceGetDefaultMemPool(&standard, device));
  OK(cuDeviceGetMemPool(&current, device));
  CHECK(standard == current);
  RETURNS(cuMemPoolDestroy(standard), CUDA_ERROR_INVALID_VALUE);
  CUstream stream;
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  const size_t before = free_bytes();
  std::vector<uint32_t> host(256);
  CUdeviceptr memory;
  OK(cuMemAllocAsync(&memory, 1024, stream));
  CHECK(asked(standard, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 1024 && free_bytes() == before - 1024);
  CUmemoryPool of = nullptr;
  OK(cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, memory));
  CHECK(of == standard);
  void* arguments[] = {&memory};
  OK(cuLaunchKernel(number, 1, 1, 1, 256, 1, 1, 0, stream, arguments, nullptr));
  OK(cuMemcpyDtoHAsync(host.data(), memory, 1024, stream));
  OK(cuMemFreeAsync(memory, stream));
  OK(cuStreamSynchronize(stream));
  for (uint32_t k = 0; k < 256; ++k) CHECK(host[k] == k);
  CHECK(asked(standard, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 0 && free_bytes() == before);
  CHECK(asked(standard, CU_MEMPOOL_ATTR_USED_MEM_HIGH) == 1024);
  // More than there is at once, freed before there is more.
  size_t total;
  OK(cuDeviceTotalMem(&total, device));
  for (int k = 0; k < 5; ++k) {
    OK(cuMemAllocAsync(&memory, total / 3 * 2, stream));
    OK(cuLaunchKernel(number, 1, 1, 1, 256, 1, 1, 0, stream, arguments, nullptr));
    OK(cuMemFreeAsync(memory, stream));
  }
  RETURNS(cuMemAllocAsync(&memory, total * 2, stream), CUDA_ERROR_OUT_OF_MEMORY);
  OK(cuMemAllocAsync(&memory, 16, stream));
  OK(cuLaunchKernel(number, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr));
  OK(cuMemFreeAsync(memory, stream));
  RETURNS(cuMemFreeAsync(memory, stream), CUDA_ERROR_INVALID_VALUE);
  OK(cuStreamDestroy(stream));
  OK(cuCtxSynchronize());
}

void own_pool(CUdevice device) {
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  CUmemoryPool pool;
  OK(cuMemPoolCreate(&pool, &properties));
  uint64_t keep = 4096;
  OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
  const size_t before = free_bytes();
  CUdeviceptr first, second;
  OK(cuMemAllocFromPoolAsync(&first, 8192, pool, nullptr));
  OK(cuMemAllocFromPoolAsync(&second, 1024, pool, nullptr));
  CHECK(asked(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 9216);
  OK(cuMemFreeAsync(first, nullptr));
  OK(cuCtxSynchronize());
  CHECK(asked(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 1024);
  CHECK(asked(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == 4096 && free_bytes() == before - 4096);
  OK(cuMemPoolTrimTo(pool, 0));
  CHECK(asked(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == 1024 && free_bytes() == before - 1024);
  uint64_t none = 0;
  OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &none));
  CHECK(asked(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) == 1024);

  OK(cuDeviceSetMemPool(device, pool));
  OK(cuMemAllocAsync(&first, 512, nullptr));
  CHECK(asked(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 1536);
  CUmemLocation location{CU_MEM_LOCATION_TYPE_DEVICE, device};
  CUmemAccess_flags access;
  OK(cuMemPoolGetAccess(&access, pool, &location));
  CHECK(access == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  OK(cuMemPoolDestroy(pool));  // lives until its memory is freed
  CUmemoryPool current, standard;
  OK(cuDeviceGetMemPool(&current, device));
  OK(cuDeviceGetDefaultMemPool(&standard, device));
  CHECK(current == standard);
  OK(cuMemFree(first));
  OK(cuMemFree(second));
  CHECK(free_bytes() == before);

  properties.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  RETURNS(cuMemPoolCreate(&pool, &properties), CUDA_ERROR_NOT_SUPPORTED);
}

/// Pools of pinned and of managed memory, which the program reads as well.
void pools_of_host_memory(CUfunction number, CUdevice device) {
  constexpr auto managed = static_cast<CUmemAllocationType>(2);  // since CUDA 13
  const size_t before = free_bytes();
  for (const bool pinned : {true, false}) {
    CUmemPoolProps properties{};
    properties.allocType = pinned ? CU_MEM_ALLOCATION_TYPE_PINNED : managed;
    properties.location = {pinned ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE, device};
    CUmemoryPool pool;
    OK(cuMemPoolCreate(&pool, &properties));
    CUmemAccessDesc wanted{{CU_MEM_LOCATION_TYPE_DEVICE, device}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    OK(cuMemPoolSetAccess(pool, &wanted, 1));
    CUmemLocation host{CU_MEM_LOCATION_TYPE_HOST, 0};
    CUmemAccess_flags access;
    OK(cuMemPoolGetAccess(&access, pool, &host));
    CHECK(access == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    RETURNS(cuDeviceSetMemPool(device, pool), CUDA_ERROR_INVALID_VALUE);
    CUdeviceptr memory;
    OK(cuMemAllocFromPoolAsync(&memory, 1024, pool, nullptr));
    CHECK(free_bytes() == before - (pinned ? 0 : 1024));
    unsigned type = 0, is_managed = 0;
    OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory));
    OK(cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, memory));
    CHECK(is_managed == !pinned && (!pinned || type == CU_MEMORYTYPE_HOST));
    void* arguments[] = {&memory};
    OK(cuLaunchKernel(number, 1, 1, 1, 256, 1, 1, 0, nullptr, arguments, nullptr));
    OK(cuCtxSynchronize());
    const auto* const words = reinterpret_cast<const uint32_t*>(memory);
    for (uint32_t k = 0; k < 256; ++k) CHECK(words[k] == k);
    OK(cuMemFreeAsync(memory, nullptr));
    OK(cuCtxSynchronize());
    CHECK(asked(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 0 && free_bytes() == before);
    OK(cuMemPoolDestroy(pool));
  }
}

/// A reset of the device leaves its pools without memory.
void reset(CUdevice device) {
  CUmemoryPool pool;
  OK(cuDeviceGetDefaultMemPool(&pool, device));
  const size_t before = free_bytes();
  CUdeviceptr memory;
  OK(cuMemAllocAsync(&memory, 2048, nullptr));
  OK(cuDevicePrimaryCtxReset(device));
  start();
  CHECK(asked(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 0 && free_bytes() >= before);
  RETURNS(cuMemFreeAsync(memory, nullptr), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemAllocAsync(&memory, 2048, nullptr));
  CHECK(asked(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 2048);
}

}  // namespace

int main() {
  const CUdevice device = start();
  default_pool(function(load(ptx), "number"), device);
  own_pool(device);
  pools_of_host_memory(function(load(ptx), "number"), device);
  reset(device);
  std::puts("passed");
}
