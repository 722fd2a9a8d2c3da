#pragma once
#include <cstdint>
#include <set>
#include <string_view>
#include <vector>

#include "ptx/module.hpp"

namespace simt::functional {

/// What each function of a module refers to, by function.
struct References {
  std::vector<std::set<uint32_t>> calls;      ///< functions it names
  std::vector<std::set<uint32_t>> reachable;  ///< functions it may reach, including itself
  std::vector<std::set<uint32_t>> shared;     ///< shared variables of the module it names
  std::vector<bool> calls_indirectly;
  std::vector<bool> takes_stack;  ///< by `alloca`
};

References find_references(const ptx::Module& module);

/// The defined function with that name or alias; UINT32_MAX if there is none.
uint32_t function_index(const ptx::Module& module, std::string_view name);

}  // namespace simt::functional
