#pragma once
#include <vector>

#include "machine/code.hpp"

namespace simt::functional {

/// tcgen05.ld.red: the least or greatest of what a lane has loaded, to Op::destination.
struct LoadReduction : Detail {
  std::vector<Place> registers;
  uint32_t first_thread = 0, threads = warp_lanes;  ///< those that have loaded
};

enum class Reduced : uint8_t { Unsigned, Signed, Float };

/// magnitudes, nan: of Reduced::Float; nan: a NaN among the numbers is the result, else it is left out.
Handler load_reduction(bool greatest, Reduced type, bool magnitudes, bool nan);

}  // namespace simt::functional
