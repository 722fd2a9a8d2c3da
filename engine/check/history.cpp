#include "check/history.hpp"

namespace simt::check {

void History::clear() {
  moments_.assign(1, {});
  groups_.assign(1, {});
  known_.fill(0);
  last_ = 0;
}

uint32_t History::add(const Moment& moment) {
  moments_.push_back(moment);
  return static_cast<uint32_t>(moments_.size() - 1);
}

size_t History::hash(const Group& g) {
  uint64_t all = g.count;
  for (uint32_t k = 0; k < g.count; ++k) {
    all = (all ^ (uint64_t{g.moment[k]} << 5 | g.turn[k])) * 0x9e3779b97f4a7c15;
    all ^= all >> 32;
  }
  return all;
}

void History::judge(Group& g) const {
  if (g.count < most) return;
  for (uint32_t k = 1; k < most; ++k)
    for (uint32_t j = 0; j < k; ++j)
      if (const uint32_t found = alike(moments_[g.moment[j]], moments_[g.moment[k]]); found > g.likeness) {
        g.likeness = static_cast<uint8_t>(found);
        g.worst = static_cast<uint8_t>(k);
      }
}

Stamp History::joined(Stamp s, std::array<std::pair<uint32_t, uint32_t>, most>& kept, uint32_t count,
                      uint32_t moment, uint32_t lane) {
  if (count == most) {
    // Those of different CTAs, then of different warps, tell most about who must wait for whom.
    const Group& full = groups_[number(s)];
    const uint32_t worst = full.worst;
    for (uint32_t k = 0; k < most; ++k)
      if (alike(moments_[kept[k].first], moments_[moment]) >= full.likeness) return s;
    if (worst == most) return s;
    kept[worst] = {moment, lane};
  } else {
    kept[count++] = {moment, lane};
  }
  Group g;
  g.count = count;
  for (uint32_t k = 0; k < count; ++k) {
    g.moment[k] = kept[k].first;
    g.turn[k] = static_cast<uint8_t>((kept[k].second - kept[0].second) & 31);
  }
  if (!(groups_[last_] == g)) {
    uint32_t& known = known_[hash(g) % known_.size()];
    if (!(groups_[known] == g)) {
      known = static_cast<uint32_t>(groups_.size());
      judge(g);
      groups_.push_back(g);
    }
    last_ = known;
  }
  return 1u << 31 | last_ << 5 | kept[0].second;
}

}  // namespace simt::check
