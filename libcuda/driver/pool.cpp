#include "pool.hpp"

#include <algorithm>
#include <vector>

#include "capture.hpp"

// Memory pools, and stream-ordered allocation.

namespace simt::driver {

uint64_t MemoryPool::allocate(uint64_t size) {
  require(size > 0);
  require(max_size == 0 || size <= max_size - std::min(used, max_size), CUDA_ERROR_OUT_OF_MEMORY);
  // Retained memory is used first.
  const uint64_t kept = std::min(size, reserved - used);
  count(-kept);
  uint64_t address = 0;
  try {
    address = device.allocate(size, origin, 0, "cudaMallocAsync");
  } catch (const Failure&) {
    count(kept);
    throw;
  }
  device.allocations.at(address).pool = handle_of<CUmemoryPool>(this);
  if (open_to != 0) device.connection.send(ShareRequest{.address = address, .devices = open_to});
  used += size;
  reserved += size - kept;
  most_used = std::max(most_used, used);
  most_reserved = std::max(most_reserved, reserved);
  return address;
}

void MemoryPool::open(uint64_t devices) {
  if (devices == open_to) return;
  open_to = devices;
  for (const auto& [address, allocation] : device.allocations)
    if (allocation.pool == handle_of<CUmemoryPool>(this))
      device.connection.send(ShareRequest{.address = address, .devices = devices});
}

namespace {
void end(MemoryPool& pool);
}

void MemoryPool::freed(uint64_t size) {
  used -= size;
  count(size);  // retained until trimmed
  trim(threshold);
  if (destroyed && used == 0) end(*this);
}

void MemoryPool::trim(uint64_t keep) {
  const uint64_t after = std::max(used, std::min(reserved, keep));
  count(after - reserved);
  reserved = after;
}

void pool_freed(CUmemoryPool pool, uint64_t size) {
  object_of<MemoryPool>(pool).freed(size);
}

namespace {

constexpr int managed_type = 2;  // CU_MEM_ALLOCATION_TYPE_MANAGED, since CUDA 13

/// Of a device and of one kind of memory.
struct Pools {
  MemoryPool* standard = nullptr;
  MemoryPool* current = nullptr;
  std::vector<MemoryPool*> pools;
};

Pools& pools_of(Device& device, Origin origin = Origin::Device) {
  static auto& by_kind = *new std::map<std::pair<Device*, Origin>, Pools>;
  Pools& pools = by_kind[{&device, origin}];
  if (!pools.standard) {
    pools.standard = pools.current = &all<MemoryPool>().make(device, origin, 0u, true);
    pools.pools.push_back(pools.standard);
  }
  return pools;
}

/// The device and the kind of memory that a pool at such a place has.
std::pair<Device*, Origin> kind_of(const CUmemLocation& location, int type) {
  require(type == CU_MEM_ALLOCATION_TYPE_PINNED || type == managed_type);
  const bool on_device = location.type == CU_MEM_LOCATION_TYPE_DEVICE;
  require(on_device || location.type == CU_MEM_LOCATION_TYPE_HOST ||
          location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
          location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT ||
          (type == managed_type && location.type == CU_MEM_LOCATION_TYPE_INVALID));  // anywhere
  const auto& stack = Thread::get().stack;
  Device& device = on_device       ? Process::get().device(location.id)
                   : stack.empty() ? Process::get().device(0)
                                   : current_context().device;
  return {&device, type == managed_type ? Origin::Managed : on_device ? Origin::Device : Origin::Pinned};
}

void end(MemoryPool& pool) {
  std::erase(pools_of(pool.device, pool.origin).pools, &pool);
  all<MemoryPool>().destroy(pool);
}

MemoryPool& pool_of(CUmemoryPool handle) {
  MemoryPool& pool = object_of<MemoryPool>(handle, CUDA_ERROR_INVALID_VALUE);
  require(!pool.destroyed);
  return pool;
}

void allocate(CUdeviceptr* address, size_t bytes, MemoryPool* pool, CUstream handle) {
  require(address != nullptr);
  Stream& stream = stream_of(handle);
  if (stream.capture) {
    *address = capture_allocation(stream, bytes);
    return;
  }
  Device& device = stream.context->device;
  MemoryPool& from = pool ? *pool : *pools_of(device).current;
  try {
    *address = from.allocate(bytes);
  } catch (const Failure& failure) {
    if (failure.code != CUDA_ERROR_OUT_OF_MEMORY || !from.device.pending) throw;
    synchronize(from.device);  // memory freed in stream order is returned
    *address = from.allocate(bytes);
  }
}

template <class T>
T& as(void* value) {
  require(value != nullptr);
  return *static_cast<T*>(value);
}

CUresult no_sharing() {
  return guarded([] {
    say_once("memory pools are not shared with other processes");
    fail(CUDA_ERROR_NOT_SUPPORTED);
  });
}

}  // namespace

void forget_pools(Device& device) {
  for (const Origin origin : {Origin::Device, Origin::Pinned, Origin::Managed})
    for (MemoryPool* pool : std::vector(pools_of(device, origin).pools)) {
      pool->used = pool->reserved = 0;
      if (pool->destroyed) end(*pool);
    }
}

}  // namespace simt::driver

using namespace simt::driver;

CUresult cuMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream stream) {
  return guarded([&] { allocate(address, bytes, nullptr, stream); });
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* address, size_t bytes, CUmemoryPool pool, CUstream stream) {
  return guarded([&] { allocate(address, bytes, &pool_of(pool), stream); });
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  return guarded([&] {
    Stream& s = stream_of(stream);
    if (address == 0) return;
    Device* device = Process::get().device_of(address);
    require(device != nullptr);
    const auto found = device->allocations.find(address);
    require(found != device->allocations.end() &&
            (found->second.origin == Origin::Device || found->second.pool != nullptr));
    submit(s, Release{address});
  });
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
  return guarded([&] {
    require(pool != nullptr);
    *pool = handle_of<CUmemoryPool>(pools_of(Process::get().device(device)).standard);
  });
}

CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice device) {
  return guarded([&] {
    require(pool != nullptr);
    *pool = handle_of<CUmemoryPool>(pools_of(Process::get().device(device)).current);
  });
}

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
  return guarded([&] {
    Device& d = Process::get().device(device);
    MemoryPool& p = pool_of(pool);
    require(&p.device == &d && p.origin == Origin::Device);
    pools_of(d).current = &p;
  });
}

CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* properties) {
  return guarded([&] {
    require(pool != nullptr && properties != nullptr);
    if (properties->handleTypes != CU_MEM_HANDLE_TYPE_NONE) {
      say_once("memory pools are not shared with other processes");
      fail(CUDA_ERROR_NOT_SUPPORTED);
    }
    const auto [device, origin] = kind_of(properties->location, properties->allocType);
    MemoryPool& made = all<MemoryPool>().make(*device, origin, properties->maxSize, false);
    pools_of(*device, origin).pools.push_back(&made);
    *pool = handle_of<CUmemoryPool>(&made);
  });
}

CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  return guarded([&] {
    MemoryPool& p = pool_of(pool);
    require(!p.standard);
    if (Pools& pools = pools_of(p.device, p.origin); pools.current == &p) pools.current = pools.standard;
    p.trim(0);
    p.destroyed = true;
    p.threshold = 0;
    if (p.used == 0) end(p);
  });
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep) {
  return guarded([&] { pool_of(pool).trim(keep); });
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute which, void* value) {
  return guarded([&] {
    const MemoryPool& p = pool_of(pool);
    switch (which) {
      case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        as<uint64_t>(value) = p.threshold;
        return;
      case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
        as<uint64_t>(value) = p.reserved;
        return;
      case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        as<uint64_t>(value) = p.most_reserved;
        return;
      case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        as<uint64_t>(value) = p.used;
        return;
      case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        as<uint64_t>(value) = p.most_used;
        return;
      default:
        require(p.reuse.contains(which));
        as<int>(value) = p.reuse.at(which);
    }
  });
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute which, void* value) {
  return guarded([&] {
    MemoryPool& p = pool_of(pool);
    switch (which) {
      case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        p.threshold = as<uint64_t>(value);
        return;
      case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        require(as<uint64_t>(value) == 0);
        p.most_reserved = p.reserved;
        return;
      case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        require(as<uint64_t>(value) == 0);
        p.most_used = p.used;
        return;
      default:
        require(p.reuse.contains(which));
        p.reuse[which] = as<int>(value);
    }
  });
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* wanted, size_t count) {
  return guarded([&] {
    MemoryPool& p = pool_of(pool);
    require(count == 0 || wanted != nullptr);
    uint64_t devices = p.open_to;
    for (size_t k = 0; k < count; ++k) {
      const CUmemAccessDesc& access = wanted[k];
      if (access.location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
        require(p.origin != Origin::Device, CUDA_ERROR_NOT_SUPPORTED);
        require(access.flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
        continue;
      }
      Device& other = Process::get().device(access.location.id);
      if (&other == &p.device || p.origin != Origin::Device) {  // always has access
        require(access.flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
        continue;
      }
      const uint64_t bit = uint64_t{1} << other.ordinal;
      if (access.flags == CU_MEM_ACCESS_FLAGS_PROT_NONE) {
        synchronize(other);
        devices &= ~bit;
        continue;
      }
      require(access.flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
      require(other.joined && p.device.joined, CUDA_ERROR_INVALID_DEVICE);
      devices |= bit;
    }
    p.open(devices);
  });
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool pool, CUmemLocation* location) {
  return guarded([&] {
    require(flags != nullptr && location != nullptr);
    const MemoryPool& p = pool_of(pool);
    const bool own = location->type != CU_MEM_LOCATION_TYPE_DEVICE
                         ? p.origin != Origin::Device
                         : location->id == p.device.ordinal || p.origin != Origin::Device ||
                               (p.open_to >> Process::get().device(location->id).ordinal & 1) != 0;
    *flags = own ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  });
}

CUresult cuMemPoolExportToShareableHandle(void*, CUmemoryPool, CUmemAllocationHandleType,
                                          unsigned long long) {
  return no_sharing();
}

CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool*, void*, CUmemAllocationHandleType,
                                            unsigned long long) {
  return no_sharing();
}

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData*, CUdeviceptr) {
  return no_sharing();
}

CUresult cuMemPoolImportPointer(CUdeviceptr*, CUmemoryPool, CUmemPoolPtrExportData*) {
  return no_sharing();
}

// CUDA 13 specifies pools by location.

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED CUresult cuMemGetDefaultMemPool(CUmemoryPool* pool, CUmemLocation* location,
                                         CUmemAllocationType type) {
  return guarded([&] {
    require(pool != nullptr && location != nullptr);
    const auto [device, origin] = kind_of(*location, type);
    *pool = handle_of<CUmemoryPool>(pools_of(*device, origin).standard);
  });
}

EXPORTED CUresult cuMemGetMemPool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type) {
  return guarded([&] {
    require(pool != nullptr && location != nullptr);
    const auto [device, origin] = kind_of(*location, type);
    *pool = handle_of<CUmemoryPool>(pools_of(*device, origin).current);
  });
}

EXPORTED CUresult cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool pool) {
  return guarded([&] {
    require(location != nullptr);
    const auto [device, origin] = kind_of(*location, type);
    MemoryPool& p = pool_of(pool);
    require(&p.device == device && p.origin == origin);
    pools_of(*device, origin).current = &p;
  });
}
