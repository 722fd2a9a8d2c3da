#include <sys/mman.h>

#include <map>

#include "process.hpp"

// Virtual memory management: address ranges, memory, and their mappings.
// Addresses of device memory are fixed. So the contents of unmapped memory are kept in the program, and
// memory can be mapped at only one address at a time.

namespace simt::driver {
namespace {

constexpr uint64_t granularity = uint64_t{2} << 20;

struct Physical : Handle {
  static constexpr uint64_t tag = 0x73696d745f706879;
  Physical(Device& of, uint64_t bytes, const CUmemAllocationProp& given)
      : Handle(tag), device(of), size(bytes), properties(given) {
    require(size <= device.memory - device.used, CUDA_ERROR_OUT_OF_MEMORY);
    device.used += size;
  }
  ~Physical() { device.used -= size; }

  Device& device;
  uint64_t size;
  CUmemAllocationProp properties;
  unsigned references = 1;
  uint64_t address = 0;                                      ///< where it is mapped; 0: unmapped
  CUmemAccess_flags access = CU_MEM_ACCESS_FLAGS_PROT_NONE;  ///< of its device
  uint64_t open_to = 0;  ///< other devices that may access it: bit n for device n
  Bytes contents;        ///< while it is unmapped, if it ever was mapped
};

struct Range {
  uint64_t size = 0;
  uint64_t base = 0;  ///< start of simt's allocation for it
  Device* device = nullptr;
};

std::map<uint64_t, Range>& ranges() {
  static auto& by_address = *new std::map<uint64_t, Range>;
  return by_address;
}

std::map<uint64_t, Physical*>& mappings() {
  static auto& by_address = *new std::map<uint64_t, Physical*>;
  return by_address;
}

bool aligned(uint64_t value) {
  return value % granularity == 0;
}

void require_own_device(const CUmemLocation& location, const Device& device) {
  if (location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
    say_once("virtual memory management is for device memory");
    fail(CUDA_ERROR_NOT_SUPPORTED);
  }
  require(location.id == device.ordinal, CUDA_ERROR_INVALID_DEVICE);
}

/// The mappings in [address, address + size), whose ends must coincide with ends of mappings.
std::vector<Physical*> mapped_in(uint64_t address, uint64_t size) {
  std::vector<Physical*> found;
  const uint64_t end = address + size;
  while (address < end) {
    const auto mapping = mappings().find(address);
    require(mapping != mappings().end());
    found.push_back(mapping->second);
    address += mapping->second->size;
  }
  require(address == end && !found.empty());
  return found;
}

/// The mapping that contains an address. Throws Failure.
Physical& mapped_at(uint64_t address) {
  auto next = mappings().upper_bound(address);
  require(next != mappings().begin());
  Physical& memory = *std::prev(next)->second;
  require(address - memory.address < memory.size);
  return memory;
}

/// Lets other devices access the range that memory is mapped in.
void open(Physical& memory, uint64_t devices) {
  if (devices == memory.open_to) return;
  memory.open_to = devices;
  const Range& range = std::prev(ranges().upper_bound(memory.address))->second;
  memory.device.connection.send(ShareRequest{.address = range.base, .devices = devices});
}

void set_access(Physical& memory, CUmemAccess_flags access) {
  memory.access = access;
  auto& allocations = memory.device.allocations;
  if (access == CU_MEM_ACCESS_FLAGS_PROT_NONE)
    allocations.erase(memory.address);
  else
    allocations[memory.address] =
        Allocation{memory.size, Origin::Mapped, 0, 0, 0, Process::get().next_id++, nullptr};
}

void map(Physical& memory, uint64_t address) {
  if (memory.address != 0) {
    say_once("memory that is mapped at two places is not supported: cuMemMap wants it unmapped first");
    fail(CUDA_ERROR_NOT_SUPPORTED);
  }
  auto range = ranges().upper_bound(address);
  require(range != ranges().begin());
  --range;
  require(address + memory.size <= range->first + range->second.size);
  if (range->second.device != &memory.device) {
    say_once("memory cannot be mapped at addresses that were reserved for another device");
    fail(CUDA_ERROR_NOT_SUPPORTED);
  }
  const auto next = mappings().lower_bound(address);
  require(next == mappings().end() || next->first >= address + memory.size);
  require(next == mappings().begin() ||
          std::prev(next)->second->address + std::prev(next)->second->size <= address);
  memory.address = address;
  mappings()[address] = &memory;
  if (memory.contents.empty()) return;
  std::memcpy(reinterpret_cast<void*>(address), memory.contents.data(), memory.size);
  Bytes().swap(memory.contents);
}

void unmap(Physical& memory) {
  auto* const at = reinterpret_cast<std::byte*>(memory.address);
  if (memory.references > 0) memory.contents.assign(at, at + memory.size);
  open(memory, 0);
  set_access(memory, CU_MEM_ACCESS_FLAGS_PROT_NONE);
  mappings().erase(memory.address);
  memory.address = 0;
  // The pages are released; the next mapping here reads zeros.
  if (madvise(at, memory.size, MADV_REMOVE) != 0) std::memset(at, 0, memory.size);
  if (memory.references == 0) all<Physical>().destroy(memory);
}

}  // namespace

void forget_mappings(Device& device) {
  std::erase_if(mappings(), [&](const auto& entry) { return &entry.second->device == &device; });
  std::erase_if(ranges(), [&](const auto& entry) { return entry.second.device == &device; });
  for (Physical* memory : all<Physical>().those([&](const Physical& p) { return &p.device == &device; }))
    all<Physical>().destroy(*memory);
}

}  // namespace simt::driver

using namespace simt::driver;

CUresult cuMemGetAllocationGranularity(size_t* bytes, const CUmemAllocationProp* properties,
                                       CUmemAllocationGranularity_flags option) {
  return guarded([&] {
    require(bytes != nullptr && properties != nullptr && option <= CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
    *bytes = granularity;
  });
}

CUresult cuMemAddressReserve(CUdeviceptr* address, size_t size, size_t alignment, CUdeviceptr,
                             unsigned long long flags) {
  return guarded([&] {
    require(address != nullptr && size > 0 && aligned(size) && flags == 0);
    require((alignment & (alignment - 1)) == 0);
    alignment = std::max<size_t>(alignment, granularity);
    // The wanted address is only a hint; simt chooses another.
    Device& device = current_context().device;
    const uint64_t base = device.connection.call(
        AllocateRequest{.size = size + alignment, .label = "cuMemAddressReserve", .everywhere = false});
    require(base != 0, CUDA_ERROR_OUT_OF_MEMORY);
    *address = (base + alignment - 1) / alignment * alignment;
    ranges().insert_or_assign(*address, Range{size, base, &device});
  });
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t size) {
  return guarded([&] {
    const auto found = ranges().find(address);
    require(found != ranges().end() && found->second.size == size);
    const auto mapping = mappings().lower_bound(address);
    require(mapping == mappings().end() || mapping->first >= address + size);
    synchronize(*found->second.device);
    found->second.device->connection.send(FreeRequest{.address = found->second.base});
    ranges().erase(found);
  });
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t size, const CUmemAllocationProp* properties,
                     unsigned long long flags) {
  return guarded([&] {
    require(handle != nullptr && properties != nullptr && size > 0 && aligned(size) && flags == 0);
    require(properties->type == CU_MEM_ALLOCATION_TYPE_PINNED);
    if (properties->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE) {
      say_once("memory of cuMemCreate is not shared with other processes");
      fail(CUDA_ERROR_NOT_SUPPORTED);
    }
    Device& device = Process::get().device(properties->location.id);
    require_own_device(properties->location, device);
    *handle =
        reinterpret_cast<CUmemGenericAllocationHandle>(&all<Physical>().make(device, size, *properties));
  });
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  return guarded([&] {
    Physical& memory = object_of<Physical>(handle, CUDA_ERROR_INVALID_VALUE);
    require(memory.references > 0);
    if (--memory.references == 0 && memory.address == 0) all<Physical>().destroy(memory);
  });
}

CUresult cuMemMap(CUdeviceptr address, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags) {
  return guarded([&] {
    Physical& memory = object_of<Physical>(handle, CUDA_ERROR_INVALID_VALUE);
    require(aligned(address) && offset == 0 && flags == 0 && size <= memory.size);
    if (size != memory.size) {
      say_once("cuMemMap maps the whole memory of a handle");
      fail(CUDA_ERROR_NOT_SUPPORTED);
    }
    map(memory, address);
  });
}

CUresult cuMemUnmap(CUdeviceptr address, size_t size) {
  return guarded([&] {
    for (Physical* memory : mapped_in(address, size)) {
      synchronize(memory->device);
      unmap(*memory);
    }
  });
}

CUresult cuMemSetAccess(CUdeviceptr address, size_t size, const CUmemAccessDesc* wanted, size_t count) {
  return guarded([&] {
    require(wanted != nullptr && count > 0);
    for (Physical* memory : mapped_in(address, size)) {
      for (size_t k = 0; k < count; ++k) {
        const CUmemLocation& location = wanted[k].location;
        if (location.type == CU_MEM_LOCATION_TYPE_DEVICE && location.id != memory->device.ordinal) {
          const Device& other = Process::get().device(location.id);
          require(other.joined && memory->device.joined, CUDA_ERROR_INVALID_DEVICE);
          const uint64_t bit = uint64_t{1} << other.ordinal;
          const bool may = wanted[k].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE;
          open(*memory, may ? memory->open_to | bit : memory->open_to & ~bit);
          continue;
        }
        require_own_device(location, memory->device);
        set_access(*memory, wanted[k].flags);
      }
    }
  });
}

CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr address) {
  return guarded([&] {
    require(flags != nullptr && location != nullptr);
    const Physical& memory = mapped_at(address);
    const bool own = location->type == CU_MEM_LOCATION_TYPE_DEVICE && location->id == memory.device.ordinal;
    const bool open = location->type == CU_MEM_LOCATION_TYPE_DEVICE && !own &&
                      (memory.open_to >> Process::get().device(location->id).ordinal & 1) != 0;
    *flags = own ? memory.access : open ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  });
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
  return guarded([&] {
    require(handle != nullptr);
    Physical& memory = mapped_at(reinterpret_cast<uint64_t>(address));
    ++memory.references;
    *handle = reinterpret_cast<CUmemGenericAllocationHandle>(&memory);
  });
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* properties,
                                                CUmemGenericAllocationHandle handle) {
  return guarded([&] {
    require(properties != nullptr);
    *properties = object_of<Physical>(handle, CUDA_ERROR_INVALID_VALUE).properties;
  });
}
