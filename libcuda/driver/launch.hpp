#pragma once
#include <span>

#include "process.hpp"

namespace simt::driver {

/// A launch from the API's arguments, with a copy of its parameters. Throws Failure.
Launch make_launch(CUfunction function, std::array<uint32_t, 3> grid, std::array<uint32_t, 3> block,
                   unsigned shared, void** pointers, void** extra,
                   std::span<const CUlaunchAttribute> attributes);
/// Applies an attribute that affects the launch; ignores others.
void set_attribute(Launch& launch, CUlaunchAttributeID which, const CUlaunchAttributeValue& value);
/// The window that an attribute describes. Throws Failure for one that the device does not have.
AccessWindow window_of(const Device& device, const CUaccessPolicyWindow& window);
/// Throws Failure for launches that the GPU does not support.
void check(const Launch& launch);

}  // namespace simt::driver
