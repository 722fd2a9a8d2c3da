#include "timing/core/instruction_cache.hpp"

#include <algorithm>

namespace simt {
namespace {

constexpr Cycle unknown = ~Cycle{0};
constexpr uint64_t constant_token = uint64_t{1} << 63;  // low bits: line; for other tokens: warp

CacheSpec l1_or_unused(const InstructionCacheSpec& spec) {
  CacheSpec cache = cache_of(spec.l1, spec.l1_miss_queue);
  if (cache.sets == 0 || cache.ways == 0) {
    cache.sets = cache.ways = 1;
    cache.mshr_entries = cache.mshr_merge = cache.miss_queue = 1;
  }
  return cache;
}

}  // namespace

InstructionCache::InstructionCache(const Spec& spec)
    : perfect_(spec.sm.front_end.instruction_cache.perfect),
      shared_(spec.sm.front_end.instruction_cache.l1_shared_by > 1),
      line_bytes_(std::max(32u, spec.sm.front_end.instruction_cache.l1.line_bytes)),
      l1_latency_(spec.sm.front_end.instruction_cache.l1_latency),
      prefetch_lines_(spec.sm.front_end.instruction_cache.prefetch_lines),
      prefetch_latency_(spec.sm.front_end.instruction_cache.prefetch_latency),
      l1_(l1_or_unused(spec.sm.front_end.instruction_cache)),
      arriving_(line_bytes_) {
  const uint32_t l0_lines = spec.sm.front_end.instruction_cache.l0_lines;
  if (perfect_ || l0_lines == 0) return;
  l0_.resize(spec.sm.sub_cores);
  for (L0& one : l0_) one.lines.resize(l0_lines);
  last_hits_.resize(spec.sm.max_warps);
}

bool InstructionCache::l0_hit(uint32_t warp, uint32_t sub_core, uint64_t line) {
  L0& l0 = l0_[sub_core];
  const auto found = std::ranges::find(l0.lines, line, &L0::Line::address);
  if (found == l0.lines.end()) return false;
  found->used = ++l0.clock;
  last_hits_[warp] = static_cast<uint32_t>(found - l0.lines.begin());
  return true;
}

InstructionCache::L0::Prefetch* InstructionCache::prefetched(uint32_t sub_core, uint64_t line) {
  std::vector<L0::Prefetch>& stream = l0_[sub_core].stream;
  const auto found = std::ranges::find(stream, line, &L0::Prefetch::line);
  return found == stream.end() ? nullptr : &*found;
}

Cycle InstructionCache::prefetch_arrives(uint64_t line, Cycle asked, Cycle earliest) const {
  if (prefetch_latency_ == 0 || l1_.contains(line)) return earliest;
  return std::max(earliest, asked + prefetch_latency_);
}

/// The stream buffer holds the lines after the last miss; a hit in it advances it.
void InstructionCache::start_prefetches(const Waiting& miss, Cycle now) {
  std::vector<L0::Prefetch>& stream = l0_[miss.sub_core].stream;
  stream.clear();
  // What is asked for with a line that the L1 lacks arrives with it.
  const bool arrived = now > miss.asked + std::max(1u, l1_latency_);
  for (uint32_t k = 1; k <= prefetch_lines_; ++k) {
    const uint64_t line = miss.line + uint64_t{k} * line_bytes_;
    stream.push_back({line, arrived ? now : prefetch_arrives(line, miss.asked, now)});
  }
}

void InstructionCache::take_prefetched(uint32_t sub_core, uint64_t line, Cycle now) {
  L0& l0 = l0_[sub_core];
  l0_insert(sub_core, line);
  if (prefetch_latency_ > 0) {
    CacheAccess access{};
    access.address = line;
    access.time = now;
    l1_.insert(access);
  }
  const auto taken = std::ranges::find(l0.stream, line, &L0::Prefetch::line);
  const uint64_t last = l0.stream.back().line;
  const auto used = static_cast<size_t>(taken - l0.stream.begin()) + 1;
  l0.stream.erase(l0.stream.begin(), l0.stream.begin() + static_cast<std::ptrdiff_t>(used));
  for (size_t i = 1; i <= used; ++i) {
    const uint64_t next = last + i * line_bytes_;
    l0.stream.push_back({next, prefetch_arrives(next, now, now)});
  }
}

void InstructionCache::l0_insert(uint32_t sub_core, uint64_t line) {
  L0& l0 = l0_[sub_core];
  if (std::ranges::find(l0.lines, line, &L0::Line::address) != l0.lines.end()) return;
  *std::ranges::min_element(l0.lines, {}, &L0::Line::used) = {line, ++l0.clock};
}

bool InstructionCache::fetch_line(uint32_t warp, uint32_t sub_core, uint64_t line, uint16_t slot, Cycle now,
                                  Counters& counters) {
  if (!l0_.empty()) {
    const bool hit = l0_hit(warp, sub_core, line);
    const L0::Prefetch* const ahead = hit ? nullptr : prefetched(sub_core, line);
    if (hit || ahead) {
      ++counters[Counter::instruction_cache_hits];
      if (hit) return true;
      if (ahead->arrives > now) {
        waiting_.push_back({.warp = warp,
                            .sub_core = sub_core,
                            .line = line,
                            .ready = ahead->arrives,
                            .slot = slot,
                            .prefetched = true});
        return false;
      }
      take_prefetched(sub_core, line, now);
      return true;
    }
  }
  if (shared_) {
    if (std::none_of(waiting_.begin(), waiting_.end(),
                     [&](const Waiting& w) { return w.line == line && w.ready == unknown; }))
      fetches_.push_back({now, line, slot});
    waiting_.push_back({warp, sub_core, line, unknown, slot, now});
    return false;
  }
  Waiting waiting{warp, sub_core, line, unknown, slot, now};
  const bool hit = ask(waiting, now) == CacheOutcome::Hit;
  ++counters[hit ? Counter::instruction_cache_hits : Counter::instruction_cache_misses];
  if (hit && l0_.empty() && l1_latency_ == 0) return true;
  waiting_.push_back(waiting);
  return false;
}

CacheOutcome InstructionCache::ask(Waiting& waiting, Cycle now) {
  CacheAccess access{};
  access.address = waiting.line;
  access.token = waiting.warp;
  access.time = now;
  access.kind = AccessKind::InstructionRead;
  access.slot = waiting.slot;
  const CacheOutcome outcome = l1_.access(access);
  waiting.refused = outcome == CacheOutcome::ReservationFail;
  waiting.ready = outcome == CacheOutcome::Hit ? now + std::max(1u, l1_latency_)
                  : waiting.refused            ? now + 4
                                               : unknown;
  return outcome;
}

CacheOutcome InstructionCache::fetch_constants(uint64_t address, uint16_t slot, Cycle now,
                                               Counters& counters) {
  CacheAccess access{};
  access.address = line_of(address);
  access.token = constant_token | access.address;
  access.time = now;
  access.kind = AccessKind::ConstantRead;
  access.slot = slot;
  const CacheOutcome outcome = l1_.access(access);
  if (outcome != CacheOutcome::ReservationFail)
    ++counters[outcome == CacheOutcome::Hit ? Counter::constant_l1_hits : Counter::constant_l1_misses];
  return outcome;
}

void InstructionCache::insert_constants(uint64_t begin, uint64_t end) {
  CacheAccess access{};
  for (access.address = line_of(begin); access.address < end; access.address += line_bytes_)
    l1_.insert(access);
}

void InstructionCache::insert_code(uint64_t begin, uint64_t end) {
  if (!shared_) insert_constants(begin, end);
  for (uint32_t sub_core = 0; sub_core < l0_.size(); ++sub_core)
    for (uint64_t line = line_of(begin); line < end; line += line_bytes_) l0_insert(sub_core, line);
}

bool InstructionCache::cycle(Cycle now, LoadStoreUnit& port, std::vector<uint32_t>& woken) {
  bool changed = false;
  if (!l1_.miss_queue_empty()) {
    const auto& miss = l1_.front_miss();
    if (port.send_fetch(miss.address, line_bytes_, miss.kind, miss.slot, now)) {
      l1_.pop_miss();
      changed = true;
    }
  }
  while (l1_.ready()) {
    const uint64_t token = l1_.pop_ready();
    changed = true;
    if (token & constant_token) {
      constants_.push_back(token & ~constant_token);
      continue;
    }
    for (Waiting& w : waiting_)
      if (w.warp == token && w.ready == unknown) w.ready = now;
  }
  for (size_t i = 0; i < waiting_.size();) {
    if (waiting_[i].ready > now) {
      ++i;
      continue;
    }
    if (waiting_[i].refused) {
      ask(waiting_[i++], now);
      changed = true;
      continue;
    }
    const Waiting done = waiting_[i];
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
    if (done.prefetched && prefetched(done.sub_core, done.line)) {
      take_prefetched(done.sub_core, done.line, now);
    } else if (!l0_.empty()) {
      l0_insert(done.sub_core, done.line);
      if (!done.prefetched) start_prefetches(done, now);
    }
    woken.push_back(done.warp);
    changed = true;
  }
  return changed;
}

void InstructionCache::fill(uint64_t address, Cycle now) {
  if (arriving_.add(address)) l1_.fill(line_of(address), now);
}

void InstructionCache::arrive(const LineArrival& arrival, Cycle now, std::vector<Counters>& counters) {
  for (Waiting& w : waiting_) {
    if (w.line != arrival.line || w.ready != unknown) continue;
    w.ready = now;
    ++counters[w.slot][arrival.hit ? Counter::instruction_cache_hits : Counter::instruction_cache_misses];
  }
}

Cycle InstructionCache::next_event(Cycle now) const {
  Cycle next = l1_.miss_queue_empty() && !l1_.ready() ? ~Cycle{0} : now + 1;
  for (const Waiting& w : waiting_)
    if (w.ready != unknown) next = std::min(next, std::max(now + 1, w.ready));
  return next;
}

}  // namespace simt
