#include "sass/stored_parameters.hpp"

#include <algorithm>
#include <unordered_set>

namespace simt::sass {

std::vector<bool> stored_parameters(const std::vector<Step>& code) {
  std::vector<std::vector<uint32_t>> before(code.size());
  for (uint32_t i = 0; i < code.size(); ++i) {
    if (code[i].falls_through && i + 1 < code.size()) before[i + 1].push_back(i);
    if (code[i].target < code.size()) before[code[i].target].push_back(i);
  }
  struct Wanted {
    uint32_t at, reg;  // the register's value before the instruction
  };
  std::vector<Wanted> left;
  std::unordered_set<uint64_t> known;
  const auto want = [&](uint32_t at, uint32_t reg) {
    if (known.insert(uint64_t{at} << 32 | reg).second) left.push_back({at, reg});
  };
  std::vector<bool> stored;
  for (uint32_t i = 0; i < code.size(); ++i)
    for (const uint32_t reg : code[i].address) want(i, reg);
  while (!left.empty()) {
    const Wanted wanted = left.back();
    left.pop_back();
    for (const uint32_t i : before[wanted.at]) {
      const Step& step = code[i];
      const bool writes = std::find(step.writes.begin(), step.writes.end(), wanted.reg) != step.writes.end();
      if (!writes || step.guarded) want(i, wanted.reg);
      if (!writes || step.loads) continue;
      for (const uint32_t reg : step.reads) want(i, reg);
      for (const uint32_t word : step.parameter_words) {
        stored.resize(std::max<size_t>(stored.size(), word + 1));
        stored[word] = true;
      }
    }
  }
  return stored;
}

}  // namespace simt::sass
