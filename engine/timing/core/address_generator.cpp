#include "timing/core/address_generator.hpp"

#include <algorithm>
#include <bit>

#include "timing/core/coalescer.hpp"
#include "timing/memory/eviction.hpp"

namespace simt {
MemorySpace AddressGenerator::resolve_generic(const LaunchInfo& launch, uint64_t address) const {
  if (launch.shared_base == 0 || launch.local_base == 0) return traits_.generic_space;
  if (address >= launch.shared_base && address < launch.shared_base + launch.window_bytes)
    return MemorySpace::Shared;
  if (address >= launch.local_base && address < launch.local_base + launch.window_bytes)
    return MemorySpace::Local;
  return MemorySpace::Global;
}

void AddressGenerator::start(InFlight& instruction, const DynamicRecord& record) {
  const StaticInstruction& s = instruction.instruction->fixed;
  WarpTable::Warp& warp = warps_[instruction.warp];
  const bool bulk = s.operation == Operation::BulkLoad || s.operation == Operation::BulkStore;
  instruction.async_copy = record.mbarrier;
  if (record.mask == 0 || (bulk ? record.bulk_count == 0 : s.access_bytes == 0)) return;
  const uint32_t lanes = bulk ? record.bulk_count : static_cast<uint32_t>(std::popcount(record.mask));
  addresses_.resize(std::max<size_t>(64, lanes));
  const uint32_t count = warp.kernel->source->lane_addresses(record, addresses_.data());
  if (count == 0) return;
  if (instruction.space == MemorySpace::Generic)
    instruction.space = resolve_generic(warp.kernel->launch, addresses_[0]);
  const bool atomic = s.operation == Operation::Atomic || s.operation == Operation::Reduction;
  if (atomic && traits_.atomics_hold_warp) {
    warp.outstanding_atomics += count;
    warps_.change_masks(warps_.scheduler_of(instruction.warp)).atomics |= warps_.bit_of(instruction.warp);
  }
  if (instruction.space == MemorySpace::Shared) {
    SharedAccess access = s.operation == Operation::Load ? SharedAccess::Load : SharedAccess::Store;
    if (atomic && spec_.shared_memory.atomic_interval > 0) access = SharedAccess::Atomic;
    instruction.passes =
        shared_passes_.of(record.static_index, addresses_.data(), record.mask, s.access_bytes, access);
    if (spec_.shared_memory.conflict_free && access != SharedAccess::Atomic) {
      const uint32_t words = spec_.shared_memory.wide_accesses_take_wavefronts ? (s.access_bytes + 3) / 4 : 1;
      const uint32_t width = std::max(1u, spec_.shared_memory.banks);
      instruction.passes = std::min(instruction.passes, std::max(1u, (count * words + width - 1) / width));
    }
  } else if (atomic) {
    if (traits_.reductions_as_stores && s.operation == Operation::Reduction) {
      warps_.stores_issued(instruction.warp, 1);
      instruction.counts_as_store = true;
    }
    if (spec_.load_store.perfect_coalescing)
      coalesce(addresses_.data(), count, s.access_bytes, true, instruction.transactions);
    else
      coalesce_atomic(addresses_.data(), count, s.access_bytes, instruction.transactions);
  } else if (instruction.space == MemorySpace::Local) {
    start_local(instruction, record, count);
  } else if (bulk) {
    const auto bytes = static_cast<uint32_t>(std::max<uint64_t>(sector_bytes, record.bulk_bytes / count));
    coalesce(addresses_.data(), count, bytes, true, instruction.transactions);
  } else {
    coalesce_sub_warps(instruction, record, count);
    if (spec_.load_store.perfect_coalescing) keep_filled(instruction.transactions);
  }
  if (s.has_eviction() || record.cache_policy != 0) set_eviction(instruction, record.cache_policy);
  // From now on, as a memory barrier that issues next must wait for them.
  if (s.operation == Operation::Store || s.operation == Operation::BulkStore)
    warps_.stores_issued(instruction.warp, instruction.transactions.size());
}

/// Keeps only as many of the sectors as the access's bytes would fill. Accesses to other bytes of the same
/// sectors keep others, so that together they keep them all.
void AddressGenerator::keep_filled(std::vector<Transaction>& transactions) {
  uint32_t bytes = 0;
  for (const Transaction& t : transactions) bytes += static_cast<uint32_t>(std::popcount(t.byte_mask));
  const size_t needed = (bytes + sector_bytes - 1) / sector_bytes;
  if (needed == 0 || needed >= transactions.size()) return;
  const uint32_t in_first = static_cast<uint32_t>(std::countr_zero(transactions.front().byte_mask));
  const size_t groups = (transactions.size() + needed - 1) / needed;
  const size_t first = in_first * groups / sector_bytes * needed;
  const size_t end = std::min(first + needed, transactions.size());
  transactions.erase(transactions.begin() + static_cast<std::ptrdiff_t>(end), transactions.end());
  transactions.erase(transactions.begin(), transactions.begin() + static_cast<std::ptrdiff_t>(first));
  for (Transaction& t : transactions) t.byte_mask = ~0u;
}

void AddressGenerator::set_eviction(InFlight& instruction, uint32_t policy) const {
  if (instruction.space != MemorySpace::Global || spec_.l2.persisting_kib == 0) return;
  const StaticInstruction& s = instruction.instruction->fixed;
  for (Transaction& t : instruction.transactions) {
    t.l1_eviction = s.l1_eviction;
    t.l2_eviction = policy != 0 ? eviction_of(policy, t.address) : s.l2_eviction;
  }
}

void AddressGenerator::start_local(InFlight& instruction, const DynamicRecord& record, uint32_t count) {
  // Local memory is interleaved by 32-bit words over the GPU's concurrent threads, so that lanes accessing
  // the same local address access neighbouring words.
  const WarpTable::Warp& warp = warps_[instruction.warp];
  const uint32_t bytes = instruction.instruction->fixed.access_bytes;
  const CtaTable::Cta& cta = ctas_[warp.cta_slot];
  const uint64_t first_thread = cta.thread_base + uint64_t{warp.index_in_cta} * spec_.sm.warp_size;
  const uint32_t words = std::max(1u, bytes / 4u);
  words_.clear();
  uint64_t mask = record.mask;
  for (uint32_t i = 0; i < count; ++i, mask &= mask - 1) {
    const uint64_t thread = first_thread + static_cast<uint64_t>(std::countr_zero(mask));
    for (uint32_t k = 0; k < words; ++k)
      words_.push_back(traits_.local_memory + (addresses_[i] / 4 + k) * cta.concurrent_threads * 4 +
                       addresses_[i] % 4 + thread * 4);
  }
  coalesce(words_.data(), static_cast<uint32_t>(words_.size()), std::min<uint32_t>(4, bytes),
           spec_.load_store.sectored_coalescing, instruction.transactions);
}

void AddressGenerator::coalesce_sub_warps(InFlight& instruction, const DynamicRecord& record,
                                          uint32_t count) {
  const uint32_t bytes = instruction.instruction->fixed.access_bytes;
  const bool sectored = spec_.load_store.sectored_coalescing;
  const uint32_t sub_warps = std::max(1u, spec_.load_store.coalescing_sub_warps);
  if (sub_warps == 1) {
    coalesce(addresses_.data(), count, bytes, sectored, instruction.transactions);
    return;
  }
  const uint32_t lanes_each = spec_.sm.warp_size / sub_warps;
  uint32_t taken = 0;
  for (uint32_t p = 0; p < sub_warps; ++p) {
    const uint64_t lanes_mask = (lanes_each >= 64 ? ~uint64_t{0} : (uint64_t{1} << lanes_each) - 1)
                                << (p * lanes_each);
    const auto here = static_cast<uint32_t>(std::popcount(record.mask & lanes_mask));
    if (here == 0) continue;
    coalesce(addresses_.data() + taken, here, bytes, sectored, part_);
    instruction.transactions.insert(instruction.transactions.end(), part_.begin(), part_.end());
    taken += here;
  }
}

}  // namespace simt
