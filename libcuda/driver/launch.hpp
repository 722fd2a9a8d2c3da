#pragma once
#include <span>

#include "process.hpp"

namespace simt::driver {

/// A launch with a copy of its parameters, from what the API takes. Throws Failure.
Launch make_launch(CUfunction function, std::array<uint32_t, 3> grid, std::array<uint32_t, 3> block,
                   unsigned shared, void** pointers, void** extra,
                   std::span<const CUlaunchAttribute> attributes);
/// Applies an attribute that changes what is launched; others change nothing.
void set_attribute(Launch& launch, CUlaunchAttributeID which, const CUlaunchAttributeValue& value);
/// Throws Failure for what no GPU of this kind can launch.
void check(const Launch& launch);

}  // namespace simt::driver
