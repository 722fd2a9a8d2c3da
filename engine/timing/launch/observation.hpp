#pragma once
#include <memory>
#include <vector>

#include "timing/control/controller.hpp"
#include "timing/core/sm.hpp"
#include "timing/memory/memory_system.hpp"
#include "timing/warps/decoded_kernel.hpp"

namespace simt {

/// What a controller observes of a launch now, except the interval. Takes what the SMs have recorded. origin:
/// cycle of the launch's first dispatch.
Observation observation_of(const DecodedKernel& kernel, const std::vector<std::unique_ptr<Sm>>& sms,
                           const MemorySystem& memory, Cycle origin, Cycle now);

}  // namespace simt
