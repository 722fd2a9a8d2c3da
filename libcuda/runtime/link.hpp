// Device linking of programs with relocatable device code (nvcc -rdc=true).
#pragma once

#include "runtime.hpp"

namespace runtime {

// Links the fat binaries of a null-terminated list and loads the result.
cudaError_t link_images(const void* const* images, CUlibrary* library);

}  // namespace runtime
