// Device linking of programs with relocatable device code (nvcc -rdc=true).
#pragma once

#include "registration.hpp"

namespace runtime {

// Links the fat binaries of a program's files and loads the result.
cudaError_t link_images(const FatBinary& program, CUlibrary* library);

}  // namespace runtime
