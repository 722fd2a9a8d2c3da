// Copies in the driver's form.
#pragma once

#include <optional>

#include "runtime.hpp"

namespace runtime {

// No stream: the copy is done when the call returns.
using CopyStream = std::optional<CUstream>;
constexpr CopyStream synchronous = std::nullopt;

cudaError_t copy(void* destination, const void* source, size_t size, cudaMemcpyKind kind, CopyStream stream);
cudaError_t copy(const CUDA_MEMCPY3D& parameters, CopyStream stream);

cudaError_t driver_copy(const cudaMemcpy3DParms& parameters, CUDA_MEMCPY3D* result);
cudaError_t driver_copy(void* destination, const void* source, size_t size, cudaMemcpyKind kind,
                        CUDA_MEMCPY3D* result);
cudaError_t runtime_copy(const CUDA_MEMCPY3D& parameters, cudaMemcpy3DParms* result);

// The address `offset` bytes into the variable of `symbol`, if `size` bytes from there are within it.
cudaError_t symbol_range(const void* symbol, size_t size, size_t offset, void** address);
// The bytes of one element of an array.
cudaError_t element_size(CUarray array, size_t* size);

}  // namespace runtime
