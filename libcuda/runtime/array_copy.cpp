// Copies to, from and between arrays.
#include <algorithm>

#include "copy.hpp"

namespace runtime {
namespace {

struct ArrayPlace {
  cudaArray_const_t array;
  size_t x;  // in bytes
  size_t y;
};

void place_source(CUDA_MEMCPY3D& copy, const ArrayPlace& place) {
  copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.srcArray = driver_array(place.array);
  copy.srcXInBytes = place.x;
  copy.srcY = place.y;
}

void place_destination(CUDA_MEMCPY3D& copy, const ArrayPlace& place) {
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.dstArray = driver_array(place.array);
  copy.dstXInBytes = place.x;
  copy.dstY = place.y;
}

// A copy of `width` bytes in each of `height` rows. The driver determines the kind of memory from the
// address.
CUDA_MEMCPY3D rows(size_t width, size_t height) {
  CUDA_MEMCPY3D copy{};
  copy.WidthInBytes = width;
  copy.Height = height;
  copy.Depth = 1;
  return copy;
}

cudaError_t check_kind(cudaMemcpyKind kind) {
  return kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault ? cudaErrorInvalidMemcpyDirection
                                                                 : cudaSuccess;
}

CUmemorytype memory_type(bool host, cudaMemcpyKind kind) {
  if (kind == cudaMemcpyDefault) return CU_MEMORYTYPE_UNIFIED;
  return host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
}

cudaError_t to_array(ArrayPlace place, const void* source, size_t pitch, size_t width, size_t height,
                     cudaMemcpyKind kind, CopyStream stream) {
  RUNTIME_TRY(check_kind(kind));
  if (width > pitch) return cudaErrorInvalidPitchValue;
  CUDA_MEMCPY3D parameters = rows(width, height);
  place_destination(parameters, place);
  parameters.srcMemoryType = memory_type(kind == cudaMemcpyHostToDevice, kind);
  parameters.srcHost = source;
  parameters.srcDevice = reinterpret_cast<CUdeviceptr>(source);
  parameters.srcPitch = pitch;
  parameters.srcHeight = height;
  return copy(parameters, stream);
}

cudaError_t from_array(void* destination, size_t pitch, ArrayPlace place, size_t width, size_t height,
                       cudaMemcpyKind kind, CopyStream stream) {
  RUNTIME_TRY(check_kind(kind));
  if (width > pitch) return cudaErrorInvalidPitchValue;
  CUDA_MEMCPY3D parameters = rows(width, height);
  place_source(parameters, place);
  parameters.dstMemoryType = memory_type(kind == cudaMemcpyDeviceToHost, kind);
  parameters.dstHost = destination;
  parameters.dstDevice = reinterpret_cast<CUdeviceptr>(destination);
  parameters.dstPitch = pitch;
  parameters.dstHeight = height;
  return copy(parameters, stream);
}

cudaError_t array_to_array(ArrayPlace destination, ArrayPlace source, size_t width, size_t height) {
  CUDA_MEMCPY3D parameters = rows(width, height);
  place_source(parameters, source);
  place_destination(parameters, destination);
  return copy(parameters, synchronous);
}

cudaError_t row_bytes(cudaArray_const_t array, size_t* bytes) {
  CUDA_ARRAY3D_DESCRIPTOR descriptor;
  RUNTIME_TRY(cuArray3DGetDescriptor(&descriptor, driver_array(array)));
  size_t element = 0;
  RUNTIME_TRY(element_size(driver_array(array), &element));
  *bytes = descriptor.Width * element;
  return cudaSuccess;
}

// The bytes from `place` to the end of its row; advances `place` by `size` bytes.
void advance(ArrayPlace& place, size_t row, size_t size) {
  place.x += size;
  if (place.x < row) return;
  place.x = 0;
  ++place.y;
}

// Copies that continue past the end of a row, for CUDA 11 and earlier: row by row.
cudaError_t run_to_array(ArrayPlace place, const void* source, size_t size, cudaMemcpyKind kind,
                         CopyStream stream) {
  size_t row = 0;
  RUNTIME_TRY(row_bytes(place.array, &row));
  if (place.x >= row) return cudaErrorInvalidValue;
  for (const char* from = static_cast<const char*>(source); size;) {
    const size_t part = std::min(size, row - place.x);
    RUNTIME_TRY(to_array(place, from, part, part, 1, kind, stream));
    advance(place, row, part);
    from += part;
    size -= part;
  }
  return cudaSuccess;
}

cudaError_t run_from_array(void* destination, ArrayPlace place, size_t size, cudaMemcpyKind kind,
                           CopyStream stream) {
  size_t row = 0;
  RUNTIME_TRY(row_bytes(place.array, &row));
  if (place.x >= row) return cudaErrorInvalidValue;
  for (char* to = static_cast<char*>(destination); size;) {
    const size_t part = std::min(size, row - place.x);
    RUNTIME_TRY(from_array(to, part, place, part, 1, kind, stream));
    advance(place, row, part);
    to += part;
    size -= part;
  }
  return cudaSuccess;
}

cudaError_t run_array_to_array(ArrayPlace destination, ArrayPlace source, size_t size) {
  size_t to_row = 0;
  size_t from_row = 0;
  RUNTIME_TRY(row_bytes(destination.array, &to_row));
  RUNTIME_TRY(row_bytes(source.array, &from_row));
  if (destination.x >= to_row || source.x >= from_row) return cudaErrorInvalidValue;
  while (size) {
    const size_t part = std::min({size, to_row - destination.x, from_row - source.x});
    RUNTIME_TRY(array_to_array(destination, source, part, 1));
    advance(destination, to_row, part);
    advance(source, from_row, part);
    size -= part;
  }
  return cudaSuccess;
}

}  // namespace
}  // namespace runtime

using namespace runtime;

extern "C" {

cudaError_t cudaMemcpy2DToArray(cudaArray_t array, size_t x, size_t y, const void* source, size_t pitch,
                                size_t width, size_t height, cudaMemcpyKind kind) {
  return call(to_array, ArrayPlace{array, x, y}, source, pitch, width, height, kind, synchronous);
}
cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t array, size_t x, size_t y, const void* source, size_t pitch,
                                     size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  return call(to_array, ArrayPlace{array, x, y}, source, pitch, width, height, kind, stream);
}
cudaError_t cudaMemcpy2DFromArray(void* destination, size_t pitch, cudaArray_const_t array, size_t x,
                                  size_t y, size_t width, size_t height, cudaMemcpyKind kind) {
  return call(from_array, destination, pitch, ArrayPlace{array, x, y}, width, height, kind, synchronous);
}
cudaError_t cudaMemcpy2DFromArrayAsync(void* destination, size_t pitch, cudaArray_const_t array, size_t x,
                                       size_t y, size_t width, size_t height, cudaMemcpyKind kind,
                                       cudaStream_t stream) {
  return call(from_array, destination, pitch, ArrayPlace{array, x, y}, width, height, kind, stream);
}
cudaError_t cudaMemcpy2DArrayToArray(cudaArray_t destination, size_t to_x, size_t to_y,
                                     cudaArray_const_t source, size_t from_x, size_t from_y, size_t width,
                                     size_t height, cudaMemcpyKind) {
  return call(array_to_array, ArrayPlace{destination, to_x, to_y}, ArrayPlace{source, from_x, from_y}, width,
              height);
}

cudaError_t cudaMemcpyToArray(cudaArray_t array, size_t x, size_t y, const void* source, size_t size,
                              cudaMemcpyKind kind) {
  return call(run_to_array, ArrayPlace{array, x, y}, source, size, kind, synchronous);
}
cudaError_t cudaMemcpyToArrayAsync(cudaArray_t array, size_t x, size_t y, const void* source, size_t size,
                                   cudaMemcpyKind kind, cudaStream_t stream) {
  return call(run_to_array, ArrayPlace{array, x, y}, source, size, kind, stream);
}
cudaError_t cudaMemcpyFromArray(void* destination, cudaArray_const_t array, size_t x, size_t y, size_t size,
                                cudaMemcpyKind kind) {
  return call(run_from_array, destination, ArrayPlace{array, x, y}, size, kind, synchronous);
}
cudaError_t cudaMemcpyFromArrayAsync(void* destination, cudaArray_const_t array, size_t x, size_t y,
                                     size_t size, cudaMemcpyKind kind, cudaStream_t stream) {
  return call(run_from_array, destination, ArrayPlace{array, x, y}, size, kind, stream);
}
cudaError_t cudaMemcpyArrayToArray(cudaArray_t destination, size_t to_x, size_t to_y,
                                   cudaArray_const_t source, size_t from_x, size_t from_y, size_t size,
                                   cudaMemcpyKind) {
  return call(run_array_to_array, ArrayPlace{destination, to_x, to_y}, ArrayPlace{source, from_x, from_y},
              size);
}

}  // extern "C"
