// Unsupported functions. CUDA's headers are not included here, because the stubs redeclare the functions.
#pragma once

#include <atomic>

namespace runtime {

// Prints the function's name on its first call, and returns cudaErrorNotSupported.
int refuse(const char* function, std::atomic_flag& named);

}  // namespace runtime
