#include <sys/mman.h>
#include <unistd.h>

#include "process.hpp"

// Device, pinned, managed and registered memory.

using namespace simt::driver;

namespace {

constexpr uint64_t pitch_alignment = 512;

/// Registered memory: pages of the program, remapped to shared memory so that kernels can access them.
struct Pages {
  uint64_t begin, bytes;
  Pages(const void* address, size_t size) {
    const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    begin = reinterpret_cast<uint64_t>(address) / page * page;
    const uint64_t end = reinterpret_cast<uint64_t>(address) + size;
    bytes = (end + page - 1) / page * page - begin;
  }
};

Device& device_holding(uint64_t address) {
  Device* device = Process::get().device_of(address);
  require(device != nullptr);
  return *device;
}

void free_memory(uint64_t address, bool host) {
  if (address == 0) return;
  Device& device = device_holding(address);
  const auto found = device.allocations.find(address);
  require(found != device.allocations.end() && (found->second.origin == Origin::Pinned) == host);
  for (const auto& each : Process::get().devices)  // kernels of any may use it
    if (each) synchronize(*each);
  device.free(address);
}

}  // namespace

CUresult cuMemGetInfo(size_t* free, size_t* total) {
  return guarded([&] {
    require(free != nullptr && total != nullptr);
    const Device& device = current_context().device;
    *total = device.memory;
    *free = device.memory - device.used;
  });
}

CUresult cuMemAlloc(CUdeviceptr* address, size_t bytes) {
  return guarded([&] {
    require(address != nullptr);
    require_no_capture();
    *address = current_context().device.allocate(bytes, Origin::Device, 0, "cudaMalloc");
  });
}

CUresult cuMemAllocPitch(CUdeviceptr* address, size_t* pitch, size_t width, size_t height, unsigned element) {
  return guarded([&] {
    require(address != nullptr && pitch != nullptr && width > 0 && height > 0);
    require(element == 4 || element == 8 || element == 16);
    require_no_capture();
    const uint64_t row = (width + pitch_alignment - 1) / pitch_alignment * pitch_alignment;
    *address = current_context().device.allocate(row * height, Origin::Device, 0, "cudaMallocPitch");
    *pitch = row;
  });
}

CUresult cuMemFree(CUdeviceptr address) {
  return guarded([&] {
    require_no_capture();
    free_memory(address, false);
  });
}

CUresult cuMemAllocManaged(CUdeviceptr* address, size_t bytes, unsigned flags) {
  return guarded([&] {
    require(address != nullptr && (flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST));
    require_no_capture();
    *address = current_context().device.allocate(bytes, Origin::Managed, flags, "cudaMallocManaged");
  });
}

CUresult cuMemAllocHost(void** address, size_t bytes) {
  return cuMemHostAlloc(address, bytes, 0);
}

CUresult cuMemHostAlloc(void** address, size_t bytes, unsigned flags) {
  return guarded([&] {
    require(address != nullptr && (flags & ~7u) == 0);
    require_no_capture();
    const uint64_t made = current_context().device.allocate(bytes, Origin::Pinned, flags, "cudaHostAlloc");
    *address = reinterpret_cast<void*>(made);
  });
}

CUresult cuMemFreeHost(void* address) {
  return guarded([&] {
    require_no_capture();
    free_memory(reinterpret_cast<uint64_t>(address), true);
  });
}

CUresult cuMemHostGetDevicePointer(CUdeviceptr* address, void* host, unsigned flags) {
  return guarded([&] {
    require(address != nullptr && host != nullptr && flags == 0);
    current_context();
    const auto place = reinterpret_cast<uint64_t>(host);
    const auto [device, found] = Process::get().allocation_of(place);
    require(device != nullptr);
    *address = device->holds(place) ? place : found->first + (place - found->second.host);
  });
}

CUresult cuMemHostGetFlags(unsigned* flags, void* host) {
  return guarded([&] {
    require(flags != nullptr && host != nullptr);
    current_context();
    const auto [device, found] = Process::get().allocation_of(reinterpret_cast<uint64_t>(host));
    require(device != nullptr);
    *flags = found->second.flags;
  });
}

CUresult cuMemHostRegister(void* host, size_t bytes, unsigned flags) {
  return guarded([&] {
    require(host != nullptr && bytes > 0);
    require_no_capture();
    Device& device = current_context().device;
    require(Process::get().allocation_of(reinterpret_cast<uint64_t>(host)).first == nullptr,
            CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    const Pages pages(host, bytes);
    const uint64_t shared =
        device.allocate(pages.bytes + pitch_alignment * 16, Origin::Registered, flags, "cudaHostRegister");
    const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    const uint64_t at = (shared + page - 1) / page * page;
    // The program's pages move into shared memory, at unchanged addresses in the program.
    std::memcpy(reinterpret_cast<void*>(at), reinterpret_cast<void*>(pages.begin), pages.bytes);
    void* const moved = mremap(reinterpret_cast<void*>(at), 0, pages.bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
                               reinterpret_cast<void*>(pages.begin));
    if (moved == MAP_FAILED) {
      device.free(shared);
      fail(CUDA_ERROR_OPERATING_SYSTEM);
    }
    const auto record = device.allocations.extract(shared);
    const uint64_t offset = reinterpret_cast<uint64_t>(host) - pages.begin;
    Allocation& allocation = device.allocations[at + offset];
    allocation = record.mapped();
    allocation.size = bytes;
    allocation.host = reinterpret_cast<uint64_t>(host);
    allocation.base = shared;
  });
}

CUresult cuMemHostUnregister(void* host) {
  return guarded([&] {
    current_context();
    const auto [holder, found] = Process::get().allocation_of(reinterpret_cast<uint64_t>(host));
    require(holder != nullptr && found->second.origin == Origin::Registered &&
                found->second.host == reinterpret_cast<uint64_t>(host),
            CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    Device& device = *holder;
    for (const auto& each : Process::get().devices)  // kernels of any may use it
      if (each) synchronize(*each);
    // The pages become private again, with their current contents. Nothing may be allocated between: the
    // program's heap may be in these pages.
    const Pages pages(host, found->second.size);
    void* const copy = mmap(nullptr, pages.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    require(copy != MAP_FAILED, CUDA_ERROR_OUT_OF_MEMORY);
    std::memcpy(copy, reinterpret_cast<void*>(pages.begin), pages.bytes);
    void* const again = mremap(copy, pages.bytes, pages.bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
                               reinterpret_cast<void*>(pages.begin));
    require(again != MAP_FAILED, CUDA_ERROR_OPERATING_SYSTEM);
    const uint64_t base = found->second.base;
    device.allocations.erase(found);
    device.connection.send(FreeRequest{.address = base});
  });
}

CUresult cuMemGetAddressRange(CUdeviceptr* base, size_t* size, CUdeviceptr address) {
  return guarded([&] {
    Device* device = Process::get().device_of(address);
    require(device != nullptr, CUDA_ERROR_NOT_FOUND);
    const auto found = device->find(address);
    require(found != device->allocations.end(), CUDA_ERROR_NOT_FOUND);
    if (base) *base = found->first;
    if (size) *size = found->second.size;
  });
}
