#pragma once
#include <cstdint>
#include <set>
#include <string_view>
#include <vector>

#include "ptx/module.hpp"

namespace simt::functional {

/// What the functions of a module name, by function.
struct References {
  std::vector<std::set<uint32_t>> calls;      ///< functions named
  std::vector<std::set<uint32_t>> reachable;  ///< functions that it may reach, itself among them
  std::vector<std::set<uint32_t>> shared;     ///< the module's shared variables named
  std::vector<bool> calls_indirectly;
  std::vector<bool> takes_stack;  ///< by `alloca`
};

References find_references(const ptx::Module& module);

/// The defined function of that name or alias; UINT32_MAX if there is none.
uint32_t function_index(const ptx::Module& module, std::string_view name);

}  // namespace simt::functional
