#include "api.hpp"

// The range that a profiler would collect: there is no profiler, so both calls succeed. Declared in
// cudaProfiler.h, which is in a separate package.

extern "C" [[gnu::visibility("default")]] CUresult cuProfilerStart() {
  return CUDA_SUCCESS;
}

extern "C" [[gnu::visibility("default")]] CUresult cuProfilerStop() {
  return CUDA_SUCCESS;
}
