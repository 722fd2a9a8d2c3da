#include "ptx/translation/shared_layout.hpp"

#include <algorithm>

#include "machine/round_up.hpp"

namespace simt::functional {

SharedLayout::SharedLayout(const ptx::Module& module, const References& references,
                           std::vector<uint64_t>& places)
    : module_(module),
      references_(references),
      static_(module.functions.size()),
      own_(module.functions.size()) {
  place_module_variables(places);
  place_function_variables();
  align_dynamic();
}

uint32_t SharedLayout::dynamic_offset(uint32_t function) const {
  const std::vector<uint32_t> entries = entries_of(function);
  return entries.empty() ? 0 : static_[entries.front()];
}

std::vector<uint32_t> SharedLayout::entries_of(uint32_t function) const {
  std::vector<uint32_t> entries;
  for (uint32_t f = 0; f < function_count(); ++f)
    if (module_.functions[f].entry && references_.reachable[f].contains(function)) entries.push_back(f);
  return entries;
}

void SharedLayout::place_module_variables(std::vector<uint64_t>& places) {
  const auto& variables = module_.variables;
  std::vector<std::vector<uint32_t>> users(variables.size());
  for (uint32_t f = 0; f < function_count(); ++f) {
    if (!module_.functions[f].entry) continue;
    std::set<uint32_t> all;
    for (const uint32_t g : references_.reachable[f])
      all.insert(references_.shared[g].begin(), references_.shared[g].end());
    for (const uint32_t v : all) users[v].push_back(f);
  }
  const auto place = [&](size_t v, uint32_t& at) {
    at = round_up(at, variables[v].alignment);
    places[v] = at;
    at += static_cast<uint32_t>(variables[v].size);
  };
  uint32_t common = 0;
  for (size_t v = 0; v < variables.size(); ++v)
    if (users[v].size() > 1 && variables[v].size > 0) place(v, common);
  for (uint32_t f = 0; f < function_count(); ++f) {
    if (!module_.functions[f].entry) continue;
    const bool uses_common = std::any_of(users.begin(), users.end(), [&](const std::vector<uint32_t>& by) {
      return by.size() > 1 && std::find(by.begin(), by.end(), f) != by.end();
    });
    static_[f] = uses_common ? common : 0;
    for (size_t v = 0; v < variables.size(); ++v)
      if (users[v].size() == 1 && users[v][0] == f && variables[v].size > 0) place(v, static_[f]);
  }
}

void SharedLayout::place_function_variables() {
  std::vector<std::vector<uint32_t>> entries;
  for (uint32_t g = 0; g < function_count(); ++g) entries.push_back(entries_of(g));
  for (const bool by_several : {true, false})
    for (uint32_t g = 0; g < function_count(); ++g)
      if ((entries[g].size() > 1) == by_several) place_own(g, entries[g]);
}

void SharedLayout::place_own(uint32_t function, const std::vector<uint32_t>& entries) {
  const auto& variables = module_.functions[function].variables;
  uint32_t at = 0;
  for (const uint32_t f : entries) at = std::max(at, static_[f]);
  own_[function].assign(variables.size(), UINT32_MAX);
  bool any = false;
  for (size_t v = 0; v < variables.size(); ++v) {
    if (variables[v].space != ptx::Space::Shared) continue;
    any = true;
    at = round_up(at, variables[v].alignment);
    own_[function][v] = at;
    at += static_cast<uint32_t>(variables[v].size);
  }
  if (!any) return;
  for (const uint32_t f : entries) static_[f] = at;
}

/// Dynamic shared memory begins after the static part; kernels that share a function that names it must agree
/// on its offset.
void SharedLayout::align_dynamic() {
  for (uint32_t f = 0; f < function_count(); ++f)
    if (module_.functions[f].entry) static_[f] = round_up(static_[f], 16);
  for (uint32_t g = 0; g < function_count(); ++g) {
    if (module_.functions[g].entry) continue;
    const auto& named = references_.shared[g];
    if (std::none_of(named.begin(), named.end(), [&](uint32_t v) { return module_.variables[v].size == 0; }))
      continue;
    const std::vector<uint32_t> entries = entries_of(g);
    uint32_t most = 0;
    for (const uint32_t f : entries) most = std::max(most, static_[f]);
    for (const uint32_t f : entries) static_[f] = most;
  }
}

}  // namespace simt::functional
