// Functions that are not supported. This does not include CUDA's headers, since the stubs declare the
// functions anew.
#pragma once

#include <atomic>

namespace runtime {

// Names the function on the screen at its first call, and returns cudaErrorNotSupported.
int refuse(const char* function, std::atomic_flag& named);

}  // namespace runtime
