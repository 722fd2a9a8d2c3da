#pragma once
#include "process.hpp"

namespace simt::driver {

Copy copy_of(const CUDA_MEMCPY3D& parameters);
/// Throw Failure for device memory that is not allocated.
void check(const Copy& copy);
void check(const Fill& fill);

}  // namespace simt::driver
