#pragma once
#include "objects.hpp"

namespace simt::driver {

/// Takes the work of a captured stream into its graph.
void capture(Stream& stream, Work work);

}  // namespace simt::driver
