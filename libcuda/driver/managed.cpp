#include <map>
#include <set>

#include "process.hpp"

// The program and the device share managed memory, so nothing needs to be moved. Advice from the program is
// recorded for each allocation.

using namespace simt::driver;

namespace {

struct Advice {
  bool read_mostly = false;
  int preferred = CU_DEVICE_INVALID, prefetched = CU_DEVICE_INVALID;
  std::set<int> accessed_by;
};

/// By CU_POINTER_ATTRIBUTE_BUFFER_ID, which is unique to each allocation.
Advice& advice_of(uint64_t id) {
  static auto* all = new std::map<uint64_t, Advice>;
  return (*all)[id];
}

/// The managed allocation that contains a range. Throws Failure.
const Allocation& managed(CUdeviceptr address, size_t bytes) {
  Device* device = Process::get().device_of(address);
  require(device != nullptr && bytes > 0);
  const auto found = device->find(address);
  require(found != device->allocations.end() && found->second.origin == Origin::Managed);
  require(bytes <= found->second.size - (address - found->first));
  return found->second;
}

void require_place(CUdevice device) {
  if (device != CU_DEVICE_CPU) Process::get().device(device);
}

CUdevice device_of(const CUmemLocation& location) {
  return location.type == CU_MEM_LOCATION_TYPE_DEVICE ? location.id : CU_DEVICE_CPU;
}

void put_attribute(void* data, size_t size, CUmem_range_attribute which, const Advice& advice) {
  require(data != nullptr && size >= sizeof(int) && size % sizeof(int) == 0);
  int* const numbers = static_cast<int*>(data);
  switch (which) {
    case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
      *numbers = advice.read_mostly;
      return;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
      *numbers = advice.preferred;
      return;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
      *numbers = advice.prefetched;
      return;
    case CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY: {
      size_t k = 0;
      for (const int device : advice.accessed_by)
        if (k < size / sizeof(int)) numbers[k++] = device;
      while (k < size / sizeof(int)) numbers[k++] = CU_DEVICE_INVALID;
      return;
    }
    default:
      say_once("attribute " + std::to_string(which) + " of memory ranges is not supported");
      fail(CUDA_ERROR_NOT_SUPPORTED);
  }
}

void advise(CUdeviceptr address, size_t bytes, CUmem_advise what, CUdevice device) {
  Advice& advice = advice_of(managed(address, bytes).id);
  const bool about_place = what != CU_MEM_ADVISE_SET_READ_MOSTLY && what != CU_MEM_ADVISE_UNSET_READ_MOSTLY &&
                           what != CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION;
  if (about_place) require_place(device);
  switch (what) {
    case CU_MEM_ADVISE_SET_READ_MOSTLY:
    case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
      advice.read_mostly = what == CU_MEM_ADVISE_SET_READ_MOSTLY;
      return;
    case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
      advice.preferred = device;
      return;
    case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
      advice.preferred = CU_DEVICE_INVALID;
      return;
    case CU_MEM_ADVISE_SET_ACCESSED_BY:
      advice.accessed_by.insert(device);
      return;
    case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
      advice.accessed_by.erase(device);
      return;
    default:
      fail(CUDA_ERROR_INVALID_VALUE);
  }
}

void prefetch(CUdeviceptr address, size_t bytes, CUdevice device, CUstream stream) {
  const Allocation& allocation = managed(address, bytes);
  require_place(device);
  stream_of(stream);
  advice_of(allocation.id).prefetched = device;
}

}  // namespace

CUresult cuMemPrefetchAsync(CUdeviceptr address, size_t bytes, CUdevice device, CUstream stream) {
  return guarded([&] { prefetch(address, bytes, device, stream); });
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr address, size_t bytes, CUmemLocation place, unsigned flags,
                               CUstream stream) {
  return guarded([&] {
    require(flags == 0);
    prefetch(address, bytes, device_of(place), stream);
  });
}

CUresult cuMemAdvise(CUdeviceptr address, size_t bytes, CUmem_advise what, CUdevice device) {
  return guarded([&] { advise(address, bytes, what, device); });
}

CUresult cuMemAdvise_v2(CUdeviceptr address, size_t bytes, CUmem_advise what, CUmemLocation place) {
  return guarded([&] { advise(address, bytes, what, device_of(place)); });
}

CUresult cuMemRangeGetAttribute(void* data, size_t size, CUmem_range_attribute which, CUdeviceptr address,
                                size_t bytes) {
  return guarded([&] { put_attribute(data, size, which, advice_of(managed(address, bytes).id)); });
}

CUresult cuMemRangeGetAttributes(void** data, size_t* sizes, CUmem_range_attribute* which, size_t count,
                                 CUdeviceptr address, size_t bytes) {
  return guarded([&] {
    require(data != nullptr && sizes != nullptr && which != nullptr && count > 0);
    const Advice& advice = advice_of(managed(address, bytes).id);
    for (size_t k = 0; k < count; ++k) put_attribute(data[k], sizes[k], which[k], advice);
  });
}

CUresult cuStreamAttachMemAsync(CUstream stream, CUdeviceptr address, size_t bytes, unsigned flags) {
  return guarded([&] {
    stream_of(stream);
    require(flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST || flags == CU_MEM_ATTACH_SINGLE);
    managed(address, bytes ? bytes : 1);
  });
}
