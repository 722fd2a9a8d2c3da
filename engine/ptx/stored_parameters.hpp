#pragma once
#include <cstdint>
#include <vector>

#include "ptx/module.hpp"

namespace simt::ptx {

/// Finds the 64-bit words of a kernel's parameter block that hold addresses through which it may store: the
/// address of a store is computed from them, on any path. Addresses read from memory, or passed to functions,
/// are not tracked.
std::vector<bool> stored_parameters(const Function& kernel, const Module& module);

}  // namespace simt::ptx
