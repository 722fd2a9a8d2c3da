#include "copy.hpp"

#include "array.hpp"
#include "capture.hpp"

// Copies and fills of all kinds. Each becomes a Copy or a Fill.

namespace simt::driver {
namespace {

uint64_t address_of(const void* pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}

/// Device memory must have been allocated.
void check_range(uint64_t address, uint64_t bytes) {
  if (bytes == 0) return;
  require(address != 0);
  Device* device = Process::get().device_of(address);
  if (!device) return;
  for (const uint64_t end = address + bytes;;) {
    const auto found = device->find(address);
    require(found != device->allocations.end());
    address = found->first + found->second.size;
    if (end <= address) return;
    require(found->second.origin == Origin::Mapped);  // the next mapping may be adjacent
  }
}

/// An address that must be in device memory.
CUdeviceptr on_device(CUdeviceptr address, size_t bytes) {
  require(bytes == 0 || Process::get().device_of(address) != nullptr);
  return address;
}

/// Bytes from the first to the last of a side.
uint64_t extent(const Copy::Side& side, const Copy& copy) {
  if (copy.bytes() == 0) return 0;
  return (copy.depth - 1) * side.slice + (copy.height - 1) * side.pitch + copy.width;
}

/// Where a side of a 2D or 3D copy begins. The extent of `copy` must be set.
Copy::Side side_of(const Copy& copy, CUmemorytype kind, const void* host, CUdeviceptr device, CUarray array,
                   size_t pitch, size_t height, size_t x, size_t y, size_t z) {
  if (kind == CU_MEMORYTYPE_ARRAY) return side_of_array(array, x, y, z, copy);
  require(copy.height <= 1 || pitch >= copy.width);
  Copy::Side side;
  side.address = kind == CU_MEMORYTYPE_HOST ? address_of(host) : device;
  side.pitch = pitch;
  side.slice = pitch * height;
  side.address += z * side.slice + y * pitch + x;
  return side;
}

template <class Parameters>
Copy copy_of_3d(const Parameters& p) {
  Copy copy;
  copy.width = p.WidthInBytes;
  copy.height = p.Height;
  copy.depth = p.Depth;
  const auto or_else = [](size_t given, size_t otherwise) { return given ? given : otherwise; };
  copy.from =
      side_of(copy, p.srcMemoryType, p.srcHost, p.srcDevice, p.srcArray, or_else(p.srcPitch, p.WidthInBytes),
              or_else(p.srcHeight, p.Height), p.srcXInBytes, p.srcY, p.srcZ);
  copy.to =
      side_of(copy, p.dstMemoryType, p.dstHost, p.dstDevice, p.dstArray, or_else(p.dstPitch, p.WidthInBytes),
              or_else(p.dstHeight, p.Height), p.dstXInBytes, p.dstY, p.dstZ);
  return copy;
}

}  // namespace

void check(const Copy& copy) {
  check_range(copy.to.address, extent(copy.to, copy));
  check_range(copy.from.address, extent(copy.from, copy));
}

void check(const Fill& fill) {
  require(fill.element == 1 || fill.element == 2 || fill.element == 4);
  require(fill.address % fill.element == 0);
  if (fill.width * fill.height > 0)
    check_range(fill.address, (fill.height - 1) * fill.pitch + fill.width * fill.element);
}

Copy copy_of(const CUDA_MEMCPY3D& p) {
  return copy_of_3d(p);
}

}  // namespace simt::driver

using namespace simt::driver;

namespace {

/// Submits a copy to a stream. blocking: returns when it is done, as functions without `Async` do.
void put(CUstream handle, const Copy& copy, bool blocking) {
  Stream& stream = stream_of(handle);
  check(copy);
  if (blocking) {
    require_no_implicit_capture(stream);
    require_no_capture();
    synchronize(stream);
    if (copy.bytes() == 0) return;
    wait_for_others(stream.context->device, copy);
    copy_now(stream, copy);
    return;
  }
  submit(stream, copy);
}

void put(CUstream stream, uint64_t to, uint64_t from, size_t bytes, bool blocking) {
  Copy copy;
  copy.to.address = to;
  copy.from.address = from;
  copy.width = bytes;
  put(stream, copy, blocking);
}

void fill(CUstream handle, CUdeviceptr address, size_t pitch, unsigned value, unsigned element, size_t width,
          size_t height) {
  Stream& stream = stream_of(handle);
  const Fill work{address, pitch, value, element, width, height};
  check(work);
  submit(stream, work);
}

Copy copy_of(const CUDA_MEMCPY2D& p) {
  Copy copy;
  copy.width = p.WidthInBytes;
  copy.height = p.Height;
  const size_t from = p.srcPitch ? p.srcPitch : p.WidthInBytes, to = p.dstPitch ? p.dstPitch : p.WidthInBytes;
  copy.from = side_of(copy, p.srcMemoryType, p.srcHost, p.srcDevice, p.srcArray, from, p.Height,
                      p.srcXInBytes, p.srcY, 0);
  copy.to = side_of(copy, p.dstMemoryType, p.dstHost, p.dstDevice, p.dstArray, to, p.Height, p.dstXInBytes,
                    p.dstY, 0);
  return copy;
}

Copy copy_of(const CUDA_MEMCPY3D_PEER& p) {
  return copy_of_3d(p);
}

Copy::Side linear(uint64_t address) {
  Copy::Side side;
  side.address = address;
  return side;
}

/// A range of bytes in a one-row array.
Copy::Side row_of(CUarray array, size_t offset, size_t bytes) {
  Copy copy;
  copy.width = bytes;
  return side_of_array(array, offset, 0, 0, copy);
}

void put_array(CUstream stream, Copy::Side to, Copy::Side from, size_t bytes, bool blocking) {
  Copy copy;
  copy.to = to;
  copy.from = from;
  copy.width = bytes;
  put(stream, copy, blocking);
}

}  // namespace

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return guarded([&] { put(nullptr, to, from, bytes, true); });
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return guarded([&] { put(stream, to, from, bytes, false); });
}

CUresult cuMemcpyHtoD(CUdeviceptr to, const void* from, size_t bytes) {
  return guarded([&] { put(nullptr, on_device(to, bytes), address_of(from), bytes, true); });
}

CUresult cuMemcpyDtoH(void* to, CUdeviceptr from, size_t bytes) {
  return guarded([&] { put(nullptr, address_of(to), on_device(from, bytes), bytes, true); });
}

CUresult cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return guarded([&] { put(nullptr, to, from, bytes, false); });
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  return guarded([&] { put(stream, on_device(to, bytes), address_of(from), bytes, false); });
}

CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return guarded([&] { put(stream, address_of(to), on_device(from, bytes), bytes, false); });
}

CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return guarded([&] { put(stream, to, from, bytes, false); });
}

CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t bytes) {
  return cuMemcpy(to, from, bytes);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t bytes,
                           CUstream stream) {
  return cuMemcpyAsync(to, from, bytes, stream);
}

CUresult cuMemcpy2D(const CUDA_MEMCPY2D* parameters) {
  return guarded([&] {
    require(parameters != nullptr);
    put(nullptr, copy_of(*parameters), true);
  });
}

CUresult cuMemcpy2DUnaligned(const CUDA_MEMCPY2D* parameters) {
  return cuMemcpy2D(parameters);
}

CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D* parameters, CUstream stream) {
  return guarded([&] {
    require(parameters != nullptr);
    put(stream, copy_of(*parameters), false);
  });
}

CUresult cuMemcpy3D(const CUDA_MEMCPY3D* parameters) {
  return guarded([&] {
    require(parameters != nullptr);
    put(nullptr, copy_of(*parameters), true);
  });
}

CUresult cuMemcpy3DAsync(const CUDA_MEMCPY3D* parameters, CUstream stream) {
  return guarded([&] {
    require(parameters != nullptr);
    put(stream, copy_of(*parameters), false);
  });
}

CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* parameters) {
  return guarded([&] {
    require(parameters != nullptr);
    put(nullptr, copy_of(*parameters), true);
  });
}

CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* parameters, CUstream stream) {
  return guarded([&] {
    require(parameters != nullptr);
    put(stream, copy_of(*parameters), false);
  });
}

CUresult cuMemcpyDtoA(CUarray to, size_t offset, CUdeviceptr from, size_t bytes) {
  return guarded([&] { put_array(nullptr, row_of(to, offset, bytes), linear(from), bytes, false); });
}

CUresult cuMemcpyAtoD(CUdeviceptr to, CUarray from, size_t offset, size_t bytes) {
  return guarded([&] { put_array(nullptr, linear(to), row_of(from, offset, bytes), bytes, false); });
}

CUresult cuMemcpyHtoA(CUarray to, size_t offset, const void* from, size_t bytes) {
  return guarded(
      [&] { put_array(nullptr, row_of(to, offset, bytes), linear(address_of(from)), bytes, true); });
}

CUresult cuMemcpyAtoH(void* to, CUarray from, size_t offset, size_t bytes) {
  return guarded(
      [&] { put_array(nullptr, linear(address_of(to)), row_of(from, offset, bytes), bytes, true); });
}

CUresult cuMemcpyAtoA(CUarray to, size_t to_offset, CUarray from, size_t from_offset, size_t bytes) {
  return guarded([&] {
    put_array(nullptr, row_of(to, to_offset, bytes), row_of(from, from_offset, bytes), bytes, false);
  });
}

CUresult cuMemcpyHtoAAsync(CUarray to, size_t offset, const void* from, size_t bytes, CUstream stream) {
  return guarded(
      [&] { put_array(stream, row_of(to, offset, bytes), linear(address_of(from)), bytes, false); });
}

CUresult cuMemcpyAtoHAsync(void* to, CUarray from, size_t offset, size_t bytes, CUstream stream) {
  return guarded(
      [&] { put_array(stream, linear(address_of(to)), row_of(from, offset, bytes), bytes, false); });
}

#define FILL(bits, type)                                                                                   \
  CUresult cuMemsetD##bits(CUdeviceptr to, type value, size_t count) {                                     \
    return guarded([&] { fill(nullptr, to, 0, value, bits / 8, count, 1); });                              \
  }                                                                                                        \
  CUresult cuMemsetD##bits##Async(CUdeviceptr to, type value, size_t count, CUstream stream) {             \
    return guarded([&] { fill(stream, to, 0, value, bits / 8, count, 1); });                               \
  }                                                                                                        \
  CUresult cuMemsetD2D##bits(CUdeviceptr to, size_t pitch, type value, size_t width, size_t height) {      \
    return guarded([&] { fill(nullptr, to, pitch, value, bits / 8, width, height); });                     \
  }                                                                                                        \
  CUresult cuMemsetD2D##bits##Async(CUdeviceptr to, size_t pitch, type value, size_t width, size_t height, \
                                    CUstream stream) {                                                     \
    return guarded([&] { fill(stream, to, pitch, value, bits / 8, width, height); });                      \
  }
FILL(8, unsigned char)
FILL(16, unsigned short)
FILL(32, unsigned)
#undef FILL
