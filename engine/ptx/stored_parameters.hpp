#pragma once
#include <cstdint>
#include <vector>

#include "ptx/module.hpp"

namespace simt::ptx {

/// Which 64-bit words of a kernel's parameter block hold addresses that it may store through: a store's
/// address is computed from them, on whatever path. Addresses that are themselves read from memory, or handed
/// to functions, are not followed.
std::vector<bool> stored_parameters(const Function& kernel, const Module& module);

}  // namespace simt::ptx
