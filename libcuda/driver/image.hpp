#pragma once
#include <cstddef>
#include <span>

#include "wire.hpp"

namespace simt::driver {

/// The bytes of a module's image in memory, whose size is given by its own headers: PTX text, a fat binary,
/// its wrapper or machine code. Throws Failure (CUDA_ERROR_INVALID_IMAGE) for anything else.
std::span<const std::byte> image_bytes(const void* image);
/// Throws Failure (CUDA_ERROR_FILE_NOT_FOUND).
Bytes file_bytes(const char* path);

}  // namespace simt::driver
