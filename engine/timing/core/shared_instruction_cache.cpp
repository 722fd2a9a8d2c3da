#include "timing/core/shared_instruction_cache.hpp"

#include <algorithm>

namespace simt {
namespace {

/// Each SM requests a line only once, so the number of sub-cores bounds what is outstanding: nothing is
/// refused.
CacheSpec without_limits(const ReadOnlyCacheSpec& spec) {
  CacheSpec cache = cache_of(spec, 1u << 16);
  cache.mshr_entries = cache.mshr_merge = 1u << 16;
  return cache;
}

}  // namespace

SharedInstructionCache::SharedInstructionCache(const InstructionCacheSpec& spec, uint16_t port)
    : port_(port),
      line_bytes_(spec.l1.line_bytes),
      latency_(spec.l1_latency),
      cache_(without_limits(spec.l1)),
      assembly_(spec.l1.line_bytes) {}

void SharedInstructionCache::take_replies(std::vector<MemoryReply>& replies, std::vector<Answer>& answers) {
  for (const MemoryReply& reply : replies) {
    if (!assembly_.add(reply.address)) continue;
    const uint64_t line = reply.address / line_bytes_ * line_bytes_;
    Outstanding& one = outstanding_[line];
    one.arrives = true;
    one.at = reply.cycle;
    arrivals_.push_back(line);
    for (const Waiter& w : one.waiters)
      answers.push_back({w.sm, {std::max(one.at, w.earliest), line, false}});
    one.waiters.clear();
  }
  replies.clear();
}

void SharedInstructionCache::look_up(const std::vector<std::vector<LineFetch>*>& fetches,
                                     std::vector<MemoryRequest>& requests, std::vector<Answer>& answers) {
  struct Question {
    LineFetch fetch;
    uint32_t sm;
  };
  std::vector<Question> questions;
  for (uint32_t sm = 0; sm < fetches.size(); ++sm) {
    for (const LineFetch& f : *fetches[sm]) questions.push_back({f, sm});
    fetches[sm]->clear();
  }
  std::stable_sort(questions.begin(), questions.end(),
                   [](const Question& a, const Question& b) { return a.fetch.cycle < b.fetch.cycle; });
  for (const auto& [fetch, sm] : questions) {
    const Cycle now = std::max(free_at_, fetch.cycle);
    free_at_ = now + 1;
    while (!arrivals_.empty() && outstanding_[arrivals_.front()].at <= now) {
      cache_.fill(arrivals_.front(), outstanding_[arrivals_.front()].at);
      while (cache_.ready()) cache_.pop_ready();
      outstanding_.erase(arrivals_.front());
      arrivals_.pop_front();
    }
    CacheAccess access{};
    access.address = fetch.line;
    access.time = now;
    access.kind = AccessKind::InstructionRead;
    access.slot = fetch.slot;
    const CacheOutcome outcome = cache_.access(access);
    const Cycle earliest = now + latency_;
    if (outcome == CacheOutcome::Hit) {
      answers.push_back({sm, {earliest, fetch.line, true}});
      continue;
    }
    Outstanding& one = outstanding_[fetch.line];
    if (one.arrives)
      answers.push_back({sm, {std::max(one.at, earliest), fetch.line, false}});
    else
      one.waiters.push_back({sm, earliest});
    if (cache_.miss_queue_empty()) continue;
    cache_.pop_miss();
    MemoryRequest request;
    request.address = fetch.line;
    request.cycle = earliest;
    request.sm = port_;
    request.slot = fetch.slot;
    request.kind = AccessKind::InstructionRead;
    request.sectors = static_cast<uint8_t>(std::max(1u, line_bytes_ / sector_bytes));
    requests.push_back(request);
  }
}

void SharedInstructionCache::insert_code(uint64_t begin, uint64_t end) {
  CacheAccess access{};
  for (access.address = begin / line_bytes_ * line_bytes_; access.address < end;
       access.address += line_bytes_)
    cache_.insert(access);
}

}  // namespace simt
