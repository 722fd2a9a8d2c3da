#include "timing/memory/tlb.hpp"

#include <bit>

namespace simt {

Tlb::Tlb(const TlbSpec& spec)
    : page_bits_(20 + static_cast<uint32_t>(std::countr_zero(spec.entry_mib))),
      entries_(spec.entries),
      miss_latency_(spec.miss_latency) {}

Cycle Tlb::miss(uint64_t address, Cycle now) {
  for (; !leaving_.empty() && known_.at(leaving_.front()).ends <= now; leaving_.pop_front())
    known_.erase(leaving_.front());
  const Cycle begins = now + miss_latency_;
  if (staying_.size() == entries_) {
    known_.at(staying_.front()).ends = begins;
    leaving_.push_back(staying_.front());
    staying_.pop_front();
  }
  known_.emplace(address >> page_bits_, Lifetime{begins, never});
  staying_.push_back(address >> page_bits_);
  return begins;
}

void Tlb::insert(uint64_t address) {
  const uint64_t page = address >> page_bits_;
  if (!known_.emplace(page, Lifetime{}).second) return;
  if (staying_.size() == entries_) {
    known_.erase(staying_.front());
    staying_.pop_front();
  }
  staying_.push_back(page);
}

}  // namespace simt
