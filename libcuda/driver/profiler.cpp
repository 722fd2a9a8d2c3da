#include "api.hpp"
#include "ranges.hpp"

// The range that a profiler would collect. Declared in cudaProfiler.h, which is in a separate package.

namespace simt::driver {
namespace {

void set_collecting(bool wanted) {
  static bool collecting = false;  // of all devices; the process's lock is held
  if (wanted == collecting) return;
  collecting = wanted;
  wanted ? open_range("cudaProfilerApi") : close_range("cudaProfilerApi");
}

}  // namespace
}  // namespace simt::driver

extern "C" [[gnu::visibility("default")]] CUresult cuProfilerStart() {
  return simt::driver::guarded([] { simt::driver::set_collecting(true); });
}

extern "C" [[gnu::visibility("default")]] CUresult cuProfilerStop() {
  return simt::driver::guarded([] { simt::driver::set_collecting(false); });
}
