#include "timing/core/constant_cache.hpp"

#include <algorithm>

namespace simt {

ConstantCache::ConstantCache(const Spec& spec, InstructionCache& next)
    : line_bytes_(spec.constant_cache.l1.line_bytes),
      latency_(spec.constant_cache.latency),
      miss_latency_(spec.constant_cache.miss_latency),
      access_interval_(spec.constant_cache.access_interval),
      next_(next) {
  if (spec.constant_cache.perfect) return;
  // A miss leaves its cache immediately.
  for (uint32_t i = 0; i <= spec.sm.sub_cores; ++i)
    caches_.emplace_back(cache_of(spec.constant_cache.l1, /*miss_queue=*/2));
  youngest_.assign(caches_.size(), unknown);
}

CacheOutcome ConstantCache::look_up(uint32_t cache, uint64_t address, uint64_t token, uint16_t slot,
                                    Cycle now, Counters& counters) {
  const uint64_t line = line_of(address);
  if (youngest_[cache] == line) {
    ++counters[Counter::constant_cache_hits];
    return CacheOutcome::Hit;
  }
  CacheAccess access{};
  access.address = line;
  access.token = token;
  access.time = now;
  access.kind = AccessKind::ConstantRead;
  access.slot = slot;
  const CacheOutcome outcome = caches_[cache].access(access);
  if (outcome == CacheOutcome::ReservationFail) return outcome;
  youngest_[cache] = outcome == CacheOutcome::Hit ? line : unknown;
  ++counters[outcome == CacheOutcome::Hit ? Counter::constant_cache_hits : Counter::constant_cache_misses];
  if (!caches_[cache].miss_queue_empty()) {
    coming_.push_back({caches_[cache].front_miss().address, cache, slot, false, now});
    caches_[cache].pop_miss();
    ask(coming_.back(), now, counters);
  }
  return outcome;
}

void ConstantCache::ask(Coming& coming, Cycle now, Counters& counters) {
  const CacheOutcome outcome = next_.fetch_constants(coming.line, coming.slot, now, counters);
  coming.asked = outcome != CacheOutcome::ReservationFail;
  coming.at = outcome == CacheOutcome::Hit ? now + miss_latency_ : coming.asked ? unknown : now + retry;
  expect(coming.at);
}

bool ConstantCache::read_operand(uint32_t warp, uint32_t sub_core, uint64_t address, uint16_t slot, Cycle now,
                                 Counters& counters) {
  const CacheOutcome outcome = look_up(1 + sub_core, address, warp, slot, now, counters);
  if (outcome == CacheOutcome::ReservationFail) {
    refused_.emplace_back(now + retry, warp);
    expect(now + retry);
  }
  return outcome == CacheOutcome::Hit;
}

Cycle ConstantCache::queue(size_t addresses, Cycle now) {
  port_free_ = std::max(now, port_free_) + access_interval_ * addresses;
  return port_free_ - access_interval_ - now;
}

bool ConstantCache::load(Load load, std::vector<uint64_t>& addresses, uint16_t slot, Cycle now,
                         Cycle earliest, Counters& counters) {
  if (addresses.size() == 1 && youngest_[0] == line_of(addresses[0]) && earliest <= now + limits::latency) {
    ++counters[Counter::constant_cache_hits];
    return true;
  }
  const auto free = std::find_if(waiting_.begin(), waiting_.end(), [](const Waiting& w) { return !w.used; });
  Waiting& w = free == waiting_.end() ? waiting_.emplace_back() : *free;
  w.load = load;
  w.slot = slot;
  const bool late = addresses.size() > 1 || earliest > now + limits::latency;
  w.refused.swap(addresses);
  w.missing = 0;
  w.earliest = earliest;
  look_up_again(w, now, counters);
  w.used = late || w.missing > 0 || !w.refused.empty();
  expect(w.used ? w.at : unknown);
  return !w.used;
}

void ConstantCache::look_up_again(Waiting& w, Cycle now, Counters& counters) {
  const auto token = static_cast<uint64_t>(&w - waiting_.data());
  size_t done = 0;
  for (; done < w.refused.size(); ++done) {
    const CacheOutcome outcome = look_up(0, w.refused[done], token, w.slot, now, counters);
    if (outcome == CacheOutcome::ReservationFail) break;
    w.missing += outcome != CacheOutcome::Hit;
  }
  w.refused.erase(w.refused.begin(), w.refused.begin() + static_cast<std::ptrdiff_t>(done));
  w.at = !w.refused.empty() ? now + retry : w.missing > 0 ? unknown : std::max(w.earliest, now + latency_);
}

void ConstantCache::take_lines(Cycle now) {
  for (const uint64_t line : next_.constants())
    for (Coming& c : coming_)
      if (c.asked && c.at == unknown && next_.line_of(c.line) == line) {
        c.at = now + miss_latency_;
        expect(c.at);
      }
  next_.constants().clear();
}

void ConstantCache::cycle(Cycle now, std::vector<uint32_t>& warps, std::vector<Load>& loads,
                          std::vector<Counters>& counters) {
  next_event_ = unknown;
  for (size_t i = 0; i < coming_.size(); ++i)
    if (!coming_[i].asked && coming_[i].at <= now) ask(coming_[i], now, counters[coming_[i].slot]);
  std::erase_if(coming_, [&](const Coming& c) {
    if (!c.asked || c.at > now) return false;
    caches_[c.cache].fill(c.line, now);
    youngest_[c.cache] = unknown;
    return true;
  });
  while (caches_[0].ready()) {
    Waiting& w = waiting_[caches_[0].pop_ready()];
    if (--w.missing == 0 && w.refused.empty()) w.at = std::max(w.earliest, now + latency_);
  }
  for (size_t s = 1; s < caches_.size(); ++s)
    while (caches_[s].ready()) warps.push_back(static_cast<uint32_t>(caches_[s].pop_ready()));
  for (Waiting& w : waiting_) {
    if (!w.used) continue;
    if (!w.refused.empty() && w.at <= now) look_up_again(w, now, counters[w.slot]);
    if (w.at <= now) {
      loads.push_back(w.load);
      w.used = false;
    } else {
      expect(w.at);
    }
  }
  std::erase_if(refused_, [&](const auto& r) {
    if (r.first > now) {
      expect(r.first);
      return false;
    }
    warps.push_back(r.second);
    return true;
  });
  for (const Coming& c : coming_) expect(c.at);
}

}  // namespace simt
