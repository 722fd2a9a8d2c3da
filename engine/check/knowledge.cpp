#include "check/knowledge.hpp"

#include <algorithm>

namespace simt::check {
namespace {

bool is_earlier_party(const std::pair<Party, uint32_t>& entry, Party who) {
  return entry.first < who;
}

}  // namespace

uint32_t Knowledge::of(Party who) const {
  const auto at = std::lower_bound(clocks_.begin(), clocks_.end(), who, is_earlier_party);
  return at != clocks_.end() && at->first == who ? at->second : 0;
}

void Knowledge::raise(Party who, uint32_t clock) {
  const auto at = std::lower_bound(clocks_.begin(), clocks_.end(), who, is_earlier_party);
  if (at != clocks_.end() && at->first == who)
    at->second = std::max(at->second, clock);
  else
    clocks_.insert(at, {who, clock});
}

void Knowledge::join(const Knowledge& other) {
  if (other.empty()) return;
  if (empty()) {
    clocks_ = other.clocks_;
    return;
  }
  std::vector<std::pair<Party, uint32_t>> all;
  all.reserve(clocks_.size() + other.clocks_.size());
  auto a = clocks_.begin();
  auto b = other.clocks_.begin();
  while (a != clocks_.end() && b != other.clocks_.end()) {
    if (a->first < b->first) {
      all.push_back(*a++);
    } else if (b->first < a->first) {
      all.push_back(*b++);
    } else {
      all.emplace_back(a->first, std::max(a->second, b->second));
      ++a, ++b;
    }
  }
  all.insert(all.end(), a, clocks_.end());
  all.insert(all.end(), b, other.clocks_.end());
  clocks_ = std::move(all);
}

}  // namespace simt::check
