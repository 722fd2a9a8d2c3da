// Copies of one, two and three dimensions between memories, and to and from variables.

#include "copy.hpp"

#include "registration.hpp"
#include "versions.hpp"

namespace runtime {

cudaError_t copy(void* destination, const void* source, size_t size, cudaMemcpyKind kind, CopyStream stream) {
  const auto to = reinterpret_cast<CUdeviceptr>(destination);
  const auto from = reinterpret_cast<CUdeviceptr>(source);
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) return cudaErrorInvalidMemcpyDirection;
  if (size == 0) return cudaSuccess;
  if (!destination || !source) return cudaErrorInvalidValue;
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return to_error(stream ? cuMemcpyHtoDAsync(to, source, size, *stream) : cuMemcpyHtoD(to, source, size));
    case cudaMemcpyDeviceToHost:
      return to_error(stream ? cuMemcpyDtoHAsync(destination, from, size, *stream)
                             : cuMemcpyDtoH(destination, from, size));
    case cudaMemcpyDeviceToDevice:
      return to_error(stream ? cuMemcpyDtoDAsync(to, from, size, *stream) : cuMemcpyDtoD(to, from, size));
    default:
      return to_error(stream ? cuMemcpyAsync(to, from, size, *stream) : cuMemcpy(to, from, size));
  }
}

cudaError_t copy(const CUDA_MEMCPY3D& parameters, CopyStream stream) {
  if (!parameters.WidthInBytes || !parameters.Height || !parameters.Depth) return cudaSuccess;
  return to_error(stream ? cuMemcpy3DAsync(&parameters, *stream) : cuMemcpy3D(&parameters));
}

namespace {

cudaError_t copy_2d(void* destination, size_t destination_pitch, const void* source, size_t source_pitch,
                    size_t width, size_t height, cudaMemcpyKind kind, CopyStream stream) {
  if (width > destination_pitch || width > source_pitch) return cudaErrorInvalidPitchValue;
  if (!width || !height) return cudaSuccess;
  cudaMemcpy3DParms parameters{};
  parameters.srcPtr = {const_cast<void*>(source), source_pitch, width, height};
  parameters.dstPtr = {destination, destination_pitch, width, height};
  parameters.extent = {width, height, 1};
  parameters.kind = kind;
  CUDA_MEMCPY3D driver_parameters;
  RUNTIME_TRY(driver_copy(parameters, &driver_parameters));
  return copy(driver_parameters, stream);
}

cudaError_t copy_3d(const cudaMemcpy3DParms* parameters, CopyStream stream) {
  if (!parameters) return cudaErrorInvalidValue;
  CUDA_MEMCPY3D driver_parameters;
  RUNTIME_TRY(driver_copy(*parameters, &driver_parameters));
  return copy(driver_parameters, stream);
}

cudaError_t copy_to_symbol(const void* symbol, const void* source, size_t size, size_t offset,
                           cudaMemcpyKind kind, CopyStream stream) {
  if (kind == cudaMemcpyHostToHost || kind == cudaMemcpyDeviceToHost) return cudaErrorInvalidMemcpyDirection;
  void* address = nullptr;
  RUNTIME_TRY(symbol_range(symbol, size, offset, &address));
  return copy(address, source, size, kind, stream);
}

cudaError_t copy_from_symbol(void* destination, const void* symbol, size_t size, size_t offset,
                             cudaMemcpyKind kind, CopyStream stream) {
  if (kind == cudaMemcpyHostToHost || kind == cudaMemcpyHostToDevice) return cudaErrorInvalidMemcpyDirection;
  void* address = nullptr;
  RUNTIME_TRY(symbol_range(symbol, size, offset, &address));
  return copy(destination, address, size, kind, stream);
}

cudaError_t symbol_address(void** address, const void* symbol) {
  if (!address) return cudaErrorInvalidValue;
  return symbol_range(symbol, 0, 0, address);
}

cudaError_t symbol_size(size_t* size, const void* symbol) {
  if (!size) return cudaErrorInvalidValue;
  CUdeviceptr address = 0;
  return variable_of(symbol, &address, size);
}

cudaError_t copy_peer(void* destination, int to_device, const void* source, int from_device, size_t size,
                      CopyStream stream) {
  CUcontext to = nullptr;
  CUcontext from = nullptr;
  RUNTIME_TRY(primary_context(to_device, &to));
  RUNTIME_TRY(primary_context(from_device, &from));
  if (size == 0) return cudaSuccess;
  const auto to_address = reinterpret_cast<CUdeviceptr>(destination);
  const auto from_address = reinterpret_cast<CUdeviceptr>(source);
  return to_error(stream ? cuMemcpyPeerAsync(to_address, to, from_address, from, size, *stream)
                         : cuMemcpyPeer(to_address, to, from_address, from, size));
}

// Addresses are unique across devices, so a copy between two devices needs only the addresses.
cudaError_t copy_3d_peer(const cudaMemcpy3DPeerParms* parameters, CopyStream stream) {
  if (!parameters) return cudaErrorInvalidValue;
  const cudaMemcpy3DParms plain{parameters->srcArray, parameters->srcPos, parameters->srcPtr,
                                parameters->dstArray, parameters->dstPos, parameters->dstPtr,
                                parameters->extent,   cudaMemcpyDefault};
  return copy_3d(&plain, stream);
}

cudaError_t copy_batch(void* const* destinations, const void* const* sources, const size_t* sizes,
                       size_t count, size_t* failed, cudaStream_t stream) {
  if (!destinations || !sources || !sizes || !count) return cudaErrorInvalidValue;
  for (size_t i = 0; i < count; ++i) {
    const cudaError_t error = copy(destinations[i], sources[i], sizes[i], cudaMemcpyDefault, stream);
    if (error == cudaSuccess) continue;
    if (failed) *failed = i;
    return error;
  }
  return cudaSuccess;
}

void set_operand(const cudaMemcpy3DOperand& operand, const cudaExtent& extent, cudaArray_t* array,
                 cudaPos* position, cudaPitchedPtr* pitched) {
  if (operand.type == cudaMemcpyOperandTypeArray) {
    *array = operand.op.array.array;
    *position = {operand.op.array.offset.x, operand.op.array.offset.y, operand.op.array.offset.z};
  } else {
    const size_t row = operand.op.ptr.rowLength ? operand.op.ptr.rowLength : extent.width;
    const size_t rows = operand.op.ptr.layerHeight ? operand.op.ptr.layerHeight : extent.height;
    *pitched = {operand.op.ptr.ptr, row, row, rows};
  }
}

cudaError_t copy_operation(const cudaMemcpy3DBatchOp& operation, cudaStream_t stream) {
  cudaMemcpy3DParms parameters{};
  set_operand(operation.src, operation.extent, &parameters.srcArray, &parameters.srcPos, &parameters.srcPtr);
  set_operand(operation.dst, operation.extent, &parameters.dstArray, &parameters.dstPos, &parameters.dstPtr);
  parameters.extent = operation.extent;
  parameters.kind = cudaMemcpyDefault;
  return copy_3d(&parameters, stream);
}

cudaError_t copy_3d_batch(size_t count, cudaMemcpy3DBatchOp* operations, size_t* failed,
                          unsigned long long flags, cudaStream_t stream) {
  if (!count || !operations || flags) return cudaErrorInvalidValue;
  for (size_t i = 0; i < count; ++i) {
    const cudaError_t error = copy_operation(operations[i], stream);
    if (error == cudaSuccess) continue;
    if (failed) *failed = i;
    return error;
  }
  return cudaSuccess;
}

}  // namespace
}  // namespace runtime

using namespace runtime;

namespace {

// These distinguish the overloads for plain memory from those for CUDA_MEMCPY3D.
cudaError_t copy_1d(void* destination, const void* source, size_t size, cudaMemcpyKind kind,
                    CopyStream stream) {
  return runtime::copy(destination, source, size, kind, stream);
}

}  // namespace

extern "C" {

cudaError_t cudaMemcpy(void* destination, const void* source, size_t size, cudaMemcpyKind kind) {
  return call(copy_1d, destination, source, size, kind, synchronous);
}
cudaError_t cudaMemcpyAsync(void* destination, const void* source, size_t size, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return call(copy_1d, destination, source, size, kind, stream);
}
cudaError_t cudaMemcpyWithAttributesAsync(void* destination, const void* source, size_t size,
                                          cudaMemcpyAttributes*, cudaStream_t stream) {
  return call(copy_1d, destination, source, size, cudaMemcpyDefault, stream);
}
cudaError_t cudaMemcpy2D(void* destination, size_t destination_pitch, const void* source, size_t source_pitch,
                         size_t width, size_t height, cudaMemcpyKind kind) {
  return call(copy_2d, destination, destination_pitch, source, source_pitch, width, height, kind,
              synchronous);
}
cudaError_t cudaMemcpy2DAsync(void* destination, size_t destination_pitch, const void* source,
                              size_t source_pitch, size_t width, size_t height, cudaMemcpyKind kind,
                              cudaStream_t stream) {
  return call(copy_2d, destination, destination_pitch, source, source_pitch, width, height, kind, stream);
}
cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* parameters) {
  return call(copy_3d, parameters, synchronous);
}
cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* parameters, cudaStream_t stream) {
  return call(copy_3d, parameters, stream);
}

cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* source, size_t size, size_t offset,
                               cudaMemcpyKind kind) {
  return call(copy_to_symbol, symbol, source, size, offset, kind, synchronous);
}
cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* source, size_t size, size_t offset,
                                    cudaMemcpyKind kind, cudaStream_t stream) {
  return call(copy_to_symbol, symbol, source, size, offset, kind, stream);
}
cudaError_t cudaMemcpyFromSymbol(void* destination, const void* symbol, size_t size, size_t offset,
                                 cudaMemcpyKind kind) {
  return call(copy_from_symbol, destination, symbol, size, offset, kind, synchronous);
}
cudaError_t cudaMemcpyFromSymbolAsync(void* destination, const void* symbol, size_t size, size_t offset,
                                      cudaMemcpyKind kind, cudaStream_t stream) {
  return call(copy_from_symbol, destination, symbol, size, offset, kind, stream);
}
cudaError_t cudaGetSymbolAddress(void** address, const void* symbol) {
  return call(symbol_address, address, symbol);
}
cudaError_t cudaGetSymbolSize(size_t* size, const void* symbol) {
  return call(symbol_size, size, symbol);
}

cudaError_t cudaMemcpyPeer(void* destination, int to, const void* source, int from, size_t size) {
  return call(copy_peer, destination, to, source, from, size, synchronous);
}
cudaError_t cudaMemcpyPeerAsync(void* destination, int to, const void* source, int from, size_t size,
                                cudaStream_t stream) {
  return call(copy_peer, destination, to, source, from, size, stream);
}
cudaError_t cudaMemcpy3DPeer(const cudaMemcpy3DPeerParms* parameters) {
  return call(copy_3d_peer, parameters, synchronous);
}
cudaError_t cudaMemcpy3DPeerAsync(const cudaMemcpy3DPeerParms* parameters, cudaStream_t stream) {
  return call(copy_3d_peer, parameters, stream);
}

// The attributes of a copy are hints about where its memory is and when its source may be read.
cudaError_t v12_cudaMemcpyBatchAsync(void** destinations, void** sources, size_t* sizes, size_t count,
                                     cudaMemcpyAttributes*, size_t*, size_t, size_t* failed,
                                     cudaStream_t stream) {
  return call(copy_batch, destinations, sources, sizes, count, failed, stream);
}
cudaError_t v13_cudaMemcpyBatchAsync(void* const* destinations, const void* const* sources,
                                     const size_t* sizes, size_t count, cudaMemcpyAttributes*, size_t*,
                                     size_t, cudaStream_t stream) {
  return call(copy_batch, destinations, sources, sizes, count, nullptr, stream);
}
cudaError_t v12_cudaMemcpy3DBatchAsync(size_t count, cudaMemcpy3DBatchOp* operations, size_t* failed,
                                       unsigned long long flags, cudaStream_t stream) {
  return call(copy_3d_batch, count, operations, failed, flags, stream);
}
cudaError_t v13_cudaMemcpy3DBatchAsync(size_t count, cudaMemcpy3DBatchOp* operations,
                                       unsigned long long flags, cudaStream_t stream) {
  return call(copy_3d_batch, count, operations, nullptr, flags, stream);
}
cudaError_t cudaMemcpy3DWithAttributesAsync(cudaMemcpy3DBatchOp* operation, unsigned long long flags,
                                            cudaStream_t stream) {
  return call(copy_3d_batch, size_t{1}, operation, nullptr, flags, stream);
}

}  // extern "C"
