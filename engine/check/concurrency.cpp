#include "check/concurrency.hpp"

#include <algorithm>
#include <set>

namespace simt::check {
namespace {

/// The thread that touched an address of `t`: it moves evenly from the first to the last.
Access access_of(const Touched& part, const Touch& t, uint64_t address) {
  Access a = part.accesses[t.by];
  const uint64_t length = t.end - t.begin, threads = t.last_thread - t.first_thread + 1;
  const uint32_t thread = t.first_thread + static_cast<uint32_t>((address - t.begin) * threads / length);
  const auto& size = part.block_size;
  a.thread = {thread % size[0], thread / size[0] % size[1], thread / size[0] / size[1]};
  a.block = t.block;
  a.address = address;
  return a;
}

/// Calls f for pairs of touches that overlap, and are not both strong.
template <class F>
void each_overlap(const std::vector<Touch>& a, const std::vector<Touch>& b, F f) {
  auto j = b.begin();
  for (const Touch& x : a) {
    while (j != b.end() && j->end <= x.begin) ++j;
    for (auto k = j; k != b.end() && k->begin < x.end; ++k)
      if (!(x.is_strong && k->is_strong)) f(x, *k);
  }
}

void compare(const Touched& first, const Touched& second, const Concurrency::Report& report) {
  std::set<std::pair<uint32_t, uint32_t>> known;
  const auto meet = [&](const Touch& a, const Touch& b) {
    if (!known.emplace(a.by, b.by).second) return;
    const uint64_t address = std::max(a.begin, b.begin);
    report(access_of(first, a, address), access_of(second, b, address));
  };
  each_overlap(first.writes, second.writes, meet);
  each_overlap(first.writes, second.reads, meet);
  each_overlap(first.reads, second.writes, meet);
}

}  // namespace

void Concurrency::begin(uint64_t number, const std::vector<uint64_t>& others, bool kept) {
  Work& work = all_[number];
  work.others = {others.begin(), others.end()};
  work.kept = kept;
}

bool Concurrency::needs(uint64_t number) const {
  const auto at = all_.find(number);
  return at != all_.end() && (at->second.kept || !at->second.others.empty());
}

void Concurrency::touched(uint64_t number, Touched part, const Report& report) {
  const auto at = all_.find(number);
  if (at == all_.end()) return;
  for (const auto& [other, work] : all_)
    for (const Touched& there : work.parts) {
      if (other < number && at->second.others.contains(other)) compare(there, part, report);
      if (other > number && work.others.contains(number)) compare(part, there, report);
    }
  if (at->second.kept) at->second.parts.push_back(std::move(part));
}

void Concurrency::forget_memory(uint64_t begin, uint64_t end) {
  const auto is_there = [&](const Touch& t) { return t.begin < end && begin < t.end; };
  for (auto& [number, work] : all_)
    for (Touched& part : work.parts) {
      std::erase_if(part.reads, is_there);
      std::erase_if(part.writes, is_there);
    }
}

}  // namespace simt::check
