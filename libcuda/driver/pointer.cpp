#include "process.hpp"

// Properties of pointers.

using namespace simt::driver;

namespace {

struct Found {
  Device& device;
  uint64_t base;
  const Allocation& allocation;
};

Found find_allocation(CUdeviceptr address) {
  const auto [device, found] = Process::get().allocation_of(address);
  require(device != nullptr);
  return {*device, found->first, found->second};
}

template <class T>
void put(void* data, const T& value) {
  std::memcpy(data, &value, sizeof value);
}

void put_attribute(void* data, CUpointer_attribute which, CUdeviceptr address) {
  const Found found = find_allocation(address);
  const Allocation& a = found.allocation;
  const bool host = a.origin == Origin::Pinned || a.origin == Origin::Registered;
  const uint64_t offset = found.device.holds(address) ? address - found.base : address - a.host;
  switch (which) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      return put(data, handle_of<CUcontext>(found.device.primary.get()));
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return put(data, host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return put(data, CUdeviceptr{found.base + offset});
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      require(host || a.origin == Origin::Managed);
      return put(data, a.origin == Origin::Registered ? a.host + offset : found.base + offset);
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      return put(data, 0u);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      return put(data, static_cast<unsigned long long>(a.id));
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return put(data, static_cast<unsigned>(a.origin == Origin::Managed));
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return put(data, found.device.ordinal);
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
      return put(data, 0u);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return put(data, CUdeviceptr{found.base});
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return put(data, size_t{a.size});
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return put(data, 1u);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      return put(data, uint64_t{0});
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      return put(data, CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE);
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      return put(data, a.pool);
    default:
      fail(CUDA_ERROR_NOT_SUPPORTED);
  }
}

}  // namespace

CUresult cuPointerGetAttribute(void* data, CUpointer_attribute which, CUdeviceptr address) {
  return guarded([&] {
    require(data != nullptr);
    put_attribute(data, which, address);
  });
}

CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* which, void** data,
                                CUdeviceptr address) {
  return guarded([&] {
    require(which != nullptr && data != nullptr);
    for (unsigned k = 0; k < count; ++k) {
      try {
        put_attribute(data[k], which[k], address);
      } catch (const Failure&) {  // an unknown pointer has no attributes: zeros
        const bool narrow =
            which[k] == CU_POINTER_ATTRIBUTE_MEMORY_TYPE || which[k] == CU_POINTER_ATTRIBUTE_IS_MANAGED ||
            which[k] == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || which[k] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL ||
            which[k] == CU_POINTER_ATTRIBUTE_MAPPED;
        std::memset(data[k], which[k] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL ? 0xff : 0,
                    narrow ? sizeof(unsigned) : sizeof(uint64_t));
      }
    }
  });
}

CUresult cuPointerSetAttribute(const void*, CUpointer_attribute which, CUdeviceptr address) {
  return guarded([&] {
    require(which == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS);
    find_allocation(address);
  });
}
